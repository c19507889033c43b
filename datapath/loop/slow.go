package loop

import (
	"fmt"
	"math/bits"
)

// clock is a loop's clock that runs slow: since a moment at which it was right, ppb billionths of the true time pass on it.
type clock struct {
	since Time
	ppb   uint64
}

const billion = 1_000_000_000

// local is what the clock shows at a true time.
func (c *clock) local(t Time) Time {
	if t <= c.since {
		return t
	}
	hi, lo := bits.Mul64(uint64(t-c.since), c.ppb)
	q, _ := bits.Div64(hi, lo, billion)
	return c.since + Time(q)
}

// true is the first moment at which the clock shows a time. Different times have different moments, in the same order.
func (c *clock) true(local Time) Time {
	if local <= c.since {
		return local
	}
	hi, lo := bits.Mul64(uint64(local-c.since), billion)
	if hi >= c.ppb { // later than there is time
		return never - 1
	}
	q, rest := bits.Div64(hi, lo, c.ppb)
	if rest > 0 {
		q++
	}
	if q > uint64(never-1-c.since) {
		return never - 1
	}
	return c.since + Time(q)
}

// SetClock makes a loop's clock run at a share of the true time from now on, in billionths (1 to a billion, which is no fault). Timers that are armed end
// later then, and Now and what is computed from it fall behind; what arrives does so when it would. With a billion the clock
// is set right, at once. It must be called on the loop, and says whether loops of this kind can.
func SetClock(l Loop, ppb int64) bool {
	if ppb < 1 || ppb > billion {
		panic(fmt.Sprintf("loop: a clock at %d billionths of the true time", ppb))
	}
	switch l := l.(type) {
	case *Node:
		now := l.p.now
		l.clock = rewound(&l.timers, l.clock, now, uint64(ppb))
		if l.clock == nil { // what the true time has passed happens now
			l.floor, l.p.floor = now, now
		}
	case *Real:
		l.clock = rewound(&l.timers, l.clock, l.now, uint64(ppb))
	default:
		return false
	}
	return true
}

// rewound is the clock after a change, with the timers where they belong by it. Their order stays what it was.
func rewound(q *queue, was *clock, now Time, ppb uint64) (c *clock) {
	if ppb < billion {
		c = &clock{now, ppb}
	}
	for i := range q.heap {
		e := &q.heap[i]
		e.at = e.t.at // as it was armed: by the clock
		if e.t.late = false; c != nil {
			e.t.late = e.at > now
			e.at = c.true(e.at)
		}
	}
	return c
}

// Clock says at how many billionths of the true time a loop's clock runs, and how many timers have ended late for that so far. It must be called on
// the loop.
func Clock(l Loop) (ppb int64, late uint64) {
	var c *clock
	switch l := l.(type) {
	case *Node:
		c, late = l.clock, l.late
	case *Real:
		c, late = l.clock, l.late
	}
	if c == nil {
		return billion, late
	}
	return int64(c.ppb), late
}

// TrueTime is the fabric's time when a loop's clock shows a time. It must be called on the loop.
func TrueTime(l Loop, local Time) Time {
	switch l := l.(type) {
	case *Node:
		if l.clock != nil {
			return l.clock.true(local)
		}
	case *Real:
		if l.clock != nil {
			return l.clock.true(local)
		}
	}
	return local
}

// shown is what a loop's clock shows at a true time.
func shown(l Loop, t Time) Time {
	if r, ok := l.(*Real); ok && r.clock != nil {
		return r.clock.local(t)
	}
	return t
}
