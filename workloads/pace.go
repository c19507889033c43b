package workloads

import (
	"math/bits"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// Pace is how a flow's messages are let go, beside what its depth and its peer's credit allow. The zero value lets them go as
// soon as those do.
type Pace struct {
	// Rate lets messages go at so many bits of payload a second of fabric time.
	Rate topo.Rate
	// Period lets Burst messages go every Period of fabric time, the first of them at the start. It is exclusive with Rate.
	Period time.Duration
	Burst  uint64
}

// pacer counts which messages are due since a flow's start. Who falls behind by more than slack messages forgets about the rest:
// a burst that found no way doesn't come back as a longer one.
type pacer struct {
	Pace
	size    uint64
	slack   uint64
	skipped uint64 // messages that were due and will never be sent
}

func (p *pacer) on() bool { return p.Rate > 0 || p.Period > 0 }

// cost is the time that a message takes at the rate, times the rate: bits · 10^9.
func (p *pacer) cost() uint64 { return p.size * 8 * uint64(time.Second) }

// due is how many messages may have been let go when the flow has run for a time and next have been.
func (p *pacer) due(since time.Duration, next uint64) uint64 {
	n := uint64(0)
	if p.Rate > 0 {
		hi, lo := bits.Mul64(uint64(since), uint64(p.Rate))
		if hi >= p.cost() { // in centuries
			return next
		}
		n, _ = bits.Div64(hi, lo, p.cost())
		n++
	} else {
		n = (uint64(since/p.Period) + 1) * p.Burst
	}
	if n -= p.skipped; n > next+p.slack {
		p.skipped += n - next - p.slack
		n = next + p.slack
	}
	return n
}

// at is when message n is let go, since the start; false: never.
func (p *pacer) at(n uint64) (time.Duration, bool) {
	const ever = 1 << 62 // ns
	n += p.skipped
	if p.Rate == 0 {
		hi, lo := bits.Mul64(n/p.Burst, uint64(p.Period))
		return time.Duration(lo), hi == 0 && lo < ever
	}
	hi, lo := bits.Mul64(n, p.cost())
	if hi >= uint64(p.Rate) {
		return 0, false
	}
	q, r := bits.Div64(hi, lo, uint64(p.Rate))
	if r > 0 {
		q++
	}
	return time.Duration(q), q < ever
}

// paced says whether message next is due, and sees to it that the requester works on when it is.
func (q *requester) paced() bool {
	if !q.pace.on() {
		return true
	}
	now := q.end.l.Now()
	if q.next < q.pace.due(now.Sub(q.t.start), q.next) {
		return true
	}
	if at, ok := q.pace.at(q.next); ok && !q.release.Armed() {
		q.end.l.Arm(&q.release, max(q.t.start.Add(at), now.Add(1)))
	}
	return false
}

// released goes on with what is due now. Waiting for that was no standing still.
func (q *requester) released() {
	if q.state != active {
		return
	}
	if q.next == q.completed {
		q.stall.move()
	}
	q.work()
}

// Progress is how far a flow has come.
type Progress struct {
	Src, Dst  topo.PortRef
	SrcQPN    uint32
	Size, MTU int    // bytes of a message, and of a packet's payload at most
	Posted    uint64 // messages
	Completed uint64 // of them
	Failure   string // why the flow was given up, if it was
}

// Packets is how many packets the completed messages took, first transmissions alone.
func (p *Progress) Packets() uint64 {
	return p.Completed * uint64(max((p.Size+p.MTU-1)/p.MTU, 1))
}

// Progress asks every flow between NICs, while the engine runs or afterwards. done is called on the coordinator's loop, with the
// flows in the order of the specs. It may be called from any goroutine.
func (e *Engine) Progress(done func([]Progress)) {
	e.l.Post(func() {
		var all []*flow
		for _, r := range e.runs {
			if p, ok := r.prog.(*flows); ok {
				all = append(all, p.all...)
			}
		}
		out, left := make([]Progress, len(all)), len(all)
		if left == 0 {
			done(out)
			return
		}
		for i, f := range all {
			e.x.Send(e.l, f.req.end.l, func() {
				p := f.progress()
				e.x.Send(f.req.end.l, e.l, func() {
					out[i] = p
					if left--; left == 0 {
						done(out)
					}
				})
			})
		}
	})
}

func (f *flow) progress() Progress {
	q := f.req
	return Progress{Src: f.pair.from, Dst: f.pair.to, SrcQPN: q.t.qpn, Size: f.size, MTU: f.mtu, Posted: q.next, Completed: q.completed, Failure: q.t.failure}
}

// Wind is Stop with a patience that is the coordinator's: what is outstanding after so much fabric time is given up. In virtual
// time nothing depends on the machine's speed that way.
func (e *Engine) Wind(patience loop.Duration) {
	e.l.Post(func() {
		if !e.running {
			return
		}
		e.stopped = true
		for _, r := range e.runs {
			r.stop()
		}
		e.patience.Fire = func() {
			for _, r := range e.runs {
				r.abort("stopped before it had wound down")
			}
		}
		e.l.Arm(&e.patience, e.l.Now().Add(patience))
	})
}
