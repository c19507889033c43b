package testbed

import (
	"strings"
	"testing"
	"time"
)

func TestAGuestThatWaitedForTheMachineIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		ran, waited time.Duration
		want        string
	}{{0, 0, ""}, {10 * time.Second, time.Second, ""}, {10 * time.Second, 10 * time.Second, "waited 50%"}} {
		if got := starved(c.ran, c.waited); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("ran %v, waited %v: %q, want %q", c.ran, c.waited, got, c.want)
		}
	}
}
