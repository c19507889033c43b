package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Kill ends the program that uses a host's NICs, as the end of its process would: its queue pairs are gone, and it tells nobody. What it
// had open can't be opened again. Peers run into what their queue pairs make of it; one that waits for nothing hears that its peer is gone, as a job's launcher would
// tell it. Flows and collectives with an end there fail, which fails no workload. done is called on the coordinator's loop. Kill may be called from any
// goroutine.
func (e *Engine) Kill(host string, done func()) {
	why := fmt.Sprintf("the process of %s was killed", host)
	e.l.Post(func() {
		left := 1
		answered := func() {
			if left--; left == 0 {
				done()
			}
		}
		for _, n := range e.list {
			if n.Port.Node == host {
				left++
				e.there(n.l, func() { n.dead = why }, answered)
			}
		}
		for _, r := range e.runs {
			left++
			r.kill(host, why, answered)
		}
		answered()
	})
}

// there does something on a host's loop, and then something on the coordinator's.
func (e *Engine) there(l loop.Loop, do, done func()) {
	e.x.Send(e.l, l, func() {
		do()
		e.x.Send(l, e.l, done)
	})
}

// kill is told to a workload on its way. One that is being opened hears of it when it is.
func (r *run) kill(host, why string, done func()) {
	switch r.phase {
	case opening:
		r.killed = append(r.killed, func() { r.kill(host, why, done) })
	case up, flowing:
		r.prog.kill(host, why, done)
	default:
		done()
	}
}

func (p *flows) kill(host, why string, done func()) {
	left := 1
	answered := func() {
		if left--; left == 0 {
			done()
		}
	}
	for _, f := range p.all {
		q, r := f.req, f.resp
		from, to := q.nic.Port.Node == host, r.nic.Port.Node == host
		if !from && !to {
			continue
		}
		f.bereft = true
		left += 2
		p.r.e.there(q.end.l, func() {
			if from {
				q.die(why)
			} else {
				q.bereave(why)
			}
		}, answered)
		p.r.e.there(r.end.l, func() {
			if to {
				r.die(why)
			} else {
				r.bereave(why)
			}
		}, answered)
	}
	answered()
}

// die ends the requester's program.
func (q *requester) die(why string) {
	q.dead = why
	q.end.close(q.f.r.e.cfg.ControlTimeout, func(error) {})
	if q.report != nil {
		q.expire()
	}
}

// expire reports what a dead requester has done.
func (q *requester) expire() {
	if q.state == through {
		return
	}
	q.end.l.Disarm(&q.until)
	q.end.l.Disarm(&q.turn)
	if q.state == idle {
		q.t.start = q.end.l.Now()
	}
	q.t.end = q.end.l.Now()
	q.t.failure = join(q.t.failure, q.dead)
	q.over()
}

// bereave tells that the responder is gone.
func (q *requester) bereave(why string) {
	q.bereft, q.peerOver = why, true
	switch q.state {
	case ending:
		q.over()
	case active:
		q.starve()
	}
}

// starve gives up when the responder is gone and nothing is outstanding that would fail by itself.
func (q *requester) starve() {
	if q.bereft != "" && q.state == active && q.next == q.completed && !q.wants() {
		q.fail("", q.bereft)
	}
}

// die ends the responder's program.
func (p *responder) die(why string) {
	p.dead = why
	p.end.close(p.f.r.e.cfg.ControlTimeout, func(error) {})
	if p.report != nil {
		p.expire()
	}
}

func (p *responder) expire() {
	if p.state == through {
		return
	}
	p.state = through
	p.end.l.Disarm(&p.turn)
	p.end.l.Disarm(&p.quiet)
	p.stall.stop()
	p.t.failure = join(p.t.failure, p.dead)
	p.report(&p.t)
}

// bereave tells that the requester is gone: nothing more will come.
func (p *responder) bereave(why string) {
	p.bereft = why
	p.fail("", why)
}

func (c *collective) kill(host, why string, done func()) {
	left := 1
	answered := func() {
		if left--; left == 0 {
			done()
		}
	}
	for _, e := range c.ranks {
		if e.rank.node == host {
			c.bereft = why
			left++
			c.r.e.there(e.l, e.die, answered)
		}
	}
	if c.done != nil {
		c.mourn()
	}
	answered()
}

// mourn ends a collective that has lost a rank, in case that no queue pair notices.
func (c *collective) mourn() {
	if c.bereft != "" {
		loop.After(c.r.e.l, 2*c.r.spec.retryBudget(), func() {
			if c.r.phase == flowing {
				c.failed("", c.bereft)
			}
		})
	}
}

// die ends a rank's program.
func (e *rankEnd) die() {
	e.down = true
	e.stall.stop()
	e.forget()
	e.l.Disarm(&e.work)
	limit := e.c.r.e.cfg.ControlTimeout
	for _, w := range e.outs {
		if !w.local() {
			w.out.end.close(limit, func(error) {})
		}
		w.out.down = true
		e.l.Disarm(&w.out.copied)
	}
	for _, w := range e.ins {
		if !w.local() {
			w.in.end.close(limit, func(error) {})
		}
	}
}
