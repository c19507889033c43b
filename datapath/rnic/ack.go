package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// response takes an answer of the peer's responder, and completes what it answers at a time.
func (r *requester) response(f *link.Frame, info *roce.Info, at loop.Time) {
	p := &f.Packet
	psn := p.BTH.PSN
	if !r.outstanding(psn) && !r.reopens(psn, p) {
		r.q.dev.count.GhostACKs++ // of something that is answered, or was never asked
		if r.q.dev.cfg.Bugs&BugStaleAck != 0 {
			r.takeStale(p, at)
		}
		return
	}
	switch {
	case r.sel != nil:
		r.selected(f, info, psn, at)
	case info.Operation == roce.OpAcknowledge:
		switch p.AETH.Syndrome.Kind() {
		case roce.SyndromeACK:
			r.acked(psn.Next(), at)
		case roce.SyndromeRNRNAK:
			r.notReady(psn, p.AETH.Syndrome.Value(), at)
		case roce.SyndromeNAK:
			r.refused(psn, roce.NAKCode(p.AETH.Syndrome.Value()), at)
		}
	default:
		r.data(f, info, psn, at)
	}
	// Only now: what is sent next follows from all that the answer said.
	if r.port.state == idle {
		r.kick()
	}
}

// acked takes it that everything before a PSN has been done. It stops at a READ or an atomic
// whose response has not come: that was lost (9.7.5.1.1), and acked says so.
func (r *requester) acked(upTo roce.PSN, at loop.Time) bool {
	for r.una.Before(upTo) {
		w := r.oldest()
		if w.responds() {
			r.implied(at)
			return false
		}
		end := w.end()
		if upTo.Before(end) {
			end = upTo
		}
		r.advance(end, at)
	}
	return true
}

// oldest is the request that una belongs to: all before it has been retired, and there is one, as una is before high.
func (r *requester) oldest() *wqe { return r.ring.front() }

// advance takes una forward, to a PSN of the oldest request or behind it, and completes what is done.
func (r *requester) advance(to roce.PSN, at loop.Time) {
	r.una = to
	q := r.q
	r.retries, r.rnr = q.attr.RetryCnt, q.attr.RNRRetry
	r.rewound, r.deaf = false, false
	if r.deadline != 0 {
		if !r.una.Before(r.due) && (r.una == r.high || r.sel == nil || r.unsent()) {
			r.deadline = 0 // nobody has to answer what is outstanding
		} else if q.dev.cfg.Bugs&BugDeafTimer == 0 {
			r.await(q.dev.loop.Now())
		} else {
			r.deadline = 0
		}
	}
	w := r.oldest()
	if to != w.end() {
		if r.psn.Before(to) {
			r.psn = to
		}
		return
	}
	if r.psn.Before(to) {
		r.psn, r.cur = to, r.ring.head
	}
	r.retire(at)
}

// data takes a READ's response or an atomic's.
func (r *requester) data(f *link.Frame, info *roce.Info, psn roce.PSN, at loop.Time) {
	// It answers all before the request that it belongs to.
	for !psn.Before(r.oldest().end()) {
		w := r.oldest()
		if w.responds() {
			r.implied(at)
			return
		}
		r.advance(w.end(), at)
	}
	w := r.oldest()
	if !w.responds() {
		return // a PSN of a SEND's or a WRITE's: no response to anything
	}
	if psn != r.una && r.q.dev.cfg.Bugs&BugReadGap == 0 {
		r.implied(at)
		return
	}
	status, at := r.deliver(w, f, info, psn, at)
	if status != verbs.Success {
		r.fail(status, at)
		return
	}
	r.advance(psn.Next(), at)
}

// deliver puts what a response brings where its request says, and says when it is there.
func (r *requester) deliver(w *wqe, f *link.Frame, info *roce.Info, psn roce.PSN, at loop.Time) (verbs.Status, loop.Time) {
	if (w.op == verbs.OpRDMARead) != (info.Operation == roce.OpRDMAReadResponse) {
		return verbs.BadRespErr, at
	}
	off := uint32(psn.Sub(w.first)) * r.q.mtu
	if n := min(r.q.mtu, w.length-off); w.op == verbs.OpRDMARead && f.Packet.PayloadLen != int(n) {
		return verbs.BadRespErr, at
	}
	if !r.q.pd.resolve(w.sgl, verbs.LocalWrite) {
		return verbs.LocProtErr, at
	}
	if w.op != verbs.OpRDMARead {
		var b [8]byte
		putWord(b[:], f.Packet.AtomicAckETH)
		addr, kind := scatter(w.sgl, 0, b[:], nil)
		return verbs.Success, r.q.dev.land(at, addr, 8, kind)
	}
	if r.q.dev.cfg.Bugs&BugReadOffset != 0 {
		off = uint32(psn.Sub(r.resumed)) * r.q.mtu
	}
	addr, kind := scatter(w.sgl, off, f.Packet.Payload, f.Content)
	return verbs.Success, r.q.dev.land(at, addr, uint32(f.Packet.PayloadLen), kind)
}
