package ibv

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func TestTimeoutGrowsByTheDilationOrIsRefusedWithWhatFits(t *testing.T) {
	for e := range 32 {
		d := loop.Dilation(1) << e
		for n := uint8(1); n <= 31; n++ {
			wall, err := wallTimeout(n, d)
			if int(n)+e > 31 {
				if err == nil || !strings.Contains(err.Error(), "largest timeout") {
					t.Fatalf("timeout %d at dilation %v: %v", n, d, err)
				}
				continue
			}
			if err != nil || verbs.AckTimeout(wall) != d.Wall(verbs.AckTimeout(n)) {
				t.Fatalf("timeout %d at dilation %v is %v, the device waits %v (%v)", n, d, verbs.AckTimeout(n), verbs.AckTimeout(wall), err)
			}
			if back := fabricTimeout(wall, d); back != n {
				t.Fatalf("timeout %d at dilation %v comes back as %d", n, d, back)
			}
		}
		if wall, err := wallTimeout(0, d); wall != 0 || err != nil {
			t.Errorf("no timeout at dilation %v became %d (%v)", d, wall, err)
		}
	}
	if _, err := wallTimeout(32, 1); err == nil {
		t.Error("exponent 32 was taken")
	}
}

func TestRNRTimerIsTheDilatedDelayOrSaysWhatItBecame(t *testing.T) {
	for e := range 20 {
		d := loop.Dilation(1) << e
		for code := range uint8(32) {
			want := d.Wall(verbs.RNRDelay[code])
			wall, note, err := wallRNRTimer(code, d)
			if err != nil {
				t.Fatal(err)
			}
			got := verbs.RNRDelay[wall]
			if (got != want) != (note != "") {
				t.Errorf("code %d at dilation %v: wants %v, gets %v, note %q", code, d, want, got, note)
			}
			if got < want && wall != 0 {
				t.Errorf("code %d at dilation %v: wants %v, is rounded down to %v though the table goes on", code, d, want, got)
			}
		}
	}
	if _, _, err := wallRNRTimer(32, 1); err == nil {
		t.Error("code 32 was taken")
	}
}

func TestShortRxeTimersAreNamed(t *testing.T) {
	if shortForRxe("RNR delay", 5*time.Millisecond, 1) != "" || shortForRxe("RNR delay", 0, 1) != "" {
		t.Error("a long or absent timer was called short")
	}
	if note := shortForRxe("RNR delay", time.Millisecond, 4); !strings.Contains(note, "1ms of fabric time") {
		t.Errorf("note %q", note)
	}
}

// What docs/verbs.md says of dilation 1024.
func TestShortRNRDelaysHaveExactImagesAtDilation1024(t *testing.T) {
	for code := uint8(1); verbs.RNRDelay[code] <= 640*time.Microsecond; code++ {
		if wall, note, err := wallRNRTimer(code, 1024); err != nil || note != "" || verbs.RNRDelay[wall] != 1024*verbs.RNRDelay[code] {
			t.Errorf("RNR delay %v became %v (%s, %v)", verbs.RNRDelay[code], verbs.RNRDelay[wall], note, err)
		}
	}
}
