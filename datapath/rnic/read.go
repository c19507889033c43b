package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// resource is what a responder keeps of a READ or an atomic, to answer it, once more if it is asked again.
type resource struct {
	used    bool
	pending bool // a response is due, from next on
	replay  bool // and not for the first time
	atomic  bool
	first   roce.PSN
	next    roce.PSN
	from    roce.PSN // where this round of responses began
	stop    roce.PSN // and before which it ends
	packets int
	msn     uint32
	region  *region // READ: nil when it is of no bytes
	va      uint64
	len     uint32
	value   uint64 // atomic: what it found
}

// resources makes room for as many READs and atomics as the peer may have outstanding. The last ones are kept: the
// peer, which knows nothing of a change in SQD, may ask for their answers again.
func (r *responder) resources(n int) {
	old, newest := r.res, r.newest
	if len(old) == n {
		return
	}
	r.res = make([]resource, n)
	keep := min(n, len(old))
	r.newest, r.turn, r.pending = max(keep-1, 0), 0, 0
	for i := range keep {
		e := &r.res[i]
		if *e = old[(newest-(keep-1-i)+len(old))%len(old)]; e.pending {
			r.pending++
		}
	}
}

// add takes the place of the oldest READ or atomic for a new one, nil when the peer has more
// outstanding than it may.
func (r *responder) add() *resource {
	if len(r.res) == 0 {
		return nil
	}
	i := (r.newest + 1) % len(r.res)
	e := &r.res[i]
	if e.pending {
		if !e.replay {
			return nil
		}
		r.pending-- // the peer has gone on, so nobody waits for it
	}
	r.newest = i
	if r.turn == i {
		r.turn = (i + 1) % len(r.res)
	}
	*e = resource{used: true}
	return e
}

// age is how many READs and atomics came after one.
func (r *responder) age(i int) int { return (r.newest - i + len(r.res)) % len(r.res) }

// respond puts a resource among those with a response due, for the PSNs from one to before another, besides those
// that are due already. The request was checked at a time.
func (r *responder) respond(i int, from, stop roce.PSN, at loop.Time) {
	e := &r.res[i]
	if r.pending == 0 || r.age(i) > r.age(r.turn) {
		r.turn = i
	}
	if !e.pending {
		e.pending = true
		r.pending++
		e.next, e.from, e.stop = from, from, stop
	}
	if from.Before(e.next) {
		e.next, e.from, e.replay = from, from, true
	}
	if e.stop.Before(stop) {
		e.stop = stop
	}
	r.q.dev.port.readyAt(&r.port, at)
}

// read takes a READ's request.
func (r *responder) read(p *roce.Packet, at loop.Time) {
	q := r.q
	q.dev.count.RxReadRequests++
	n := p.RETH.DMALen
	if q.attr.Access&verbs.RemoteRead == 0 || n > maxMsg {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	var g *region
	if n > 0 {
		if g = q.remote(p.RETH.RKey, p.RETH.VA, uint64(n), verbs.RemoteRead); g == nil {
			r.denied(at)
			return
		}
	}
	e := r.add()
	if e == nil {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	e.first, e.packets = p.BTH.PSN, max(1, int((n+q.mtu-1)/q.mtu))
	e.region, e.va, e.len = g, p.RETH.VA, n
	r.executed(e, at)
}

// executed moves the responder behind a READ or an atomic, whose response stands for an ACK as well.
func (r *responder) executed(e *resource, at loop.Time) {
	r.epsn = e.first.Add(e.packets)
	r.told = false
	if r.q.dev.cfg.Bugs&BugMSN == 0 {
		r.msn = (r.msn + 1) & 0xffffff
	}
	e.msn = r.msn
	r.owed, r.ackBy, r.reply.due = 0, 0, false
	r.respond(r.newest, e.first, r.epsn, at)
}

// atomic takes an atomic's request, and does it.
func (r *responder) atomic(p *roce.Packet, info *roce.Info, at loop.Time) {
	q := r.q
	q.dev.count.RxAtomicRequests++
	if q.attr.Access&verbs.RemoteAtomic == 0 || p.AtomicETH.VA%8 != 0 {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	g := q.remote(p.AtomicETH.RKey, p.AtomicETH.VA, 8, verbs.RemoteAtomic)
	if g == nil {
		r.denied(at)
		return
	}
	e := r.add()
	if e == nil {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	b := g.bytes(p.AtomicETH.VA, 8)
	e.atomic, e.first, e.packets, e.value = true, p.BTH.PSN, 1, word(b)
	if info.Operation == roce.OpFetchAdd {
		putWord(b, e.value+p.AtomicETH.SwapAdd)
	} else if e.value == p.AtomicETH.Compare {
		putWord(b, p.AtomicETH.SwapAdd)
	}
	r.executed(e, at)
}

// replay answers a READ or an atomic again, a READ from the packet on that is asked for. What is too old
// to be remembered is dropped: nobody waits for it.
func (r *responder) replay(p *roce.Packet, info *roce.Info, at loop.Time) {
	psn := p.BTH.PSN
	for i := range r.res {
		e := &r.res[i]
		if !e.used || !psn.In(e.first, e.packets) {
			continue
		}
		if e.atomic != (info.Operation != roce.OpRDMAReadRequest) {
			return
		}
		if e.region != nil && !e.region.live() {
			return // it was closed since: who still waits for the READ retries out, and a stray copy of its request harms nobody
		}
		if e.atomic && r.q.dev.cfg.Bugs&BugAtomicTwice != 0 {
			e.again(r.q, p)
		}
		stop := psn.Next()
		if !e.atomic {
			if stop = psn.Add(max(1, int((p.RETH.DMALen+r.q.mtu-1)/r.q.mtu))); stop.After(e.first.Add(e.packets)) {
				stop = e.first.Add(e.packets)
			}
		}
		e.replay = e.replay || !e.pending
		r.respond(i, psn, stop, at)
		return
	}
}

// next implements source: the oldest response that is due, and what waited for the last of them.
func (r *responder) next(now loop.Time) *link.Frame {
	if r.pending == 0 {
		return r.last(now)
	}
	for !r.res[r.turn].pending {
		r.turn = (r.turn + 1) % len(r.res)
	}
	return r.response(&r.res[r.turn], now)
}

// response makes the next packet of a response.
func (r *responder) response(e *resource, now loop.Time) *link.Frame {
	q := r.q
	psn := e.next
	i := psn.Sub(e.first)
	e.next = psn.Next()
	final := e.next == e.stop
	r.port.addr, r.port.message = 0, uint64(e.msn-1)&0xffffff
	if final {
		e.pending = false
		r.pending--
		r.port.spent = r.pending == 0 && !r.reply.due
	}
	if e.atomic {
		f := q.dev.frame(&q.path, roce.RCAtomicAcknowledge, q.attr.DestQPN, psn, 0)
		f.Packet.Payload = nil
		f.Packet.AETH = roce.AETH{Syndrome: roce.ACK(roce.CreditsInvalid), MSN: e.msn}
		f.Packet.AtomicAckETH = e.value
		return f
	}
	op := roce.RCRDMAReadResponseMiddle
	switch {
	case psn == e.from && final:
		op = roce.RCRDMAReadResponseOnly
	case psn == e.from:
		op = roce.RCRDMAReadResponseFirst
	case final:
		op = roce.RCRDMAReadResponseLast
	}
	off := uint32(i) * q.mtu
	n := min(q.mtu, e.len-off)
	if q.dev.cfg.Bugs&BugReplayOffset != 0 && e.replay {
		off = uint32(psn.Sub(e.from)) * q.mtu
	}
	f := q.dev.frame(&q.path, op, q.attr.DestQPN, psn, int(n))
	f.Packet.AETH = roce.AETH{Syndrome: roce.ACK(roce.CreditsInvalid), MSN: e.msn}
	f.Packet.Payload = nil
	if n > 0 {
		if !e.region.live() {
			q.dev.frames.Put(f)
			if !e.replay {
				r.gone(e, psn)
			} else if e.pending {
				e.pending = false
				r.pending--
			}
			return r.next(now)
		}
		e.region.load(f, e.va+uint64(off), uint64(n))
		r.port.addr, r.port.kind = e.region.place(e.va+uint64(off)), e.region.mem.kind
	}
	return f
}

// gone is a region that was taken away while it was read: by its owner, or by a SEND with invalidate that
// was not fenced.
func (r *responder) gone(e *resource, psn roce.PSN) {
	r.msn = (e.msn - 1) & 0xffffff
	for i := range r.res {
		r.res[i].pending = false
	}
	r.pending = 0
	r.epsn = psn
	r.closing, r.reply = true, reply{true, psn, roce.NAK(roce.NAKRemoteAccessError)}
	r.q.dev.count.RespRemoteAccess++
	r.q.dev.event(verbs.AsyncEvent{Type: verbs.EventQPAccessErr, QP: r.q})
}

// last makes the ACK or the NAK that waited for the responses before it.
func (r *responder) last(now loop.Time) *link.Frame {
	if !r.reply.due {
		return nil
	}
	r.reply.due = false
	r.port.addr, r.port.spent = 0, true
	f := r.acknowledge(r.reply.psn, r.reply.syndrome)
	if r.closing {
		r.q.fail(now)
	}
	return f
}
