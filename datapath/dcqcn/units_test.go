package dcqcn

import (
	"math"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// same compares how two types read a text, and how they write what they read.
func same[A, B interface{ MarshalText() ([]byte, error) }](t *testing.T, text string, a A, errA error, b B, errB error) {
	t.Helper()
	if (errA == nil) != (errB == nil) {
		t.Fatalf("%q: here %v, in topo %v", text, errA, errB)
	}
	if errA != nil {
		return
	}
	x, _ := a.MarshalText()
	y, _ := b.MarshalText()
	if string(x) != string(y) {
		t.Fatalf("%q: here %s, in topo %s", text, x, y)
	}
}

func compareWithTopo(t *testing.T, text string) {
	var r Rate
	var tr topo.Rate
	err, topoErr := r.UnmarshalText([]byte(text)), tr.UnmarshalText([]byte(text))
	same(t, text, r, err, tr, topoErr)
	var b Bytes
	var tb topo.Bytes
	err, topoErr = b.UnmarshalText([]byte(text)), tb.UnmarshalText([]byte(text))
	same(t, text, b, err, tb, topoErr)
	var f Fraction
	var tf topo.Fraction
	err, topoErr = f.UnmarshalText([]byte(text)), tf.UnmarshalText([]byte(text))
	same(t, text, f, err, tf, topoErr)
}

func FuzzUnitsAreReadAndWrittenAsInTopo(f *testing.F) {
	for _, s := range []string{"40Mbps", "2.5Gbps", "1kbps", "0bps", "1.5 Tbps", "64KiB", "10MB", "9000", "9000B", "1.2345GB", "1%", "0.01", "150%",
		"-1Mbps", "NaN%", "Infbps", "", "Mbps", "1e3Mbps", "5"} {
		f.Add(s)
	}
	f.Fuzz(compareWithTopo)
}

func TestTimeOfBytesIsRoundedUpAndSaturates(t *testing.T) {
	for _, c := range []struct {
		rate Rate
		n    Bytes
		want time.Duration
	}{
		{400 * Gbps, 4096, 82}, {40 * Gbps, 1000, 200}, {1, 1, 8 * time.Second}, {8 * Gbps, 0, 0},
		{0, 1, math.MaxInt64}, {1, math.MaxUint64, math.MaxInt64}, {1 << 63, math.MaxUint64, 16_000_000_000},
	} {
		if got := c.rate.Time(c.n); got != c.want {
			t.Errorf("%d bytes at %v: %d, want %d ns", c.n, c.rate, got, c.want)
		}
	}
}
