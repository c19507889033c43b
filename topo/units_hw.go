package topo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Factor is a factor of a dynamic threshold, from 0 to 1024, written "1/8", "8" or "0.125".
type Factor float64

// UnmarshalText reads "1/8", "8" or "0.125".
func (f *Factor) UnmarshalText(b []byte) error {
	num, den, ratio := strings.Cut(string(b), "/")
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if ratio && err == nil {
		var d float64
		d, err = strconv.ParseFloat(strings.TrimSpace(den), 64)
		v /= d
	}
	if err != nil || !(v >= 0 && v <= 1024) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is no factor from 0 to 1024 (write \"1/8\" or \"0.125\")", b)
	}
	*f = Factor(v)
	return nil
}

// String writes the factor as a decimal number, or as 1/n where that is one.
func (f Factor) String() string {
	if n := 1 / float64(f); f > 0 && f < 1 && n == math.Trunc(n) {
		return "1/" + strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(float64(f), 'f', -1, 64)
}

// MarshalText writes what UnmarshalText reads.
func (f Factor) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// PCIeLink is a PCIe link, written "gen4 x16". The zero value is not given.
type PCIeLink struct{ Gen, Width int }

// UnmarshalText reads "gen4 x16".
func (l *PCIeLink) UnmarshalText(b []byte) error {
	if n, err := fmt.Sscanf(string(b), "gen%d x%d", &l.Gen, &l.Width); err != nil || n != 2 {
		return fmt.Errorf("%q is no PCIe link (write \"gen4 x16\")", b)
	}
	return nil
}

// Check refuses generations and widths that there aren't.
func (l PCIeLink) Check() error {
	switch {
	case l.Gen < 1 || l.Gen > 6:
		return fmt.Errorf("there is no PCIe generation %d: 1 to 6", l.Gen)
	case !slices.Contains([]int{1, 2, 4, 8, 16}, l.Width):
		return fmt.Errorf("no PCIe slot has %d lanes: 1, 2, 4, 8 or 16", l.Width)
	}
	return nil
}

// String writes what UnmarshalText reads.
func (l PCIeLink) String() string { return fmt.Sprintf("gen%d x%d", l.Gen, l.Width) }

// MarshalText writes what UnmarshalText reads.
func (l PCIeLink) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
