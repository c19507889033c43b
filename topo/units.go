package topo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is bits per second.
type Rate uint64

// Bytes is a size in bytes.
type Bytes uint64

// Fraction is a share between 0 and 1, written "1%" or "0.01".
type Fraction float64

// Decimal rates.
const (
	Kbps Rate = 1e3
	Mbps Rate = 1e6
	Gbps Rate = 1e9
)

type unit struct {
	name  string
	scale float64
}

var rateUnits = []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"Kbps", 1e3}, {"kbps", 1e3}, {"bps", 1}}

var byteUnits = []unit{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// ParseRate reads "100Gbps", "2.5Gbps", "800Mbps".
func ParseRate(s string) (Rate, error) {
	v, err := parseUnit(s, rateUnits, "100Gbps")
	return Rate(v), err
}

// ParseBytes reads "64KiB", "4MB", "9000B", or a bare number of bytes.
func ParseBytes(s string) (Bytes, error) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return Bytes(n), nil
	}
	v, err := parseUnit(s, byteUnits, "64KiB")
	return Bytes(v), err
}

// ParseFraction reads "1%", "0.1%" or "0.01".
func ParseFraction(s string) (Fraction, error) {
	num, scale := s, 1.0
	if p, ok := strings.CutSuffix(s, "%"); ok {
		num, scale = p, 100
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil || math.IsNaN(v) || v/scale < 0 || v/scale > 1 {
		return 0, fmt.Errorf("%q is not a share between 0%% and 100%% (write \"1%%\" or \"0.01\")", s)
	}
	return Fraction(v / scale), nil
}

func parseUnit(s string, units []unit, example string) (float64, error) {
	for _, u := range units {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || math.IsNaN(v) || v < 0 || v*u.scale > 1<<62 {
			break
		}
		return math.Round(v * u.scale), nil
	}
	return 0, fmt.Errorf("%q needs a number and a unit, such as %q", s, example)
}

// formatUnit writes a value exactly and as shortly as units allow: 400000 bytes are 400KB, not 390.625KiB.
func formatUnit(v float64, units []unit) string {
	best := strconv.FormatFloat(v, 'f', -1, 64) + units[len(units)-1].name
	found := false
	for _, u := range units {
		if v >= u.scale && u.name != "kbps" && u.name != "kB" {
			if q := v / u.scale; q == math.Trunc(q*1000)/1000 {
				if text := strconv.FormatFloat(q, 'f', -1, 64) + u.name; !found || len(text) < len(best) {
					best, found = text, true
				}
			}
		}
	}
	return best
}

func (r Rate) String() string  { return formatUnit(float64(r), rateUnits) }
func (b Bytes) String() string { return formatUnit(float64(b), byteUnits) }
func (f Fraction) String() string {
	return strconv.FormatFloat(math.Round(float64(f)*1e10)/1e8, 'f', -1, 64) + "%"
}

// UnmarshalText and MarshalText are how units are read from and written to files.
func (r *Rate) UnmarshalText(b []byte) (err error)     { *r, err = ParseRate(string(b)); return }
func (b *Bytes) UnmarshalText(t []byte) (err error)    { *b, err = ParseBytes(string(t)); return }
func (f *Fraction) UnmarshalText(b []byte) (err error) { *f, err = ParseFraction(string(b)); return }

func (r Rate) MarshalText() ([]byte, error)     { return []byte(r.String()), nil }
func (b Bytes) MarshalText() ([]byte, error)    { return []byte(b.String()), nil }
func (f Fraction) MarshalText() ([]byte, error) { return []byte(f.String()), nil }
