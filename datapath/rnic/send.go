package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// shape is the opcodes of an operation's packets.
type shape struct{ first, middle, last, only roce.Opcode }

// shapes are RC's, by operation; UC's are the same but for the transport.
var shapes = [...]shape{
	verbs.OpSend:             {roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly},
	verbs.OpSendWithImm:      {roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLastWithImmediate, roce.RCSendOnlyWithImmediate},
	verbs.OpSendWithInv:      {roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLastWithInvalidate, roce.RCSendOnlyWithInvalidate},
	verbs.OpRDMAWrite:        {roce.RCRDMAWriteFirst, roce.RCRDMAWriteMiddle, roce.RCRDMAWriteLast, roce.RCRDMAWriteOnly},
	verbs.OpRDMAWriteWithImm: {roce.RCRDMAWriteFirst, roce.RCRDMAWriteMiddle, roce.RCRDMAWriteLastWithImmediate, roce.RCRDMAWriteOnlyWithImmediate},
}

// of is the opcode of packet i of n.
func (s *shape) of(i, n int) roce.Opcode {
	switch {
	case n == 1:
		return s.only
	case i == 0:
		return s.first
	case i == n-1:
		return s.last
	}
	return s.middle
}

// packet makes packet i of a SEND or a WRITE, with the PSN that is next.
func (r *requester) packet(w *wqe, i int, t *path, destQP uint32, refer bool) *link.Frame {
	q := r.q
	off := uint32(i) * q.mtu
	n := min(q.mtu, w.length-off)
	op := shapes[w.op].of(i, w.packets) | roce.Opcode(transports[q.kind])<<5
	write := w.op == verbs.OpRDMAWrite || w.op == verbs.OpRDMAWriteWithImm
	if r.sel != nil && write {
		op |= roce.SRWriteFirst &^ roce.RCRDMAWriteFirst
	}
	f := q.dev.frame(t, op, destQP, r.psn, int(n))
	p := &f.Packet
	if write && (i == 0 || r.sel != nil) {
		p.RETH = roce.RETH{VA: w.raddr + uint64(off), RKey: w.rkey, DMALen: w.length - off}
	}
	if i == w.packets-1 {
		p.ImmDt, p.IETH = w.imm, w.imm
		p.BTH.SE = w.flags&verbs.Solicited != 0
	}
	r.port.message = uint64(r.cur)
	r.port.spent = i == w.packets-1 && r.cur+1 == r.ring.tail
	if w.flags&verbs.Inline != 0 {
		r.port.addr = 0
		p.Payload = room(f, int(n))
		copy(p.Payload, w.inline[off:off+n])
	} else {
		r.port.addr, r.port.kind = gather(f, w.sgl, off, n, refer)
	}
	return f
}

// push makes packet i of an RC SEND or WRITE.
func (r *requester) push(w *wqe, i int, now loop.Time) *link.Frame {
	q := r.q
	f := r.packet(w, i, &q.path, q.attr.DestQPN, true)
	every := q.dev.cfg.Profile.AckRequestEvery
	r.asked++
	if i == w.packets-1 || every > 0 && r.asked >= every || r.psn.Next().Sub(r.una) >= q.window() {
		f.Packet.BTH.AckReq = true
		r.asked = 0
	}
	if i == w.packets-1 && q.dev.cfg.Bugs&BugEarlyCompletion != 0 {
		r.completeEarly(w, now)
	}
	r.sent(1, f.Packet.BTH.AckReq, now)
	return f
}

// ask makes the request of a READ, for n packets of its response from packet i on, or of an atomic.
func (r *requester) ask(w *wqe, i, n int, now loop.Time) *link.Frame {
	q := r.q
	op := roce.RCRDMAReadRequest
	switch w.op {
	case verbs.OpAtomicCmpAndSwp:
		op = roce.RCCmpSwap
	case verbs.OpAtomicFetchAndAdd:
		op = roce.RCFetchAdd
	}
	f := q.dev.frame(&q.path, op, q.attr.DestQPN, r.psn, 0)
	p := &f.Packet
	p.Payload = nil
	p.BTH.AckReq = true
	switch w.op {
	case verbs.OpRDMARead:
		off := uint32(i) * q.mtu
		p.RETH = roce.RETH{VA: w.raddr + uint64(off), RKey: w.rkey, DMALen: min(w.length-off, uint32(n)*q.mtu)}
	case verbs.OpAtomicCmpAndSwp:
		p.AtomicETH = roce.AtomicETH{VA: w.raddr, RKey: w.rkey, SwapAdd: w.swap, Compare: w.cmpAdd}
	default:
		p.AtomicETH = roce.AtomicETH{VA: w.raddr, RKey: w.rkey, SwapAdd: w.cmpAdd}
	}
	r.asked = 0
	r.port.addr, r.port.message = 0, uint64(r.cur)
	r.port.spent = r.cur+1 == r.ring.tail
	r.resumed = r.psn
	r.sent(n, true, now)
	return f
}

// sent takes note of a packet that used up n PSNs, and starts the timer if it asks for an answer.
func (r *requester) sent(n int, asks bool, now loop.Time) {
	if r.psn.Before(r.high) {
		r.q.dev.count.RetransmittedPackets++
	}
	r.psn = r.psn.Add(n)
	if r.psn.After(r.high) {
		r.high = r.psn
	}
	if asks && r.due.Before(r.psn) {
		r.due = r.psn
	}
	if asks || r.deadline == 0 && r.una.Before(r.due) {
		r.await(now)
	}
}

// cast makes packet i of a UC or UD message. With its last the message is done.
func (r *requester) cast(w *wqe, i int, now loop.Time) *link.Frame {
	q := r.q
	t, dest := &q.path, q.attr.DestQPN
	if q.kind == verbs.UD {
		t, dest = &w.gram.ah.path, w.gram.qpn
	}
	f := r.packet(w, i, t, dest, false)
	if q.kind == verbs.UD {
		f.Packet.DETH = roce.DETH{QKey: w.gram.qkey, SrcQP: q.num}
		if w.gram.qkey&(1<<31) != 0 { // 10.2.5: the QP's own is meant
			f.Packet.DETH.QKey = q.attr.QKey
		}
	}
	r.psn = r.psn.Next()
	r.una, r.high = r.psn, r.psn
	if i == w.packets-1 {
		r.cur++
		r.retire(now)
	}
	return f
}
