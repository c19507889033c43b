package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// rankEnd is one rank of a collective: an emulated GPU's buffer, and the lanes in and out. It
// lives on its host's loop.
type rankEnd struct {
	c     *collective
	index int
	rank  rank
	nic   *nic
	l     loop.Loop
	y     layout // the buffer's parts
	mem   verbs.Memory
	buf   span // what mem holds
	mr    verbs.MR
	ins   []*lane
	outs  []*lane
	reporter
	t tally

	iteration uint64
	running   bool
	down      bool
	stall     *stall
	finished  func(at loop.Time)
	pace      pace
	work      loop.Timer // filling and checking, piece by piece
}

func newRankEnd(c *collective, index int, rk rank, n *nic, y layout) *rankEnd {
	e := &rankEnd{c: c, index: index, rank: rk, nic: n, l: n.l, y: y}
	e.reporter = reporter{c.r, rk.String(), n.l, &e.t}
	e.stall = newStall(n.l, c.r.stallLimit(), e.stalled)
	return e
}

// open makes and registers the buffer.
func (e *rankEnd) open(done func(error)) {
	limit := e.c.r.e.cfg.ControlTimeout
	within(e.l, limit, e.rank.String()+": register the buffer", func(done func(error)) {
		mem, err := e.nic.alloc(e.y.bytes(), verbs.GPUMemory, false)
		if err != nil {
			done(err)
			return
		}
		e.mem = mem
		e.buf = spanOf(mem)
		e.y.guard(e.buf)
		e.nic.pd.RegMR(mem, 0, e.y.bytes(), verbs.LocalWrite|verbs.RemoteWrite, func(mr verbs.MR, err error) {
			e.mr = mr
			done(err)
		})
	}, done)
}

func (e *rankEnd) close(done func(error)) {
	e.l.Disarm(&e.work)
	e.forget()
	e.stall.stop()
	var steps []step
	if e.mr != nil {
		steps = append(steps, step{e.rank.String() + ": deregister the buffer", e.mr.Dereg})
	}
	for _, w := range e.ins {
		if w.in.own != nil {
			steps = append(steps, step{w.name + ": free what is staged", func(done func(error)) { done(w.in.own.Free()) }})
		}
	}
	if e.mem != nil {
		steps = append(steps, step{e.rank.String() + ": free the buffer", func(done func(error)) { done(e.mem.Free()) }})
	}
	inOrder(e.l, e.c.r.e.cfg.ControlTimeout, steps, func(err error) {
		if e.nic.dead != "" { // there is nobody to do it
			err = nil
		}
		done(err)
	})
}

// part is one of the buffer's parts.
func (e *rankEnd) part(i int) span { return e.y.slot(e.buf, i) }

// begin starts an iteration at a time; finished is called once when every unit has come in
// and every completion has.
func (e *rankEnd) begin(iteration uint64, at loop.Time, finished func(loop.Time)) {
	e.iteration, e.finished = iteration, finished
	e.work.Fire = func() {
		if e.down {
			return
		}
		e.running = true
		if iteration == 0 {
			e.t.start = e.l.Now()
		}
		e.stall.start()
		size := 0
		for _, w := range e.outs {
			for u := range e.c.prog.first(w) {
				size += w.place(u).size
			}
		}
		at := e.through(size)
		for _, w := range e.outs {
			e.allowAt(w, iteration*uint64(w.units)+uint64(e.c.prog.first(w)), at)
		}
		e.advance()
	}
	e.l.Arm(&e.work, at)
}

func (e *rankEnd) moved() { e.stall.move() }

// advance sees whether the iteration is over for this rank.
func (e *rankEnd) advance() {
	if !e.running || e.down || e.waitsFor() != "" {
		return
	}
	e.running = false
	e.stall.stop()
	e.finished(e.l.Now())
}

// waitsFor says what is missing, or nothing.
func (e *rankEnd) waitsFor() string {
	for _, w := range e.ins {
		if limit := (e.iteration + 1) * uint64(w.units); w.in.count < limit {
			return fmt.Sprintf("unit %d of %d of iteration %d on %s", w.in.count%uint64(w.units), w.units, e.iteration, w.name)
		}
	}
	for _, w := range e.outs {
		if limit := (e.iteration + 1) * uint64(w.units); w.out.completed < limit {
			return fmt.Sprintf("the completion of unit %d of %d of iteration %d on %s", w.out.completed%uint64(w.units), w.units, e.iteration, w.name)
		}
	}
	if len(e.pace.queue) > 0 {
		return fmt.Sprintf("its GPU, %d steps behind in iteration %d", len(e.pace.queue), e.iteration)
	}
	return ""
}

func (e *rankEnd) stalled() {
	e.fail("", fmt.Sprintf("%s: nothing moved for %v while waiting for %s", e.rank, e.stall.limit, e.waitsFor()))
}

// fail tells the coordinator, once.
func (e *rankEnd) fail(status, why string) {
	if e.down {
		return
	}
	e.down = true
	e.stall.stop()
	e.forget()
	e.l.Disarm(&e.work)
	e.c.r.e.x.Send(e.l, e.c.r.e.l, func() { e.c.failed(status, why) })
}

// halt stops everything that this rank sends, and calls done when it is flushed.
func (e *rankEnd) halt(done func()) {
	e.down = true
	e.stall.stop()
	e.forget()
	e.l.Disarm(&e.work)
	left := len(e.outs)
	for _, w := range e.outs {
		w.halt(func() {
			if left--; left == 0 {
				done()
			}
		})
	}
}

// pieces runs do over [0, size) in pieces within the budget, then done, leaving the loop in between.
func (e *rankEnd) pieces(size int, do func(from, to int), done func()) {
	at := 0
	e.work.Fire = func() {
		n, _ := e.buf.step(size-at, budget)
		to := at + n
		do(at, to)
		if at = to; at < size {
			e.l.Arm(&e.work, e.l.Now())
			return
		}
		done()
	}
	e.l.Arm(&e.work, e.l.Now())
}

// guards checks what no unit should have touched.
func (e *rankEnd) guards(iteration uint64) {
	for i := range e.y.slots {
		e.checkGap(e.y, e.buf, i, iteration)
	}
}
