//go:build linux

package nldev

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/internal/testneed"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestAConnectionIsThereExactlyWhereRDMAIs(t *testing.T) {
	_, absent := os.Stat("/sys/class/infiniband")
	c, err := Open()
	if err == nil {
		c.Close()
	}
	if (err == nil) != (absent == nil) || err != nil && !errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Errorf("/sys/class/infiniband: %v; connecting: %v", absent, err)
	}
}

// Devices themselves are made, counted, listed and deleted in the kernel room's tests; here is
// what the kernel says of those that aren't there.
func TestWhatIsNotThereIsAnErrorThatNamesIt(t *testing.T) {
	testneed.Rxe(t)
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	none := Device{Index: 1 << 20, Name: "rb-none"}
	if _, ok, err := c.Find(none.Name); ok || err != nil {
		t.Errorf("found %v, %v", ok, err)
	}
	for what, err := range map[string]error{
		"delete": c.Delete(none),
		"add":    c.AddRxe("rb-none", "rb-nodev"),
		"counters": func() error {
			_, err := c.Counters(none)
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := c.Shared(); err != nil {
		t.Error(err)
	}
}
