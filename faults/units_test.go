package faults

import (
	"math"
	"strings"
	"testing"
)

func TestFrequenciesAndBitErrorRatesAreRead(t *testing.T) {
	for text, want := range map[string]PerSecond{"200/s": 200, "5/ms": 5000, "0.1/us": 1e5, "2.5 /s": 2.5} {
		var p PerSecond
		if err := p.UnmarshalText([]byte(text)); err != nil || p != want {
			t.Errorf("%q is %v, %v", text, p, err)
		}
		var again PerSecond
		if err := again.UnmarshalText([]byte(p.String())); err != nil || again != p {
			t.Errorf("%v came back as %v, %v", p, again, err)
		}
	}
	for _, text := range []string{"", "5", "-1/s", "x/s", "nan/s", "1e9/us"} {
		var p PerSecond
		if err := p.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "5/ms") {
			t.Errorf("%q passed as %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "1%", "-1e-9", "0.5", "nan"} {
		var r BitErrorRate
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q passed as %v", text, r)
		}
	}
}

// Of a packet of n bytes at least one bit flips with 1 − (1 − r)^8n, also where that is hardly more than 8nr.
func TestABitErrorRateIsAPacketErrorRate(t *testing.T) {
	for _, c := range []struct {
		r    BitErrorRate
		n    int
		want float64
	}{{1e-12, 4096, 8 * 4096 * 1e-12}, {0.25, 1, 1 - math.Pow(0.75, 8)}, {1e-3, 100, 1 - math.Pow(0.999, 800)}, {0, 100, 0}} {
		if got := c.r.Packet(c.n); math.Abs(got-c.want) > 1e-7*c.want {
			t.Errorf("%v over %d bytes: %v, want %v", c.r, c.n, got, c.want)
		}
	}
}
