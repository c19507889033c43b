package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// made says that the spec stands for others: a sequence, a parallel group or a storm.
func (s *Spec) made() bool { return s.Sequence != nil || s.Parallel != nil || s.Storm != nil }

// limits of what one fault of a file can make.
const (
	maxMade  = 10_000
	maxNests = 8
)

// group judges a spec that has no kind.
func (v *validator) group() {
	s := v.spec
	forms := []string{}
	for _, f := range []struct {
		key   string
		given bool
	}{{"kind", s.Kind != ""}, {"sequence", s.Sequence != nil}, {"parallel", s.Parallel != nil}, {"storm", s.Storm != nil}} {
		if f.given {
			forms = append(forms, f.key)
		}
	}
	if len(forms) > 1 {
		v.wrong(forms[1], "a fault is one of %s", list(forms))
		return
	}
	for i := range keyTable {
		if keyTable[i].given(s) {
			v.wrong(keyTable[i].Name, "a %s doesn't use it: its faults do", forms[0])
		}
	}
	if sch := s.Schedule; sch.For != 0 || sch.Every != 0 || sch.Count != 0 || sch.Jitter != 0 || sch.Ramp != nil || sch.Until != nil {
		v.wrong("schedule", "a %s begins at a time (at) or behind an event (when); the rest is its faults' own", forms[0])
	}
	v.errs = append(v.errs, strict.Under("schedule", s.Schedule.validate()))
	if s.Storm != nil {
		v.selectors(s.At)
		v.errs = append(v.errs, strict.Under("storm", s.Storm.validate(s)))
		return
	}
	if len(s.At) > 0 {
		v.selectors(s.At)
	}
	v.members(forms[0], slices.Concat(s.Sequence, s.Parallel), depth(s))
}

// members judges the faults of a sequence or a parallel group.
func (v *validator) members(form string, all []Spec, nests int) {
	if len(all) == 0 {
		v.wrong(form, "there is no fault in it")
	}
	if nests > maxNests {
		v.wrong(form, "nested too deep: more than %d", maxNests)
		return
	}
	seen := map[string]bool{}
	for i := range all {
		at := fmt.Sprintf("%s[%d]", form, i)
		m := v.spec.member(i, &all[i])
		if seen[m.Name] {
			v.wrong(at+".name", "there are two faults called %q in it", m.Name)
		}
		seen[m.Name] = true
		if strings.Contains(all[i].Name, "/") {
			v.wrong(at+".name", "%q: a fault of a group has no slash in its name", all[i].Name)
		}
		v.errs = append(v.errs, strict.Under(at, m.Validate()))
		if form != "sequence" {
			continue
		}
		if i > 0 && all[i].Schedule.When != nil {
			v.wrong(at+".schedule.when", "a fault of a sequence begins when the one before it is healed")
		}
		if i < len(all)-1 && !ends(&all[i]) {
			v.wrong(at+".schedule", "it never ends, so that nothing comes behind it: give it for (and count), or until")
		}
	}
}

// ends says whether a fault, or what it makes, is over before the run is.
func ends(s *Spec) bool {
	switch {
	case s.Storm != nil:
		return true
	case len(s.Sequence) > 0:
		return ends(&s.Sequence[len(s.Sequence)-1])
	case len(s.Parallel) > 0:
		return !slices.ContainsFunc(s.Parallel, func(m Spec) bool { return !ends(&m) })
	}
	return s.Schedule.Ends() || s.Schedule.Until != nil
}

func depth(s *Spec) (n int) {
	for _, all := range [][]Spec{s.Sequence, s.Parallel} {
		for i := range all {
			n = max(n, depth(&all[i]))
			if n > maxNests {
				return n
			}
		}
	}
	return n + 1
}

// member is the i-th fault of a group as a fault of its own: what it doesn't say about where it strikes the group says.
func (s *Spec) member(i int, m *Spec) Spec {
	out := *m
	if out.Name == "" {
		out.Name = strconv.Itoa(i + 1)
	}
	out.Name = s.Name + "/" + out.Name
	if len(out.At) == 0 {
		out.At, out.Direction, out.OneWay, out.Random = s.At, s.Direction, s.OneWay, s.Random
	}
	out.MayMiss = out.MayMiss || s.MayMiss
	return out
}

// Expand takes sequences, groups and storms apart into faults with a kind, and binds each to the targets in scope (Pin).
// A plain fault comes back alone. Members are called GROUP/MEMBER, by their number from 1 where they have no name. The errors are
// strict.PathErrors.
func Expand(s *Spec, scope Scope) ([]Spec, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var out []Spec
	if err := s.expand(scope, &out); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Spec) expand(scope Scope, out *[]Spec) error {
	if len(*out) > maxMade {
		return fmt.Errorf("it makes more than %d faults", maxMade)
	}
	switch {
	case s.Storm != nil:
		made, err := s.storm(scope)
		*out = append(*out, made...)
		return err
	case s.Parallel != nil:
		for i := range s.Parallel {
			m := s.member(i, &s.Parallel[i])
			m.Schedule.begin(s.Schedule)
			if err := m.expand(scope, out); err != nil {
				return strict.Under(fmt.Sprintf("parallel[%d]", i), err)
			}
		}
		return nil
	case s.Sequence != nil:
		before := s.Schedule
		for i := range s.Sequence {
			m := s.member(i, &s.Sequence[i])
			m.Schedule.begin(before)
			if err := m.expand(scope, out); err != nil {
				return strict.Under(fmt.Sprintf("sequence[%d]", i), err)
			}
			before = Schedule{When: &Trigger{On: OnFault, Name: m.Name, State: Healed}}
		}
		return nil
	}
	p, err := Pin(s, scope)
	if err == nil {
		*out = append(*out, p)
	}
	return err
}

// begin makes a member's schedule count from where its group begins. A member that waits for an event of its own keeps to that.
func (s *Schedule) begin(group Schedule) {
	if s.When == nil {
		s.When = group.When
		s.At += group.At
	}
}

// Lasts is how long a schedule takes from its first window's start to its last one's end; Forever if it never ends.
func (s Schedule) Lasts() time.Duration {
	if !s.Ends() {
		return Forever
	}
	return time.Duration(max(s.Count-1, 0))*s.Every + s.For + s.Jitter
}
