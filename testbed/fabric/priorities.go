package fabric

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/rocebed/rocebed/topo/strict"
)

// Priorities are some of the eight, 0 to 7.
type Priorities []uint8

// Bits has bit i set for priority i.
func (p Priorities) Bits() (bits uint8) {
	for _, i := range p {
		bits |= 1 << (i & 7)
	}
	return bits
}

func (p Priorities) validate() error {
	for i, n := range p {
		switch {
		case n > 7:
			return fmt.Errorf("%d is not a priority from 0 to 7", n)
		case slices.Contains(p[:i], n):
			return fmt.Errorf("priority %d is there twice", n)
		}
	}
	return nil
}

// PrioritySettings give DSCPs a priority: {26: 3, 48: 6}.
type PrioritySettings map[string]uint8

// DSCPPriority is one line of PrioritySettings.
type DSCPPriority struct{ DSCP, Priority uint8 }

// All are the lines in order of DSCP.
func (s PrioritySettings) All() []DSCPPriority {
	var out []DSCPPriority
	for key, p := range s {
		if d, err := strconv.ParseUint(key, 10, 8); err == nil {
			out = append(out, DSCPPriority{uint8(d), p})
		}
	}
	slices.SortFunc(out, func(a, b DSCPPriority) int { return cmp.Compare(a.DSCP, b.DSCP) })
	return out
}

func (s PrioritySettings) validate() error {
	keys := make([]string, 0, len(s))
	for k := range s {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if d, err := strconv.ParseUint(k, 10, 8); err != nil || d > 63 {
			return strict.At(k, "%q is not a DSCP from 0 to 63", k)
		}
		if s[k] > 7 {
			return strict.At(k, "%d is not a priority from 0 to 7", s[k])
		}
	}
	return nil
}

func contains(all []string, s string) bool { return slices.Contains(all, s) }

func strictPath(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

// lay puts what is given in over in the place of what base has, key by key.
func lay[T any](base, over *T) {
	b, o := reflect.ValueOf(base).Elem(), reflect.ValueOf(over).Elem()
	for i := range o.NumField() {
		if f := o.Field(i); !f.IsZero() {
			b.Field(i).Set(f)
		}
	}
}
