package loop

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// few is how many events a window must have had for the next one to be shared among goroutines:
// below it, meeting costs more than the work.
const few = 64

// windows handles events by windows until stop, asked before each, says so or none is left up
// to a time. It says whether it was stopped.
func (v *Virtual) windows(stop func() bool, until Time) (stopped bool) {
	var c *crew
	if n := min(v.workers, len(v.parts)); n > 1 {
		c = newCrew(v, n)
		defer c.end()
	}
	for !stop() {
		at := v.next()
		if at > until {
			return stop()
		}
		last := until
		if at <= until-Time(v.lookahead) {
			last = at + Time(v.lookahead) - 1
		}
		before := v.Handled()
		if c != nil && v.size >= few {
			c.window(last)
		} else {
			v.takeMail()
			for _, p := range v.parts {
				p.window(last, true)
			}
		}
		v.size = v.Handled() - before
		v.agree()
		for _, fn := range v.between {
			fn()
		}
	}
	return true
}

// takeMail brings what the last round left to where it belongs, on one goroutine.
func (v *Virtual) takeMail() {
	for i, p := range v.parts {
		p.takeMail(i, v.round)
	}
	for _, p := range v.parts {
		p.mailed = never
	}
}

// crew is the goroutines of one run. The first worker is the one who called it.
type crew struct {
	v       *Virtual
	workers []worker
	start   gate         // opens with each window
	done    gate         // opens when the last partition is through
	left    atomic.Int32 // partitions
	last    Time
	over    atomic.Bool
	ended   sync.WaitGroup
	failure atomic.Pointer[string]
}

type worker struct {
	id  uintptr // of the goroutine
	now *part   // that it is in
	_   [48]byte
}

func newCrew(v *Virtual, n int) *crew {
	c := &crew{v: v, workers: make([]worker, n)}
	c.start.init()
	c.done.init()
	for _, p := range v.parts {
		p.taken.Store(0)
	}
	c.workers[0].id = goroutine()
	var ready sync.WaitGroup
	for i := 1; i < n; i++ {
		ready.Add(1)
		c.ended.Go(func() {
			c.workers[i].id = goroutine()
			ready.Done()
			for seen := uint32(0); ; seen++ {
				c.start.wait(seen)
				if c.over.Load() {
					return
				}
				c.work(i, seen+1)
			}
		})
	}
	ready.Wait()
	v.crew.Store(c)
	return c
}

// end ends the goroutines, when all mail has been brought.
func (c *crew) end() {
	c.over.Store(true)
	c.start.open()
	c.ended.Wait()
	c.v.crew.Store(nil)
	c.v.takeMail()
}

// window has all workers handle the events up to a time.
func (c *crew) window(last Time) {
	v := c.v
	for _, p := range v.parts {
		p.mailed = never
	}
	v.round++
	c.last = last
	c.left.Store(int32(len(v.parts)))
	seen := c.done.count.Load()
	v.parallel.Store(true)
	c.start.open()
	c.work(0, c.start.count.Load())
	c.done.wait(seen)
	v.parallel.Store(false)
	if f := c.failure.Load(); f != nil {
		panic(*f)
	}
}

// work is one worker's part of a window: every n-th partition, and then those that no other has
// begun: it may be kept from it by whatever else the machine does. A worker that comes when the window is over
// finds all of them taken.
func (c *crew) work(i int, window uint32) {
	parts := c.v.parts
	for k := i; k < len(parts); k += len(c.workers) {
		c.take(i, k, window)
	}
	for k := range parts {
		c.take(i, k, window)
	}
}

// take handles a partition's window, unless another worker does.
func (c *crew) take(i, k int, window uint32) {
	p := c.v.parts[k]
	if p.taken.Load() == window || !p.taken.CompareAndSwap(window-1, window) {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			s := fmt.Sprintf("%v\n\nin a worker of virtual time:\n%s", r, debug.Stack())
			c.failure.CompareAndSwap(nil, &s)
		}
		c.workers[i].now = nil
		if c.left.Add(-1) == 0 {
			c.done.open()
		}
	}()
	c.workers[i].now = p
	p.takeMail(k, c.v.round-1)
	p.window(c.last, false)
}

// caller is the partition that the calling goroutine is in, nil for one of no worker's.
func (c *crew) caller() *part {
	id := goroutine()
	for i := range c.workers {
		if c.workers[i].id == id {
			return c.workers[i].now
		}
	}
	return nil
}

// gate is a place where goroutines wait for the next opening: awake for a moment, as windows are
// short, then asleep.
type gate struct {
	count atomic.Uint32 // openings so far
	mu    sync.Mutex
	moved sync.Cond
}

// awake is how often a waiting goroutine looks before it sleeps.
const awake = 2000

func (g *gate) init() { g.moved.L = &g.mu }

func (g *gate) open() {
	g.mu.Lock()
	g.count.Add(1)
	g.mu.Unlock()
	g.moved.Broadcast()
}

// wait returns once there were more openings than seen.
func (g *gate) wait(seen uint32) {
	for i := range awake {
		if g.count.Load() != seen {
			return
		}
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
	g.mu.Lock()
	for g.count.Load() == seen {
		g.moved.Wait()
	}
	g.mu.Unlock()
}
