package faults

import (
	"math"
	"time"
)

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
// from each other. A window that reaches past until is cut there.
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

// Downs are the spans of a flapping link's window in which it is down: every Period anew,
// from the window's start.
func (s *Spec) Downs(w Window) []Window {
	if s.Kind != LinkFlap || s.Period <= 0 {
		return nil
	}
	var out []Window
	for at := w.Start; at < w.End; at += s.Period {
		out = cut(out, at, s.Down, w.End)
		if s.Period >= w.End-at {
			break
		}
	}
	return out
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
