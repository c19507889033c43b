package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
)

// gather waits on the coordinator's loop until a number of hosts have answered.
type gather struct {
	e     *Engine
	phase int
	left  int
	then  func() // what follows the phase
	errs  []error
}

// answer is called on a host's loop, once a host; note, if any, runs on the coordinator's.
type answer func(from loop.Loop, err error, note func())

// expect begins a phase of n answers, after which then runs. Answers to an earlier phase that
// come late are dropped.
func (g *gather) expect(n int, then func()) answer {
	g.phase++
	phase := g.phase
	g.then = then
	if g.left = n; n == 0 {
		then()
	}
	return func(from loop.Loop, err error, note func()) {
		g.e.x.Send(from, g.e.l, func() {
			if g.phase != phase {
				return
			}
			if note != nil {
				note()
			}
			if err != nil {
				g.errs = append(g.errs, err)
			}
			g.answered()
		})
	}
}

// answered counts one answer that the phase waits for less.
func (g *gather) answered() {
	if g.left--; g.left == 0 {
		g.then()
	}
}

// hold has the phase last until free is called, on the coordinator's loop.
func (g *gather) hold() (free func()) {
	phase := g.phase
	g.left++
	return func() {
		if g.phase == phase {
			g.answered()
		}
	}
}

// err is the first error so far, and how many others there are.
func (g *gather) err() error {
	switch len(g.errs) {
	case 0:
		return nil
	case 1:
		return g.errs[0]
	}
	return fmt.Errorf("%w (and %d more errors)", g.errs[0], len(g.errs)-1)
}

// connectEnds opens two ends on their loops, each with its own preparation behind it, lets them
// exchange addresses, and brings them to RTS. Each end answers once.
func connectEnds(e *Engine, a, b *end, prepareA, prepareB func() error, done answer) {
	openA, openB := openEnd(e, a, b, prepareA, done), openEnd(e, b, a, prepareB, done)
	e.x.Send(e.l, a.l, openA)
	e.x.Send(e.l, b.l, openB)
}

// openEnd returns what opens an end, to be called on its loop.
func openEnd(e *Engine, d, peer *end, prepare func() error, done answer) func() {
	limit := e.cfg.ControlTimeout
	var told *address // the peer's, which may come first
	opened := false
	join := func() {
		if opened && told != nil {
			d.connect(*told, limit, func(err error) { done(d.l, err, nil) })
		}
	}
	d.onAddress = func(a address) { told = &a; join() }
	return func() {
		d.open(limit, func(err error) {
			if err == nil {
				err = prepare()
			}
			a := address{err: err}
			if err != nil {
				done(d.l, err, nil)
			} else {
				a, opened = d.address(), true
			}
			e.x.Send(d.l, peer.l, func() { peer.onAddress(a) })
			join()
		})
	}
}
