package workloads

import (
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// Step says how long a GPU takes for a step of a collective over so many bytes: none, where nothing is wrong with it. It is asked on the loop of the
// GPU's NIC, once a step. A step is what lets a GPU's sending go on: the start of an iteration, and in an all-reduce the adding, or the taking, of a
// slice that has come in. A GPU does one step after the other.
type Step func(nic topo.PortRef, gpu, bytes int) time.Duration

// pace is the steps that a rank's GPU is not through with, on the rank's loop.
type pace struct {
	free  loop.Time // when it is through with the last
	queue []letGo
	timer loop.Timer
}

// letGo is what a step lets a lane do when it is over.
type letGo struct {
	at loop.Time
	w  *lane
	to uint64
}

// through is when the GPU is through with a step that can begin now.
func (e *rankEnd) through(bytes int) loop.Time {
	now := e.l.Now()
	step := e.c.r.e.cfg.Step
	if step == nil {
		return now
	}
	e.pace.free = max(e.pace.free, now).Add(step(e.rank.port, e.rank.gpu, bytes))
	return e.pace.free
}

// allowAt lets a lane's units below a number go when a step is over.
func (e *rankEnd) allowAt(w *lane, to uint64, at loop.Time) {
	p := &e.pace
	if at <= e.l.Now() && len(p.queue) == 0 {
		w.allow(to)
		return
	}
	if p.queue = append(p.queue, letGo{at, w, to}); len(p.queue) == 1 {
		p.timer.Fire = e.stepped
		e.l.Arm(&p.timer, at)
	}
}

// stepped is called when a step is over.
func (e *rankEnd) stepped() {
	p := &e.pace
	for len(p.queue) > 0 && p.queue[0].at <= e.l.Now() {
		g := p.queue[0]
		p.queue = p.queue[1:]
		if g.w.allow(g.to); e.down {
			return
		}
	}
	if len(p.queue) > 0 {
		e.l.Arm(&p.timer, p.queue[0].at)
	} else {
		p.queue = nil
	}
	e.moved()
	e.advance()
}

// forget drops the steps that are under way.
func (e *rankEnd) forget() {
	e.l.Disarm(&e.pace.timer)
	e.pace.queue = nil
}
