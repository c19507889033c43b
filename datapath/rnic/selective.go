package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// selWindow is how many PSNs selective repeat remembers, on either side.
const selWindow = 1024

// selective is what a requester that repeats selectively knows besides: which of the PSNs from una on have come.
// It never goes back: psn stays at high, and what was lost is sent in between, each packet once until the
// timer says that everything may have been lost.
//
// Requests and responses are lost in two ways, with their own evidence. The peer says which requests it holds
// beyond the one that it expects; one that is before another it holds was lost. And a response, or an
// ACK, that speaks for later requests shows that those of READs and atomics before it were.
type selective struct {
	cum       roce.PSN // the peer has executed what is before
	requests  hunt
	responses hunt
	held      bitmap // by PSN: the peer holds the request
	got       bitmap // by PSN: the response's data is here
	stalled   bool   // a timeout since the last progress
}

// hunt is the PSNs to look through for what was lost: from next on, before until.
type hunt struct{ next, until roce.PSN }

// extend has the hunt go on up to a PSN.
func (h *hunt) extend(una, until roce.PSN) {
	if h.next.Before(una) {
		h.next = una
	}
	if h.until.Before(until) {
		h.until = until
	}
}

// bitmap is a bit for each PSN of a window.
type bitmap [selWindow / 64]uint64

func (b *bitmap) has(psn roce.PSN) bool { return b[psn/64%(selWindow/64)]&(1<<(psn%64)) != 0 }
func (b *bitmap) set(psn roce.PSN)      { b[psn/64%(selWindow/64)] |= 1 << (psn % 64) }
func (b *bitmap) unset(psn roce.PSN)    { b[psn/64%(selWindow/64)] &^= 1 << (psn % 64) }

func newSelective(psn roce.PSN) *selective {
	return &selective{cum: psn, requests: hunt{psn, psn}, responses: hunt{psn, psn}}
}

// collides says that a request changes what one that is outstanding uses: packets may come to be written in any
// order, so it waits. A WRITE waits for a SEND that closes windows, too.
func (r *requester) collides(w *wqe) bool {
	if w.op == verbs.OpRDMARead || w.op < verbs.OpRDMAWrite || w.local() || w.length == 0 {
		return false
	}
	if r.q.dev.cfg.Bugs&BugOverlap != 0 {
		return false
	}
	for i := r.ring.head; i != r.cur; i++ {
		o := r.ring.at(i)
		if o.op == verbs.OpSendWithInv {
			return true
		}
		if o.op >= verbs.OpRDMAWrite && !o.local() && o.raddr < w.raddr+uint64(w.length) && w.raddr < o.raddr+uint64(o.length) {
			return true
		}
	}
	return false
}

// find is the request that an outstanding PSN belongs to.
func (r *requester) find(psn roce.PSN) *wqe {
	i := r.ring.head
	for !psn.Before(r.ring.at(i).end()) {
		i++
	}
	return r.ring.at(i)
}

// repair makes a packet of what was lost, nil when nothing is known to be.
func (r *requester) repair(now loop.Time) *link.Frame {
	s := r.sel
	h := &s.requests
	for h.extend(r.una, h.until); h.next.Before(h.until); {
		psn := h.next
		w := r.find(psn)
		if w.responds() {
			h.next = w.end()
			if !w.first.Before(s.cum) && !s.held.has(w.first) && !w.first.Before(r.una) {
				return r.repeat(w, w.first, w.packets, now)
			}
			continue
		}
		if h.next = psn.Next(); !psn.Before(s.cum) && !s.held.has(psn) {
			return r.repeat(w, psn, 1, now)
		}
	}
	h = &s.responses
	for h.extend(r.una, h.until); h.next.Before(h.until); {
		psn := h.next
		w := r.find(psn)
		switch {
		case !w.responds() || !w.first.Before(s.cum):
			h.next = w.end()
		case s.got.has(psn):
			h.next = psn.Next()
		default:
			n := 1
			for next := psn.Next(); next.Before(h.until) && next.Before(w.end()) && n < selWindow && !s.got.has(next); next = next.Next() {
				n++
			}
			h.next = psn.Add(n)
			return r.repeat(w, psn, n, now)
		}
	}
	return nil
}

// repeat makes the packet with a PSN again; of a READ, the request for n packets from it on.
func (r *requester) repeat(w *wqe, psn roce.PSN, n int, now loop.Time) (f *link.Frame) {
	next := r.psn
	r.psn = psn
	if i := psn.Sub(w.first); w.responds() {
		f = r.ask(w, i, n, now)
	} else {
		f = r.push(w, i, now)
	}
	r.psn, r.port.spent = next, false
	return f
}

// selected is response where the QP repeats selectively.
func (r *requester) selected(f *link.Frame, info *roce.Info, psn roce.PSN, at loop.Time) {
	p, s := &f.Packet, r.sel
	switch {
	case p.BTH.Opcode == roce.SRSelectiveAck:
		r.heard(psn, at)
		r.holds(p.ImmDt, p.AtomicAckETH)
	case info.Operation != roce.OpAcknowledge:
		r.bring(f, info, psn, at)
	case p.AETH.Syndrome.Kind() == roce.SyndromeACK:
		s.responses.extend(r.una, psn.Next())
		r.heard(psn.Next(), at)
	case p.AETH.Syndrome.Kind() == roce.SyndromeRNRNAK:
		r.q.dev.count.RNRNakRetryErr++
		s.responses.extend(r.una, psn)
		if r.heard(psn, at); psn.Before(r.una) || r.q.state == verbs.Err {
			return
		}
		s.held.unset(psn)
		s.requests = hunt{psn, r.high} // what came behind it was dropped
		r.holdOff(r.find(psn), p.AETH.Syndrome.Value(), at)
	case p.AETH.Syndrome == roce.NAK(roce.NAKPSNSequenceError): // of a responder that holds nothing
		r.q.dev.count.PacketSeqErr++
		s.requests = hunt{psn, r.high}
		r.heard(psn, at)
	case p.AETH.Syndrome.Kind() == roce.SyndromeNAK:
		s.responses.extend(r.una, psn)
		if r.heard(psn, at); !psn.Before(r.una) && r.una.Before(r.high) {
			r.find(psn).status = nakStatus(roce.NAKCode(p.AETH.Syndrome.Value()))
			r.retire(at)
		}
	}
}

// heard takes it that the peer has executed what is before a PSN.
func (r *requester) heard(cum roce.PSN, at loop.Time) {
	if s := r.sel; s.cum.Before(cum) {
		s.cum, s.stalled = cum, false
		r.retries = r.q.attr.RetryCnt
		if r.deadline != 0 {
			r.await(r.q.dev.loop.Now())
		}
	}
	r.proceed(at)
}

// holds takes it that the peer holds requests: a PSN, and those before it that have their bit.
func (r *requester) holds(newest uint32, before uint64) {
	s, psn := r.sel, roce.PSN(newest)&roce.PSNMask
	span := min(r.high.Sub(r.una), selWindow)
	if !psn.In(r.una, span) {
		return
	}
	s.held.set(psn)
	for i := range 64 {
		if p := psn.Add(-1 - i); before&(1<<i) != 0 && p.In(r.una, span) {
			s.held.set(p)
		}
	}
	s.requests.extend(r.una, psn)
}

// proceed takes una over what is done.
func (r *requester) proceed(at loop.Time) {
	s := r.sel
	for r.una.Before(r.high) && r.ring.len() > 0 {
		w, to := r.oldest(), r.una
		if w.responds() {
			for to.Before(w.end()) && s.got.has(to) {
				s.got.unset(to)
				to = to.Next()
			}
		} else if to = w.end(); s.cum.Before(to) {
			to = s.cum
		}
		if !r.una.Before(to) {
			return
		}
		for psn := r.una; psn != to; psn = psn.Next() {
			s.held.unset(psn)
		}
		s.stalled = false
		r.advance(to, at)
	}
}

// bring takes a response with data, in whatever order it comes.
func (r *requester) bring(f *link.Frame, info *roce.Info, psn roce.PSN, at loop.Time) {
	s, w := r.sel, r.find(psn)
	if !w.responds() {
		return
	}
	if s.cum.Before(w.end()) {
		s.cum = w.end() // it has executed that and all before
	}
	s.responses.extend(r.una, psn)
	if psn.In(r.una, selWindow) && !s.got.has(psn) {
		status, done := r.deliver(w, f, info, psn, at)
		if status != verbs.Success {
			w.status = status
			r.retire(at)
			return
		}
		at = done
		s.got.set(psn)
	}
	r.proceed(at)
}

// again is a timeout: everything that isn't acknowledged may have been lost, but for what the peer said that
// it holds. When that has helped nothing, that too.
func (r *requester) again() {
	s := r.sel
	if s.stalled {
		s.held = bitmap{}
	}
	s.stalled = true
	s.requests = hunt{r.una, r.high}
	s.responses = hunt{r.una, r.high}
	r.due = r.una
}

// unsent says that more is going to be sent, the last of which asks for an answer.
func (r *requester) unsent() bool {
	for _, h := range []*hunt{&r.sel.requests, &r.sel.responses} {
		if h.extend(r.una, h.until); h.next.Before(h.until) {
			return true
		}
	}
	if r.ring.len() == 0 {
		return false
	}
	w := r.ring.at(r.cur)
	return r.cur != r.ring.tail && w.started && r.psn.Before(w.end()) && r.psn.Sub(r.una) < r.q.window()
}
