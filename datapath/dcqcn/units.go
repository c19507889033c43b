package dcqcn

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Rate is bits per second, written "40Mbps".
type Rate uint64

// Bytes is a size in bytes, written "64KiB", "10MB" or as a bare number.
type Bytes uint64

// Fraction is a share between 0 and 1, written "1%" or "0.01".
type Fraction float64

// Decimal rates.
const (
	Mbps Rate = 1e6
	Gbps Rate = 1e9
)

// Decimal sizes, which the published thresholds are in.
const (
	KB Bytes = 1e3
	MB Bytes = 1e6
)

// Time is how long n bytes take at this rate, rounded up to a nanosecond. It saturates, at rate
// zero too. A pacer that adds such spans up runs a little slow: at 400 Gb/s a packet of 4 KiB
// takes 81.92 ns.
func (r Rate) Time(n Bytes) time.Duration {
	hi, lo := bits.Mul64(uint64(n), 8e9)
	if hi >= uint64(r) {
		return math.MaxInt64
	}
	q, rem := bits.Div64(hi, lo, uint64(r))
	if rem != 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

type unit struct {
	name  string
	scale float64
}

// The units and the spelling are those of topo, which this package may not import; a test
// compares the two.
var (
	rateUnits = []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"Kbps", 1e3}, {"kbps", 1e3}, {"bps", 1}}
	byteUnits = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1}}
)

func parse(s, example string, units []unit) (uint64, error) {
	for _, u := range units {
		if num, ok := strings.CutSuffix(s, u.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
			if err != nil || !(v >= 0 && v*u.scale <= 1<<62) {
				break
			}
			return uint64(math.Round(v * u.scale)), nil
		}
	}
	return 0, fmt.Errorf("%q needs a number and a unit, such as %q", s, example)
}

func spell(v uint64, units []unit) string {
	best, found := strconv.FormatUint(v, 10)+units[len(units)-1].name, false
	for _, u := range units {
		if q := float64(v) / u.scale; q >= 1 && u.name[0] != 'k' && q == math.Trunc(q*1000)/1000 {
			if text := strconv.FormatFloat(q, 'f', -1, 64) + u.name; !found || len(text) < len(best) {
				best, found = text, true
			}
		}
	}
	return best
}

// UnmarshalText reads "40Mbps" or "2.5Gbps".
func (r *Rate) UnmarshalText(b []byte) error {
	v, err := parse(string(b), "40Mbps", rateUnits)
	*r = Rate(v)
	return err
}

// UnmarshalText reads "64KiB", "10MB" or a bare number of bytes.
func (b *Bytes) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		*b = Bytes(n)
		return nil
	}
	v, err := parse(string(text), "64KiB", byteUnits)
	*b = Bytes(v)
	return err
}

// UnmarshalText reads "1%" or "0.01".
func (f *Fraction) UnmarshalText(b []byte) error {
	num, scale := string(b), 1.0
	if p, ok := strings.CutSuffix(num, "%"); ok {
		num, scale = p, 100
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil || !(v >= 0 && v <= scale) {
		return fmt.Errorf("%q is not a share between 0%% and 100%% (write \"1%%\" or \"0.01\")", b)
	}
	*f = Fraction(v / scale)
	return nil
}

func (r Rate) String() string  { return spell(uint64(r), rateUnits) }
func (b Bytes) String() string { return spell(uint64(b), byteUnits) }
func (f Fraction) String() string {
	return strconv.FormatFloat(math.Round(float64(f)*1e10)/1e8, 'f', -1, 64) + "%"
}

// MarshalText writes what UnmarshalText reads.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText writes what UnmarshalText reads.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText writes what UnmarshalText reads.
func (f Fraction) MarshalText() ([]byte, error) { return []byte(f.String()), nil }
