package testbed

import (
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/record"
)

// results judges the faults once they have settled.
func (r *faultRun) results() []record.Fault {
	out := []record.Fault{}
	for _, f := range r.all {
		f.result.Healed = f.clean && f.result.Strikes > 0
		switch {
		case f.spec.MayMiss:
		case f.result.Strikes == 0 && len(f.result.Problems) == 0:
			f.result.Problems = append(f.result.Problems, fmt.Sprintf("it never came into force: %s (may_miss: true allows that)", r.whyNever(f)))
		case f.result.Hits == 0 && f.result.Strikes > 0:
			f.result.Problems = append(f.result.Problems, "it hit nothing (may_miss: true allows that)")
		}
		out = append(out, f.result)
	}
	return out
}

// whyNever says why a fault was never in force.
func (r *faultRun) whyNever(f *oneFault) string {
	s := &f.spec.Schedule
	if watches := f.course.Watches(); s.When != nil && slices.Contains(watches, *s.When) {
		seen := r.lastSeen[*s.When]
		switch {
		case seen != "":
		case s.When.On == faults.OnPacket:
			seen = "none passed"
		case s.When.On == faults.OnFault:
			seen = r.stateOf(s.When.Name)
		default:
			seen = "it was not seen"
		}
		text := fmt.Sprintf("it waited for %q, which never came: %s", s.When, seen)
		if s.Until != nil && !slices.Contains(watches, *s.Until) {
			text += fmt.Sprintf("; %q, which ends it, had come", s.Until)
		}
		return text
	}
	turn, _ := f.course.Turn(0)
	if s.Until != nil && !slices.Contains(f.course.Watches(), *s.Until) {
		return fmt.Sprintf("%q, which ends it, came before it was due", s.Until)
	}
	return fmt.Sprintf("the run was over before %v", turn.Start)
}

// stateOf says in words how far a fault has come.
func (r *faultRun) stateOf(name string) string {
	for _, f := range r.all {
		if f.spec.Name != name {
			continue
		}
		switch {
		case f.result.Strikes == 0:
			return "fault " + name + " was never in force"
		case f.applied != nil || !f.ended:
			return "fault " + name + " was still to be healed for the last time"
		case !f.clean:
			return "fault " + name + " could not be healed"
		}
		return "the run had ended when fault " + name + " was healed"
	}
	return "not seen"
}
