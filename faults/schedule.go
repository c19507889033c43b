package faults

import (
	"math"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// Schedule says when a fault is in force, in fabric time since the workloads started.
// The zero schedule is from the start to the end of the run.
type Schedule struct {
	At    time.Duration `yaml:"at"`
	For   time.Duration `yaml:"for"`   // 0: until the end of the run
	Every time.Duration `yaml:"every"` // 0: once; else the fault comes back with this period
	Count int           `yaml:"count"` // with Every: how many times; 0: until the end of the run
	// Jitter makes each window begin later by up to as much, drawn evenly under the run's seed and the fault's name.
	Jitter time.Duration `yaml:"jitter"`
	// Ramp changes the fault while it is in force.
	Ramp *Ramp `yaml:"ramp"`
	// When is an event that the schedule counts from, in place of the workloads' start. Until ends the window that is open when
	// its event comes, and all that would come after.
	When  *Trigger `yaml:"when"`
	Until *Trigger `yaml:"until"`
}

// Window is a span of fabric time in which a fault is in force, since the workloads started.
type Window struct {
	Start time.Duration
	End   time.Duration // not included
}

// Forever is the end of a window that the end of the run closes.
const Forever = time.Duration(math.MaxInt64)

// Length is End − Start.
func (w Window) Length() time.Duration { return w.End - w.Start }

// Windows are the spans within [0, until) in which the schedule holds, in order and apart
// from each other. A window that reaches past until is cut there. Jitter and triggers are left out: see Course.
func (s Schedule) Windows(until time.Duration) []Window {
	if s.Every <= 0 {
		return cut(nil, s.At, s.For, until)
	}
	var out []Window
	for i, at := 0, s.At; at < until && (s.Count == 0 || i < s.Count); i++ {
		out = cut(out, at, s.For, until)
		if s.Every >= until-at { // and at + Every may be more than a Duration holds
			break
		}
		at += s.Every
	}
	return out
}

// Nth is the i-th window, from 0, of a schedule whose end isn't known yet. The End of a window
// that lasts until the end of the run is Forever. It is false when there is no such window.
func (s Schedule) Nth(i int) (Window, bool) {
	if i < 0 || i > 0 && s.Every <= 0 || s.Every > 0 && s.Count > 0 && i >= s.Count {
		return Window{}, false
	}
	w := Window{Start: s.At + time.Duration(i)*s.Every, End: Forever}
	if s.For > 0 {
		w.End = w.Start + s.For
	}
	return w, true
}

// Recurs says whether the schedule holds more than once.
func (s Schedule) Recurs() bool { return s.Every > 0 && s.Count != 1 }

// Ends says whether the schedule's last window ends before the run does, whatever happens.
func (s Schedule) Ends() bool { return s.For > 0 && (s.Every == 0 || s.Count > 0) }

func (s Schedule) validateTriggers() error {
	if s.When != nil && s.Until != nil && *s.When == *s.Until {
		return strict.At("until", "the fault would begin and end with the same event")
	}
	return nil
}

// Downs are the spans of a flapping link's window in which it is down: every Period anew,
// from the window's start. Those of an exponential flap come from FlapCycle instead.
func (s *Spec) Downs(w Window) []Window {
	if s.Kind != LinkFlap || s.Period <= 0 {
		return nil
	}
	var out []Window
	for at := w.Start; at < w.End; at += s.Period {
		out = cut(out, at, s.DownTime(), w.End)
		if s.Period >= w.End-at {
			break
		}
	}
	return out
}

// DownTime is how long a flapping link is down in a period, on average where it varies.
func (s *Spec) DownTime() time.Duration {
	if s.Duty > 0 {
		return max(time.Duration(float64(s.Period)*float64(s.Duty)), 1)
	}
	return s.Down
}

// FlapCycle is how long a flapping link is down, and then up, the n-th time from 0 on. seed is the run's, place the link's name.
func (s *Spec) FlapCycle(seed uint64, place string, n int) (down, up time.Duration) {
	down = s.DownTime()
	up = s.Period - down
	if s.Distribution == Exponential {
		d := dice{seed: Seed(seed, "flap", s.Name, place), n: 2 * uint64(n)}
		down = max(time.Duration(float64(down)*d.exponential()), shortest)
		up = max(time.Duration(float64(up)*d.exponential()), shortest)
	}
	return down, up
}

func cut(out []Window, at, length, until time.Duration) []Window {
	if at >= until {
		return out
	}
	end := until
	if length > 0 && length < until-at {
		end = at + length
	}
	return append(out, Window{at, end})
}
