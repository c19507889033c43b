package faults

import (
	"slices"
	"time"
)

// Turn is a window with the fault as it is in it: a ramp's steps are turns of their own, one right behind the other.
type Turn struct {
	Window
	Spec Spec
}

// State is what a Course knows of a turn.
type State uint8

// The states.
const (
	Due     State = iota // it begins at its Start
	Waiting              // for an event; when it begins isn't known
	Over                 // there is no such turn
)

// Course is when a fault strikes and heals over a run: its schedule, as far as events have said when. It is told of events
// and asked for turns, and knows no clock. It draws a schedule's jitter under a seed.
type Course struct {
	spec  *Spec
	seed  uint64
	begun bool          // it is known when At counts from
	zero  time.Duration // that moment
	ended bool          // Until has come
	end   time.Duration
}

// NewCourse makes the course of a fault that Expand gave. seed is the run's.
func NewCourse(s *Spec, seed uint64) *Course {
	return &Course{spec: s, seed: Seed(seed, "schedule", s.Name), begun: s.Schedule.When == nil}
}

// Watches are the events that the course wants to hear of.
func (c *Course) Watches() (out []Trigger) {
	if s := &c.spec.Schedule; !c.begun {
		out = append(out, *s.When)
	}
	if s := &c.spec.Schedule; s.Until != nil && !c.ended {
		out = append(out, *s.Until)
	}
	return out
}

// Hear tells of an event at a moment since the workloads started. It says whether turns changed: one that was waiting is
// due, or one that is open has ended.
func (c *Course) Hear(t Trigger, at time.Duration) (changed bool) {
	if s := &c.spec.Schedule; !c.begun && *s.When == t {
		c.begun, c.zero, changed = true, at, true
	}
	if s := &c.spec.Schedule; s.Until != nil && !c.ended && *s.Until == t {
		c.ended, c.end, changed = true, at, true
	}
	return changed
}

// Turn is the i-th, from 0 on. What of it lies behind the end that an event has set is cut off.
func (c *Course) Turn(i int) (Turn, State) {
	s := &c.spec.Schedule
	n, k, steps := i, 0, 1
	if s.Ramp != nil {
		steps = s.Ramp.steps()
		n, k = i/steps, i%steps
	}
	w, ok := s.Nth(n)
	if !ok || i < 0 {
		return Turn{}, Over
	}
	if !c.begun {
		if c.ended {
			return Turn{}, Over
		}
		return Turn{Window: w, Spec: *c.spec}, Waiting
	}
	late := c.zero
	if s.Jitter > 0 {
		late += time.Duration(Draw(c.seed, 0, uint64(n)) % uint64(s.Jitter+1))
	}
	w.Start += late
	if w.End != Forever {
		w.End += late
	}
	t := Turn{Window: w, Spec: *c.spec}
	if s.Ramp != nil {
		length := w.Length() / time.Duration(steps)
		t.Start = w.Start + time.Duration(k)*length
		if k < steps-1 {
			t.End = t.Start + length
		}
		t.Spec = c.spec.stepOf(k)
	}
	if c.ended {
		if t.Start >= c.end {
			return Turn{}, Over
		}
		t.End = min(t.End, c.end)
	}
	return t, Due
}

// Triggers are the events that some faults wait for, each once, in the order of the faults.
func Triggers(specs []Spec) (out []Trigger) {
	for i := range specs {
		for _, t := range []*Trigger{specs[i].Schedule.When, specs[i].Schedule.Until} {
			if t != nil && !slices.Contains(out, *t) {
				out = append(out, *t)
			}
		}
	}
	return out
}
