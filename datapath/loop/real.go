package loop

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned for work that a closed loop will not do.
var ErrClosed = errors.New("the loop is closed")

// Real is a loop on the machine's monotonic clock, slowed by a dilation. It is one
// goroutine. Loops made with the same dilation and epoch share one fabric time.
//
// Timers are never early. On Linux Go's runtime sleeps in whole milliseconds, so they are up to
// a millisecond of wall time late on an idle machine, which Stats shows. A Source sleeps as exactly as it can.
type Real struct {
	dilation Dilation
	epoch    time.Time
	source   Source // nil: none

	// Owned by the goroutine.
	now    Time
	timers queue
	seq    uint64
	spare  []func()
	clock  *clock // nil: it is right
	late   uint64 // timers that have ended late because it wasn't
	back   Time   // when it last went on after it stood still: what was due before is not late

	mu     sync.Mutex
	inbox  []func()
	closed bool
	again  chan struct{} // closed when a loop that stands still may go on; nil: it doesn't

	wake  chan struct{} // holds one token when the goroutine has something to look at
	ended chan struct{}
	stats recorder

	halted atomic.Bool
}

// NewReal starts a loop. The epoch is the wall time at which fabric time is zero; it must
// carry a monotonic reading (come from time.Now), or fabric time jumps with the wall clock.
func NewReal(dilation Dilation, epoch time.Time) *Real { return NewRealWith(dilation, epoch, nil) }

// NewRealWith starts a loop that waits in a source.
func NewRealWith(dilation Dilation, epoch time.Time, source Source) *Real {
	r := &Real{
		dilation: dilation,
		epoch:    epoch,
		source:   source,
		timers:   queue{track: true},
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
	}
	r.now = r.read()
	go r.run()
	return r
}

// Dilation is the loop's dilation.
func (r *Real) Dilation() Dilation { return r.dilation }

// Epoch is the wall time at which fabric time is zero.
func (r *Real) Epoch() time.Time { return r.epoch }

// Now is the fabric time at which the callback that is running was started; with a Source, the time
// that it says.
func (r *Real) Now() Time {
	if r.clock != nil {
		return r.clock.local(r.now)
	}
	return r.now
}

// Arm implements Loop.
func (r *Real) Arm(t *Timer, at Time) {
	r.seq++
	due := at
	if r.clock != nil {
		at = r.clock.true(at)
	}
	e := entry{at: at, seq: r.seq, t: t}
	switch t.queue {
	case nil:
		r.timers.push(e)
	case &r.timers:
		r.timers.move(e)
	default:
		panic(errElsewhere)
	}
	t.past = at < r.now
	if r.clock != nil {
		t.at, t.late = due, at > r.now
	}
}

// Disarm implements Loop.
func (r *Real) Disarm(t *Timer) bool {
	switch t.queue {
	case nil:
		return false
	case &r.timers:
		r.timers.remove(t)
		return true
	}
	panic(errElsewhere)
}

const errElsewhere = "loop: a timer armed on one loop was armed or disarmed on another"

// Post implements Loop. What is posted after Close is dropped.
func (r *Real) Post(fn func()) { r.post(fn) }

func (r *Real) post(fn func()) bool {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return false
	}
	r.inbox = append(r.inbox, fn)
	r.mu.Unlock()
	r.poke()
	return true
}

func (r *Real) poke() {
	if r.source != nil {
		r.source.Wake()
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Do runs fn on the loop and waits for it. It must not be called on the loop itself. It
// returns the context's error when that ends first (fn may then still run), and ErrClosed.
func (r *Real) Do(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	if !r.post(func() { fn(); close(done) }) {
		return ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close runs what was posted so far, then ends the goroutine and waits for that. Timers
// that are still armed don't fire. It must not be called on the loop itself.
func (r *Real) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.resume()
	r.poke()
	<-r.ended
}

// Stats is how well the loop has kept up so far. It may be called from any goroutine.
func (r *Real) Stats() Stats { return r.stats.snapshot() }

func (r *Real) read() Time { return Time(r.dilation.Fabric(time.Since(r.epoch))) }

func (r *Real) run() {
	defer close(r.ended)
	if r.source != nil {
		r.runWithSource()
		return
	}
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		if closing := r.runPosted(); closing {
			return
		}
		r.fireDue()
		r.sleep(alarm)
	}
}

// runPosted runs what is in the inbox and says whether the loop is to end.
func (r *Real) runPosted() (closing bool) {
	r.mu.Lock()
	batch := r.inbox
	r.inbox = r.spare[:0]
	closing = r.closed
	r.mu.Unlock()
	if len(batch) > 0 {
		start := time.Since(r.epoch)
		for i, fn := range batch {
			batch[i] = nil
			if r.source == nil {
				r.now = Time(r.dilation.Fabric(start))
			}
			fn()
			start = r.ran(start)
		}
		r.stats.posted.Add(uint64(len(batch)))
	}
	r.spare = batch[:0]
	return closing
}

// ran accounts a callback that began at a wall time since the epoch, and returns its end.
func (r *Real) ran(start time.Duration) (end time.Duration) {
	end = time.Since(r.epoch)
	r.stats.run.add(end - start)
	return end
}

// fireDue fires the timers whose time has come. Those that callbacks arm meanwhile wait for
// the next round, so that a timer which keeps arming itself does not keep posts out.
func (r *Real) fireDue() {
	last, start := r.seq, time.Since(r.epoch)
	for r.timers.len() > 0 {
		top := &r.timers.heap[0]
		late := start - r.dilation.Wall(Duration(top.at))
		if late < 0 || top.seq > last {
			return
		}
		due, t := top.at, r.timers.pop()
		r.expired(t)
		if !t.past && due >= r.back {
			r.stats.late.add(late)
		}
		r.now = Time(r.dilation.Fabric(start))
		t.run()
		start = r.ran(start)
	}
}

// expired counts a timer that has ended late by a slow clock.
func (r *Real) expired(t *Timer) {
	if t.late {
		if t.late = false; r.clock != nil {
			r.late++
		}
	}
}

// idle is for how long no timer is due, in wall time: 0 when one is, negative when none is armed.
func (r *Real) idle() time.Duration {
	if r.timers.len() == 0 {
		return -1
	}
	return max(0, r.dilation.Wall(Duration(r.timers.heap[0].at))-time.Since(r.epoch))
}

// sleep waits for a post or the next timer.
func (r *Real) sleep(alarm *time.Timer) {
	wait := r.idle()
	switch {
	case wait < 0:
		<-r.wake
		return
	case wait == 0:
		return
	}
	alarm.Reset(wait)
	select {
	case <-r.wake:
	case <-alarm.C:
	}
}
