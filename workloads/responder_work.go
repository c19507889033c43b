package workloads

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// quiet is how long nothing must have arrived on UC or UD before what is missing counts as lost.
func (c *Config) quiet() time.Duration { return c.ControlTimeout / 8 }

// work checks or fills what can be, within the budget, and grants what has become free.
func (p *responder) work() {
	if p.state != active {
		return
	}
	left := budget
	if p.f.op == OpRead {
		left = p.fill(left)
		p.grant(p.filled)
	} else if p.f.op == OpAtomic {
		p.grant(p.f.total)
	} else {
		left = p.check(left)
		if p.f.r.spec.ReceiveDelay == 0 {
			p.grant(p.free())
		}
	}
	if left <= 0 {
		p.end.l.Arm(&p.turn, p.end.l.Now())
		return
	}
	p.finish()
}

// free is the first message that the requester may not post yet: those decided (arrived, or
// known to be lost) and checked, and a slot each beyond.
func (p *responder) free() uint64 {
	decided := p.first
	if p.f.svc != verbs.RC {
		decided = p.seen.next - min(p.count-p.first, p.seen.next)
		for i := p.first; i < p.count && p.f.op == OpWrite; i++ { // its slot must not be overwritten
			if a := &p.arrived[i%uint64(len(p.arrived))]; !a.stale {
				decided = min(decided, a.m)
			}
		}
	}
	return decided + uint64(p.f.slots)
}

// check compares arrivals and makes their slots ready again.
func (p *responder) check(left int) int {
	for p.first < p.count && left > 0 {
		a := &p.arrived[p.first%uint64(len(p.arrived))]
		if p.f.r.spec.Verified() && !a.bad && !a.stale {
			n, cost := p.mem.step(p.f.size-p.checked, left)
			p.compare(a, n)
			left -= cost
			if p.checked += n; p.checked < p.f.size {
				break
			}
			p.checked = 0
			p.checkGap(p.y, p.mem, a.slot, a.m)
			p.arm(a.slot, a.m+uint64(p.f.slots))
		}
		if p.cfg.recvWR > 0 {
			p.recvs = append(p.recvs, p.recv(a.slot))
		}
		p.first++
	}
	p.repost()
	return left
}

// compare checks the next n bytes of an arrival.
func (p *responder) compare(a *arrival, n int) {
	got := p.y.slot(p.mem, a.slot).cut(p.data+p.checked, p.data+p.checked+n)
	off, before := uint64(p.checked), p.t.verified
	at := a.m*uint64(p.f.size) + off
	if p.f.svc == verbs.UC && p.f.op == OpWrite && got.check(p.f.stream, at) >= 0 && p.superseded(a) {
		p.t.messages--
		p.t.bytes -= uint64(p.f.size)
		p.t.verified -= off
		p.seen.late++
		a.stale = true
		p.checked = p.f.size - n // there is nothing more to compare
		return
	}
	p.checkSlot(p.f.stream, got, a.m, off, at)
	if a.again {
		p.t.verified = before // it counts once
	}
}

// superseded says whether a UC WRITE's slot holds, packet by packet, this message or another
// that was written to the same address. A UC responder takes the first packet of any message,
// whatever its PSN (rxe: check_psn in drivers/infiniband/sw/rxe/rxe_resp.c), so a packet that
// is late or comes twice lands on top of a later message. That is no wrong byte.
func (p *responder) superseded(a *arrival) bool {
	slot := p.y.slot(p.mem, a.slot)
	for lo := 0; lo < slot.n; lo += p.f.mtu {
		packet := slot.cut(lo, min(lo+p.f.mtu, slot.n))
		known := false
		for k := -supersedeWindow; k <= supersedeWindow && !known; k++ {
			m := int64(a.m) + int64(k)*int64(p.f.slots)
			known = m >= 0 && packet.check(p.f.stream, uint64(m)*uint64(p.f.size)+uint64(lo)) < 0
		}
		if !known {
			return false
		}
	}
	return true
}

// supersedeWindow is how many rounds of the slots ago, or ahead, the other message may be from.
const supersedeWindow = 8

// repost posts the receives whose slots are free again.
func (p *responder) repost() {
	if len(p.recvs) == 0 || p.lossy {
		p.recvs = p.recvs[:0]
		return
	}
	err := p.postRecv(p.recvs)
	p.recvs = p.recvs[:0]
	if err != nil {
		p.fail("", fmt.Sprintf("post receives: %v", err))
	}
}

// fill makes the data of messages to come.
func (p *responder) fill(left int) int {
	for left > 0 && p.filled < p.f.total && p.filled < p.retired+uint64(p.f.slots) {
		if p.f.r.spec.Verified() {
			n, cost := p.mem.step(p.f.size-p.part, left)
			slot := p.y.slot(p.mem, int(p.filled%uint64(p.f.slots)))
			slot.cut(p.part, p.part+n).fill(p.f.stream, p.filled*uint64(p.f.size)+uint64(p.part))
			left -= cost
			if p.part += n; p.part < p.f.size {
				break
			}
			p.part = 0
		}
		p.filled++
	}
	return left
}

// silence counts what has not arrived as lost: UC and UD promise no more.
func (p *responder) silence() {
	p.seen.skip(p.known)
	p.work()
}

// finish ends the flow when everything that was sent is checked.
func (p *responder) finish() {
	if p.state != active || !p.ended || p.first < p.count {
		return
	}
	switch {
	case p.f.op == OpRead || p.f.op == OpAtomic:
	case p.f.svc != verbs.RC:
		if p.seen.next < p.limit {
			return
		}
		p.t.lost, p.t.outOfOrder = p.seen.lost, p.seen.late
	case p.count < p.limit:
		return
	}
	p.audit()
	p.over(note{kind: noteDone})
}

// audit looks at what no message should have touched, and at an atomic's final value.
func (p *responder) audit() {
	for i := range p.y.slots {
		p.checkGap(p.y, p.mem, i, p.limit)
	}
	if p.f.op != OpAtomic || p.f.word != nil || p.lossy {
		return
	}
	want := p.limit * p.f.req.added
	if p.f.r.spec.Atomic == CmpSwap {
		want = p.f.stream.word(p.limit)
	}
	if got := p.y.slot(p.mem, 0).word(); got != want {
		p.violation(p.limit, 0, "atomic", want, got)
	}
}

func (p *responder) fail(status, why string) {
	if p.state != active {
		return
	}
	p.t.status, p.t.failure = status, why
	p.over(note{kind: noteFailed, text: why})
}

func (p *responder) stalled() {
	p.fail("", fmt.Sprintf("%d of %d messages arrived, then nothing for %v", p.count, p.limit, p.stall.limit))
}

func (p *responder) over(word note) {
	p.state = through
	p.end.l.Disarm(&p.turn)
	p.end.l.Disarm(&p.quiet)
	p.stall.stop()
	p.toPeer.send(word)
	p.report(&p.t)
}
