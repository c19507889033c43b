package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/guest"
)

func TestAGuestThatWaitedForTheMachineIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		ran, waited time.Duration
		want        string
	}{{0, 0, ""}, {10 * time.Second, time.Second, ""}, {10 * time.Second, 10 * time.Second, "waited 50%"}} {
		before := guest.Waits{Ran: time.Hour, Waited: time.Minute}
		now := guest.Waits{Ran: before.Ran + c.ran, Waited: before.Waited + c.waited}
		if got := starved(now.Since(before).Share()); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("ran %v, waited %v: %q, want %q", c.ran, c.waited, got, c.want)
		}
	}
}
