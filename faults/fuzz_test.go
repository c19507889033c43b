package faults

import (
	"math"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// Whatever a file says, it is refused or means something: nothing panics, a fault that passes
// and resolves strikes somewhere, and its windows are in order.
func FuzzValidate(f *testing.F) {
	for _, seed := range examples {
		f.Add(seed)
	}
	f.Add("{name: x, kind: loss, at: ['leaf-1-spine1', 'h[12]', '*:eth1'], probability: 1%}")
	top := net()
	f.Fuzz(func(t *testing.T, text string) {
		var s Spec
		if strict.Decode("fuzz.yaml", []byte(text), &s) != nil || s.Validate() != nil {
			return
		}
		if all, err := Expand(&s, Scope{Topology: top}); err == nil {
			for i := range all {
				if targets, err := Aim(&all[i], Scope{Topology: top}); err != nil || len(targets) == 0 && !s.made() {
					t.Fatalf("%+v became %+v, which resolves to %v, %v", s, all[i], targets, err)
				}
			}
		}
		until := s.Schedule.At + 100*max(s.Schedule.Every, time.Millisecond)
		if until < 0 {
			until = math.MaxInt64
		}
		if s.Schedule.Every > 0 && (until-s.Schedule.At)/s.Schedule.Every > 1000 {
			return
		}
		last := time.Duration(-1)
		for _, w := range s.Schedule.Windows(until) {
			if w.Start <= last || w.End <= w.Start || w.End > until {
				t.Fatalf("%+v until %v: window %v after %v", s.Schedule, until, w, last)
			}
			last = w.End
		}
	})
}
