package testbed

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/metrics"
)

// hear takes an event that faults may wait for. The schedule of one that waited for it counts from now on; how says more of the event.
func (r *faultRun) hear(t faults.Trigger, how string) {
	for _, f := range slices.Clone(r.all) {
		began := slices.Contains(f.course.Watches(), t) && f.spec.Schedule.When != nil && *f.spec.Schedule.When == t
		if f.ended || !f.course.Hear(t, r.sinceZero(f)) {
			continue
		}
		what := "ended by event"
		if began {
			what = "triggered"
		}
		r.tell(f, what, "by "+t.String()+how, "")
		r.replan(f)
	}
}

// sinceZero is the time that a fault's schedule counts.
func (r *faultRun) sinceZero(f *oneFault) time.Duration {
	if !r.started {
		return 0
	}
	return max(r.loop.Now().Sub(f.zero), 0)
}

// replan looks again at when a fault begins or ends, after its course has heard of something.
func (r *faultRun) replan(f *oneFault) {
	switch {
	case !r.started || r.ending:
	case f.waiting:
		r.plan(f)
	case f.applied == nil && f.armed:
		r.loop.Disarm(&f.timer)
		f.armed = false
		r.plan(f)
	case f.applied != nil && !f.busy && !f.healing:
		if f.armed {
			r.loop.Disarm(&f.timer)
			f.armed = false
		}
		r.armEnd(f)
	}
}

// awaits says whether a fault still waits for an event.
func (r *faultRun) awaits(t faults.Trigger) bool {
	return slices.ContainsFunc(r.all, func(f *oneFault) bool { return !f.ended && slices.Contains(f.course.Watches(), t) })
}

// triggers are the events of a kind that faults wait for.
func (r *faultRun) triggers(on faults.TriggerKind) (out []faults.Trigger) {
	for _, f := range r.all {
		if f.ended {
			continue
		}
		for _, t := range f.course.Watches() {
			if t.On == on && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// reading looks in a reading of the metrics for what faults wait for.
func (r *faultRun) reading(m metrics.Reading) {
	for _, t := range r.triggers(faults.OnMetric) {
		sel, err := selectorOf(t)
		if err != nil { // the check has refused it
			continue
		}
		value, series := sel.sum(m.Samples)
		if series == 0 {
			r.lastSeen[t] = "there was no such series"
			continue
		}
		r.lastSeen[t] = fmt.Sprintf("last seen: %v, at %v", value, m.At.Round(time.Microsecond))
		if t.Holds(value) {
			r.hear(t, fmt.Sprintf(": it was %v at %v", value, m.At.Round(time.Microsecond)))
		}
	}
}

// inForce tells faults that wait for this one, or for a group of which it is the first.
func (r *faultRun) inForce(f *oneFault) {
	for name := range groupsOf(f.spec.Name) {
		r.hear(faults.Trigger{On: faults.OnFault, Name: name, State: faults.Applied}, "")
	}
}

// healedForGood tells faults that wait for the end of this one, or of a group of which it is the last. What was never in force isn't healed.
func (r *faultRun) healedForGood(f *oneFault) {
	if r.ending {
		return
	}
	for name := range groupsOf(f.spec.Name) {
		struck, open := false, false
		for _, o := range r.all {
			if o.spec.Name == name || strings.HasPrefix(o.spec.Name, name+"/") {
				struck, open = struck || o.result.Strikes > 0, open || !o.ended
			}
		}
		if struck && !open {
			r.hear(faults.Trigger{On: faults.OnFault, Name: name, State: faults.Healed}, "")
		}
	}
}

// groupsOf are a fault's name and those of the groups that it is of, from the innermost on.
func groupsOf(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(name) {
			i := strings.LastIndexByte(name, '/')
			if i < 0 {
				return
			}
			name = name[:i]
		}
	}
}

// selector chooses the series of a metric.
type selector struct {
	name   string
	labels map[int]string // patterns by the label's place
}

// selectorOf are the series that an event on a metric speaks of.
func selectorOf(t faults.Trigger) (s selector, err error) {
	name, rest, _ := strings.Cut(t.Series, "{")
	d, ok := metrics.Standard.Lookup(name)
	if !ok {
		return s, fmt.Errorf("%q: there is no metric %q", t, name)
	}
	s = selector{name: name, labels: map[int]string{}}
	for pair := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		label, value, ok := strings.Cut(pair, "=")
		label, value = strings.TrimSpace(label), strings.Trim(strings.TrimSpace(value), `"`)
		at := slices.Index(d.Labels, label)
		if !ok || at < 0 {
			return s, fmt.Errorf("%q: metric %s has no label %q; it has %s", t, name, label, strings.Join(d.Labels, ", "))
		}
		if _, err := path.Match(value, ""); err != nil {
			return s, fmt.Errorf("%q: label %s: %q is no pattern", t, label, value)
		}
		s.labels[at] = value
	}
	return s, nil
}

// sum is the series' together, and how many there are.
func (s selector) sum(samples []metrics.Sample) (sum float64, series int) {
next:
	for _, x := range samples {
		if x.Name != s.name {
			continue
		}
		for at, pattern := range s.labels {
			if at >= len(x.Labels) {
				continue next
			}
			if ok, _ := path.Match(pattern, x.Labels[at]); !ok {
				continue next
			}
		}
		series++
		sum += x.Value
	}
	return sum, series
}
