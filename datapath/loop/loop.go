// Package loop is the clock and the event queue that everything in a host or a switch
// runs on: virtual time for sim, dilated real time for soft and kernel, one interface.
//
// A loop runs its callbacks one at a time, so what lives on a loop needs no locks.
// Post is the only way in from another goroutine. The package imports no other room.
//
// Real is one goroutine on the machine's monotonic clock. Virtual is a scheduler that
// several nodes share, each through a Loop view of its own; nothing in it depends on how
// fast the machine is, nor on how many of its cores are used.
package loop

import "time"

// Time is fabric time in nanoseconds since the fabric started.
type Time int64

// Duration is a span of fabric time.
type Duration = time.Duration

// Add returns t + d.
func (t Time) Add(d Duration) Time { return t + Time(d) }

// Sub returns t − u.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// String writes t as a duration since the fabric started: "1.5ms".
func (t Time) String() string { return Duration(t).String() }

// Loop is one node's clock and event queue. All methods but Post must be called on the
// loop itself (from one of its callbacks).
type Loop interface {
	// Now is the fabric time of the event being handled.
	Now() Time
	// Arm makes t fire at the given time, or as soon as possible when that is past. A timer
	// that is armed already is moved. Timers for the same time fire in the order in which
	// they were armed. Arming allocates nothing.
	Arm(t *Timer, at Time)
	// Disarm stops t and says whether it was armed.
	Disarm(t *Timer) bool
	// Post runs fn on the loop, after what was posted to it before from the same goroutine.
	// It may be called from any goroutine, and never blocks.
	Post(fn func())
}

// Timer is something to do at a time. It belongs to one loop and is meant to be a field of
// what owns it, so that arming allocates nothing. Fire or Do must be set before the first Arm.
// A timer is disarmed when it fires, so what it does may arm it again.
type Timer struct {
	Fire func()
	// Do is run instead of Fire when it is set. It serves many timers that lie in what they are
	// about: one function for all of them stays in the cache, where a closure each would not.
	Do func(*Timer)

	urgent bool  // wakes a node that stands still
	late   bool  // ends late, by a clock that is slow
	past   bool  // armed for a time that had passed already: not late, only at once
	index  int32 // its place in a queue that keeps track, plus one
	at     Time
	queue  *queue // where it is armed; nil when disarmed
}

// Armed says whether the timer will fire.
func (t *Timer) Armed() bool { return t.queue != nil }

// At is when an armed timer fires, by its loop's clock.
func (t *Timer) At() Time { return t.at }

func (t *Timer) run() {
	if t.Do != nil {
		t.Do(t)
		return
	}
	t.Fire()
}

// After arms a new timer that runs fn once d has passed.
func After(l Loop, d Duration, fn func()) *Timer {
	t := &Timer{Fire: fn}
	l.Arm(t, l.Now().Add(d))
	return t
}
