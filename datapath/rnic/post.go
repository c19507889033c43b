package rnic

import (
	"encoding/binary"
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// PostSend implements verbs.QP.
func (q *qp) PostSend(wrs ...verbs.SendWR) error {
	for i := range wrs {
		if err := q.postSend(&wrs[i]); err != nil {
			q.rung(i)
			return &verbs.PostError{Posted: i, Err: q.dev.fail(q.name(fmt.Sprintf("post %v to", wrs[i].Op)), err)}
		}
	}
	q.rung(len(wrs))
	return nil
}

// rung has what was posted done, or flushed where the QP can't do it any more.
func (q *qp) rung(n int) {
	if n == 0 {
		return
	}
	now := q.dev.loop.Now()
	if q.state == verbs.Err || q.state == verbs.SQE {
		q.tx.flush(now)
		return
	}
	q.tx.rung(now, n)
}

func (q *qp) postSend(wr *verbs.SendWR) error {
	if err := q.ok(); err != nil {
		return err
	}
	if q.state < verbs.RTS {
		return fmt.Errorf("%w: it is in %v", ErrState, q.state)
	}
	if int(q.tx.ring.len()) >= q.init.MaxSendWR {
		return fmt.Errorf("%w: %d sends are in it", ErrFull, q.init.MaxSendWR)
	}
	var n uint64
	for i := range wr.SGL {
		n += uint64(wr.SGL[i].Length)
	}
	if err := q.check(wr, n); err != nil {
		return err
	}
	w := q.tx.ring.add()
	w.id, w.op, w.flags, w.status = wr.ID, wr.Op, wr.Flags, verbs.Success
	w.started, w.packets, w.length = false, 0, uint32(n)
	w.raddr, w.rkey, w.imm, w.cmpAdd, w.swap = wr.RemoteAddr, wr.RKey, wr.Imm, wr.CompareAdd, wr.Swap
	if w.sgl, _ = setSGL(w.sgl, wr.SGL); wr.Flags&verbs.Inline != 0 {
		if w.inline = q.copyInline(w.inline[:0], wr.SGL); len(w.inline) != int(n) {
			q.tx.ring.tail--
			return fmt.Errorf("%w: inline data from where there is no memory", ErrInvalid)
		}
	}
	switch {
	case wr.Op == verbs.OpSendWithInv || wr.Op == verbs.OpLocalInv:
		w.imm = wr.InvRKey
	case wr.Op == verbs.OpBindMW:
		b := wr.Bind
		w.bind = bindMW{addr: b.Addr, length: b.Length, access: b.Access}
		w.bind.mw, _ = b.MW.(*mw)
		w.bind.mr, _ = b.MR.(*mr)
	}
	if q.kind == verbs.UD {
		w.gram = datagram{ah: wr.AH.(*ah), qpn: wr.RemoteQPN, qkey: wr.RemoteQKey}
	}
	return nil
}

// operations are what each transport can do.
var operations = [...]uint16{
	verbs.RC: 1<<(verbs.OpLocalInv+1) - 1,
	verbs.UC: 1<<verbs.OpSend | 1<<verbs.OpSendWithImm | 1<<verbs.OpRDMAWrite | 1<<verbs.OpRDMAWriteWithImm | 1<<verbs.OpBindMW | 1<<verbs.OpLocalInv,
	verbs.UD: 1<<verbs.OpSend | 1<<verbs.OpSendWithImm,
}

// check refuses what no device could do.
func (q *qp) check(wr *verbs.SendWR, n uint64) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	atomic := wr.Op == verbs.OpAtomicCmpAndSwp || wr.Op == verbs.OpAtomicFetchAndAdd
	switch {
	case wr.Op > verbs.OpLocalInv || operations[q.kind]&(1<<wr.Op) == 0:
		return bad("%v can't do %v", q.kind, wr.Op)
	case len(wr.SGL) > q.init.MaxSendSGE:
		return bad("%d pieces, the QP takes %d", len(wr.SGL), q.init.MaxSendSGE)
	case n > maxMsg:
		return bad("%d bytes, a message has at most %d", n, maxMsg)
	case atomic && n != 8:
		return bad("an atomic's result of %d bytes", n)
	case wr.Op == verbs.OpBindMW && (wr.Bind == nil || wr.Bind.MW == nil):
		return bad("a binding of no window")
	}
	if wr.Flags&verbs.Inline != 0 {
		switch {
		case wr.Op > verbs.OpRDMAWriteWithImm:
			return bad("%v has no inline data", wr.Op)
		case n > uint64(q.init.MaxInlineData):
			return bad("%d bytes inline, the QP takes %d", n, q.init.MaxInlineData)
		}
	}
	if q.kind == verbs.UD {
		h, ok := wr.AH.(*ah)
		switch {
		case !ok || h.dev != q.dev || h.pd != q.pd || h.dead:
			return bad("a datagram needs an address handle of the QP's protection domain")
		case n > uint64(q.dev.mtu):
			return bad("a datagram of %d bytes, the port's MTU is %d", n, q.dev.mtu)
		case wr.RemoteQPN > 0xffffff:
			return bad("destination QP %#x", wr.RemoteQPN)
		}
	}
	return nil
}

// copyInline copies what a list says, whatever its keys.
func (q *qp) copyInline(to []byte, list []verbs.SGE) []byte {
	for _, s := range list {
		b, _ := q.dev.lookup(s.Addr, uint64(s.Length))
		to = append(to, b...)
	}
	return to
}

// PostRecv implements verbs.QP.
func (q *qp) PostRecv(wrs ...verbs.RecvWR) error {
	for i := range wrs {
		if err := q.postRecv(&wrs[i]); err != nil {
			return &verbs.PostError{Posted: i, Err: q.dev.fail(q.name("post a receive to"), err)}
		}
	}
	if q.state == verbs.Err && len(wrs) > 0 {
		q.rx.flush(q.dev.loop.Now())
	}
	return nil
}

func (q *qp) postRecv(wr *verbs.RecvWR) error {
	if err := q.ok(); err != nil {
		return err
	}
	switch {
	case q.srq != nil:
		return fmt.Errorf("%w: it takes its receives from an SRQ", ErrInvalid)
	case q.state == verbs.Reset:
		return fmt.Errorf("%w: it is in RESET", ErrState)
	}
	return q.rx.queue.post(wr, q.init.MaxRecvWR, q.init.MaxRecvSGE)
}

// recvQueue is receives in order: a QP's own, or an SRQ's.
type recvQueue struct{ ring[recvWQE] }

func (r *recvQueue) post(wr *verbs.RecvWR, depth, pieces int) error {
	switch {
	case len(wr.SGL) > pieces:
		return fmt.Errorf("%w: %d pieces, the queue takes %d", ErrInvalid, len(wr.SGL), pieces)
	case int(r.len()) >= depth:
		return fmt.Errorf("%w: %d receives are in it", ErrFull, depth)
	}
	var n uint64
	for i := range wr.SGL {
		n += uint64(wr.SGL[i].Length)
	}
	if n > 1<<32-1 {
		return fmt.Errorf("%w: a receive of %d bytes", ErrInvalid, n)
	}
	w := r.add()
	w.id, w.length, w.bad = wr.ID, uint32(n), false
	w.sgl, _ = setSGL(w.sgl, wr.SGL)
	return nil
}

// word reads and writes eight bytes as the host's processors do.
func word(b []byte) uint64       { return binary.NativeEndian.Uint64(b) }
func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
