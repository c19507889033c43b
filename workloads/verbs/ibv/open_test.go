//go:build ibv && linux && cgo

package ibv

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

func TestOpenNamesTheDeviceThatIsMissing(t *testing.T) {
	l := loop.NewReal(1, time.Now())
	defer l.Close()
	_, err := Open(l, "nosuch0", Options{})
	if err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefusesALoopOfAnotherDilation(t *testing.T) {
	l := loop.NewReal(4, time.Now())
	defer l.Close()
	_, err := Open(l, "nosuch0", Options{Dilation: 8})
	if err == nil || !strings.Contains(err.Error(), "dilation") {
		t.Errorf("error %v", err)
	}
}
