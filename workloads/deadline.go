package workloads

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// step is one asynchronous call of a sequence.
type step struct {
	what string // "create qp": what an error or a deadline names
	do   func(done func(error))
}

// inOrder does the steps one after the other until one fails, each within limit, and calls
// done once, on the loop l where it must be called itself.
func inOrder(l loop.Loop, limit time.Duration, steps []step, done func(error)) {
	if len(steps) == 0 {
		done(nil)
		return
	}
	s := steps[0]
	within(l, limit, s.what, s.do, func(err error) {
		if err != nil {
			done(err)
			return
		}
		inOrder(l, limit, steps[1:], done)
	})
}

// within calls do and gives up on its answer after limit. Errors say what was being done.
func within(l loop.Loop, limit time.Duration, what string, do func(done func(error)), done func(error)) {
	answered := false
	timer := loop.Timer{Fire: func() {
		answered = true
		done(fmt.Errorf("%s: no answer for %v", what, limit))
	}}
	l.Arm(&timer, l.Now().Add(limit))
	do(func(err error) {
		if answered {
			return // too late, or twice
		}
		answered = true
		l.Disarm(&timer)
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		done(err)
	})
}

// stall notices that nothing has moved for a while. Moving is cheap: the timer is looked at
// when it fires.
type stall struct {
	l     loop.Loop
	limit time.Duration
	moved loop.Time
	timer loop.Timer
	still func() // runs once when nothing has moved for limit
}

func newStall(l loop.Loop, limit time.Duration, still func()) *stall {
	s := &stall{l: l, limit: limit, still: still}
	s.timer.Fire = s.look
	return s
}

func (s *stall) start() {
	s.move()
	s.l.Arm(&s.timer, s.moved.Add(s.limit))
}

func (s *stall) move() { s.moved = s.l.Now() }

func (s *stall) stop() { s.l.Disarm(&s.timer) }

func (s *stall) look() {
	if due := s.moved.Add(s.limit); due > s.l.Now() {
		s.l.Arm(&s.timer, due)
		return
	}
	s.still()
}
