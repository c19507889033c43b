package packet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Range is the numbers from From to To, both included.
type Range struct{ From, To uint32 }

// Set is some numbers: "5", "2..7", "3.." (no end), or a list of those. The empty set is all numbers.
type Set []Range

// UnmarshalText reads "5", "2..7" or "3..".
func (r *Range) UnmarshalText(b []byte) error {
	from, to, ranged := strings.Cut(string(b), "..")
	a, err := strconv.ParseUint(strings.TrimSpace(from), 10, 32)
	z := a
	if ranged && err == nil {
		if to = strings.TrimSpace(to); to == "" {
			z = math.MaxUint32
		} else {
			z, err = strconv.ParseUint(to, 10, 32)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is no number and no range (write 5, 2..7 or 3..)", b)
	}
	if z < a {
		return fmt.Errorf("%q ends before it begins", b)
	}
	*r = Range{uint32(a), uint32(z)}
	return nil
}

// String writes what UnmarshalText reads.
func (r Range) String() string {
	switch {
	case r.From == r.To:
		return strconv.FormatUint(uint64(r.From), 10)
	case r.To == math.MaxUint32:
		return fmt.Sprintf("%d..", r.From)
	}
	return fmt.Sprintf("%d..%d", r.From, r.To)
}

// MarshalText writes what UnmarshalText reads.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads one range, or several with commas between them.
func (s *Set) UnmarshalText(b []byte) error {
	*s = nil
	for part := range strings.SplitSeq(string(b), ",") {
		var r Range
		if err := r.UnmarshalText([]byte(strings.TrimSpace(part))); err != nil {
			return err
		}
		*s = append(*s, r)
	}
	return nil
}

// String writes the ranges with commas between them.
func (s Set) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// Has says whether the set has a number; the empty set has all.
func (s Set) Has(n uint32) bool {
	return len(s) == 0 || slices.ContainsFunc(s, func(r Range) bool { return r.From <= n && n <= r.To })
}

// Most is the largest number of the set; 0 for the empty set.
func (s Set) Most() (most uint32) {
	for _, r := range s {
		most = max(most, r.To)
	}
	return most
}

// Normal is the same set in order, its ranges apart from each other.
func (s Set) Normal() Set {
	if len(s) == 0 {
		return nil
	}
	all := slices.Clone(s)
	slices.SortFunc(all, func(a, b Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	out := all[:1]
	for _, r := range all[1:] {
		last := &out[len(out)-1]
		if last.To == math.MaxUint32 || r.From <= last.To+1 {
			last.To = max(last.To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}

// mask has bit n set for each number n of the set below 64.
func (s Set) mask() (bits uint64) {
	for n := range uint32(64) {
		if s.Has(n) {
			bits |= 1 << n
		}
	}
	return bits
}

// passes has bit n−1 set for each number n from 1 to 31, and bit 31 if the set has all from 32 on.
func (s Set) passes() (bits uint32) {
	for n := uint32(1); n <= MaxIteration+1; n++ {
		if s.Has(n) {
			bits |= 1 << (n - 1)
		}
	}
	return bits
}
