package guest

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// clockTolerance is how far the guest's clock may be from the machine's, as a fraction: all
// that is measured in the guest stands on it.
const clockTolerance = 0.01

// Clock is how the guest's clock went against the machine's, both CLOCK_MONOTONIC.
type Clock struct {
	// Ratio is guest time per machine time over all of Over. It is known to within
	// Uncertainty: a reading takes as long as the guest takes to answer.
	Ratio       float64       `json:"ratio"`
	Uncertainty float64       `json:"uncertainty"`
	Over        time.Duration `json:"over_ns"`
	// Problem says when and how far it went wrong, for the first time; empty if it never
	// did.
	Problem string `json:"problem,omitempty"`
}

// clockReading is one answer of the guest to what time it has: its clock stood at guest at
// some moment between sent and got of the machine's.
type clockReading struct {
	sent, got time.Duration // machine time since any one moment
	guest     time.Duration // guest time since any one moment
}

func (r clockReading) width() time.Duration { return r.got - r.sent }

// bounds are the least and the largest ratio of guest to machine time between two readings,
// whatever the moments of the guest's answers were.
func bounds(a, b clockReading) (lo, hi float64) {
	passed := float64(b.guest - a.guest)
	lo, hi = passed/float64(b.got-a.sent), math.Inf(1)
	if least := b.sent - a.got; least > 0 {
		hi = passed / float64(least)
	}
	return lo, hi
}

// clockVerdict is what two readings tell of the guest's clock.
type clockVerdict int

const (
	clockUnknown clockVerdict = iota // too close together for the tolerance
	clockGood
	clockOff
)

func judgeClock(a, b clockReading) clockVerdict {
	switch lo, hi := bounds(a, b); {
	case lo > 1+clockTolerance || hi < 1-clockTolerance:
		return clockOff
	case lo >= 1-clockTolerance && hi <= 1+clockTolerance:
		return clockGood
	}
	return clockUnknown
}

// describeClock says what the clock did between two readings that show it off.
func describeClock(a, b clockReading) string {
	passed, took := b.guest-a.guest, (b.sent+b.got-a.sent-a.got)/2
	way := "fast"
	if passed < took {
		way = "slow"
	}
	return fmt.Sprintf("the guest's clock runs %s: %.3f s passed in it while %.3f s (± %.3f s) passed on the machine, more than %g %% apart",
		way, passed.Seconds(), took.Seconds(), (a.width()+b.width()).Seconds()/2, clockTolerance*100)
}

// clockWatch compares the guest's clock with the machine's as long as the guest lives.
type clockWatch struct {
	epoch time.Time
	mu    sync.Mutex
	first clockReading
	last  clockReading
	off   string
}

func newClockWatch() *clockWatch { return &clockWatch{epoch: time.Now()} }

// read asks the guest for its time.
func (w *clockWatch) read(conn ssh.Conn) (clockReading, error) {
	var r clockReading
	var said clockAnswer
	r.sent = time.Since(w.epoch)
	err := ask(conn, reqClock, &said)
	r.got = time.Since(w.epoch)
	r.guest = said.Monotonic
	return r, err
}

// begin sets what later readings are compared with.
func (w *clockWatch) begin(r clockReading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first, w.last = r, r
}

// add compares a reading with the first, for a clock that drifts, and with the one before, for
// one that jumped.
func (w *clockWatch) add(r clockReading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, before := range []clockReading{w.last, w.first} {
		if w.off == "" && judgeClock(before, r) == clockOff {
			w.off = describeClock(before, r)
		}
	}
	w.last = r
}

// report is what is known by now.
func (w *clockWatch) report() Clock {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := clockOver(w.first, w.last)
	c.Problem = w.off
	return c
}

// clockOver is the clock between two readings; without a ratio where they lie too close together
// for one.
func clockOver(a, b clockReading) Clock {
	if b.sent <= a.got {
		return Clock{}
	}
	lo, hi := bounds(a, b)
	ratio := float64(b.guest-a.guest) / (float64(b.sent+b.got-a.sent-a.got) / 2)
	return Clock{Ratio: ratio, Uncertainty: max(hi-ratio, ratio-lo), Over: b.sent - a.got}
}

const (
	// clockPause lies between the readings at the boot.
	clockPause = 30 * time.Millisecond
	// clockPatience is how long a boot may take to find out how its clock goes. An idle
	// machine takes 0.1 s; one that takes longer than this is left to the readings that go
	// on while the guest lives.
	clockPatience = 5 * time.Second
)

// settle reads the guest's clock until it is known to be good or off, and says how it went. Of
// the readings, those that there are already included, the best is what later ones are compared
// with.
func (w *clockWatch) settle(conn ssh.Conn, readings ...clockReading) (Clock, error) {
	for {
		r, err := w.read(conn)
		if err != nil {
			return Clock{}, err
		}
		best, over, good := r, readings[0], r.got-readings[0].sent > clockPatience
		for _, before := range readings {
			if before.width() < best.width() {
				best = before
			}
			switch judgeClock(before, r) {
			case clockOff:
				return Clock{}, &clockError{describeClock(before, r)}
			case clockGood:
				over, good = before, true
			}
		}
		if good {
			w.begin(best)
			w.add(r)
			return clockOver(over, r), nil
		}
		readings = append(readings, r)
		time.Sleep(clockPause)
	}
}

// clockError is a guest whose clock is off.
type clockError struct{ what string }

func (e *clockError) Error() string { return e.what }

// Clock says how the guest's clock has gone until now. It asks the guest where it still
// lives.
func (g *Guest) Clock() Clock {
	if g.clock == nil {
		return Clock{}
	}
	if r, err := g.clock.read(g.conn); err == nil {
		g.clock.add(r)
	}
	return g.clock.report()
}
