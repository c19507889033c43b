package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// requester sends what is in a QP's send queue and completes it.
//
//	head               cur                 tail      of the queue
//	 | done? una … psn  | not yet started   |
//	                        … high                   after going back psn is before high
//
// Everything before una is acknowledged, and psn is sent next. Requests leave the queue at its
// head, in order. Reliable connections go back by setting psn and cur to una and head.
type requester struct {
	q    *qp
	port sender
	ring ring[wqe]
	cur  uint32
	psn  roce.PSN
	una  roce.PSN
	high roce.PSN // the first PSN never sent

	sel *selective // nil: go back

	due   roce.PSN // an answer is due to what is before: a packet asked for it
	asked int      // packets since the last that asked for an ACK
	reads int      // READs and atomics outstanding

	resumed roce.PSN // where the last READ request began; for BugReadOffset

	retries  uint8
	rnr      uint8
	waiting  bool      // after an RNR NAK
	rewound  bool      // gone back to una, for a reason other than a timeout
	deaf     bool      // gone back, and heeds no NAK until it is answered: Profile.OneNAK
	notify   bool      // make the event SQ_DRAINED
	deadline loop.Time // of the ACK awaited; 0: none is
	timer    loop.Timer
	delay    loop.Timer // until the end of an RNR NAK's delay
	wakeup   loop.Timer // until a WQE has been fetched
}

func (r *requester) init(q *qp) {
	r.q, r.port.src, r.port.qpn, r.port.ect = q, r, q.num, q.dev.cc.ect && q.kind != verbs.UD
	r.timer.Fire, r.delay.Fire, r.wakeup.Fire = r.expire, r.resumeAfterRNR, r.kick
}

func (r *requester) begin(psn roce.PSN) {
	r.psn, r.una, r.high, r.due, r.sel = psn, psn, psn, psn, nil
	if r.q.selective {
		r.sel = newSelective(psn)
	}
}

func (r *requester) reset() {
	r.halt()
	r.ring.head = r.ring.tail
	r.cur = r.ring.head
	r.begin(0)
}

// halt stops all that is under way.
func (r *requester) halt() {
	l := r.q.dev.loop
	r.q.dev.port.forget(&r.port)
	l.Disarm(&r.timer)
	l.Disarm(&r.delay)
	l.Disarm(&r.wakeup)
	r.deadline, r.waiting, r.rewound, r.deaf, r.notify, r.asked, r.reads = 0, false, false, false, false, 0, 0
}

// resume is the state RTS.
func (r *requester) resume() {
	r.retries, r.rnr = r.q.attr.RetryCnt, r.q.attr.RNRRetry
	r.kick()
}

// kick has the port ask for packets, if there may be any.
func (r *requester) kick() {
	if !r.waiting && (r.cur != r.ring.tail || r.sel != nil && r.ring.len() > 0) {
		r.q.dev.port.ready(&r.port)
	}
}

// rung is told that n requests were posted.
func (r *requester) rung(now loop.Time, n int) {
	at, each := r.q.dev.hw.doorbell(now, n)
	for i, ready := r.ring.tail-uint32(n), at; i != r.ring.tail; i++ {
		r.ring.at(i).ready = ready
		ready = ready.Add(each)
	}
	if r.q.dev.hw.trace != nil {
		r.posted(now, n)
	}
	if at <= now {
		r.kick()
	} else if !r.wakeup.Armed() {
		r.q.dev.loop.Arm(&r.wakeup, at)
	}
}

// idle says that nothing is under way: in SQD, that the queue has drained.
func (r *requester) idle() bool {
	return r.ring.len() == 0 || !r.ring.front().started
}

// drain is the state SQD: what was started is finished, nothing else is begun.
func (r *requester) drain(notify bool) {
	r.notify = notify
	r.drained()
}

func (r *requester) drained() {
	if r.notify && r.q.state == verbs.SQD && r.idle() {
		r.notify = false
		r.q.dev.event(verbs.AsyncEvent{Type: verbs.EventSQDrained, QP: r.q})
	}
}

// next implements source.
func (r *requester) next(now loop.Time) *link.Frame {
	q := r.q
	if r.sel != nil && !r.waiting && (q.state == verbs.RTS || q.state == verbs.SQD) {
		if f := r.repair(now); f != nil {
			return f
		}
		if r.una.Before(r.high) && r.deadline == 0 && !r.unsent() {
			r.await(now) // the peer holds all of it, or so it said
		}
	}
	for r.cur != r.ring.tail && !r.waiting && (q.state == verbs.RTS || q.state == verbs.SQD) {
		w := r.ring.at(r.cur)
		if !w.started && !r.start(w, now) {
			return nil
		}
		if w.status != verbs.Success {
			return nil
		}
		i := r.psn.Sub(w.first)
		if i >= w.packets {
			r.cur++
			if w.packets == 0 {
				r.retire(now)
			}
			continue
		}
		if q.kind != verbs.RC {
			return r.cast(w, i, now)
		}
		if r.psn.Sub(r.una) >= q.window() {
			return nil
		}
		if w.responds() {
			return r.ask(w, i, w.packets-i, now)
		}
		return r.push(w, i, now)
	}
	return nil
}

// maxOutstanding is how many PSNs may be outstanding at most, so that all of them and a message as
// long as can be come before half the PSNs are used up.
const maxOutstanding = 1 << 21

// window is how many PSNs may be outstanding.
func (q *qp) window() int {
	most := maxOutstanding
	if q.tx.sel != nil {
		most = selWindow
	}
	if n := q.dev.cfg.Profile.MaxUnacked; n > 0 {
		return min(n, most)
	}
	return most
}

// start begins a request: it says whether it can, and gives it its PSNs. A request that is at fault
// has a status then and takes none; so has one that the device does by itself.
func (r *requester) start(w *wqe, now loop.Time) bool {
	q := r.q
	switch {
	case q.state != verbs.RTS:
		return false
	case w.ready > now:
		if !r.wakeup.Armed() {
			q.dev.loop.Arm(&r.wakeup, w.ready)
		}
		return false
	case w.flags&verbs.Fence != 0 && r.reads > 0 && q.dev.cfg.Bugs&BugLostFence == 0:
		return false
	case w.responds() && r.reads >= q.attr.MaxRDAtomic && r.reads > 0:
		return false
	case r.sel != nil && r.collides(w):
		return false
	}
	w.started, w.first, w.packets = true, r.psn, 0
	if w.local() {
		w.status = q.perform(w)
	} else {
		w.status = q.admit(w)
	}
	if w.status != verbs.Success {
		r.retire(now)
		return true
	}
	if w.local() {
		return true
	}
	w.packets = max(1, int((w.length+q.mtu-1)/q.mtu))
	if w.responds() {
		r.reads++
	}
	return true
}

// admit checks a request before its first packet.
func (q *qp) admit(w *wqe) verbs.Status {
	access := verbs.Access(0)
	if w.responds() {
		if q.attr.MaxRDAtomic == 0 {
			return verbs.LocQPOpErr
		}
		access = verbs.LocalWrite
	}
	if w.flags&verbs.Inline == 0 && !q.pd.resolve(w.sgl, access) {
		return verbs.LocProtErr
	}
	return verbs.Success
}

// perform does what needs no packet.
func (q *qp) perform(w *wqe) verbs.Status {
	switch {
	case w.op == verbs.OpLocalInv && !q.invalidate(w.imm):
		return verbs.LocQPOpErr
	case w.op == verbs.OpBindMW && (w.bind.mw == nil || !w.bind.mw.bind(q, &w.bind)):
		return verbs.MWBindErr
	}
	return verbs.Success
}

// retire completes what is done at the head of the queue.
func (r *requester) retire(at loop.Time) {
	for r.ring.len() > 0 {
		w := r.ring.front()
		switch {
		case !w.started:
		case w.status != verbs.Success:
			r.fail(w.status, at)
			return
		case w.packets == 0 || !r.una.Before(w.end()):
			r.succeed(w, at)
			continue
		}
		break
	}
	r.drained()
}

// succeed completes the request at the head.
func (r *requester) succeed(w *wqe, at loop.Time) {
	if w.responds() {
		r.reads--
	}
	signaled := w.flags&verbs.Signaled != 0 || r.q.init.SignalAll || r.q.dev.cfg.Bugs&BugUnsignaled != 0
	wc := verbs.WC{ID: w.id, Op: wcOpcodes[w.op], ByteLen: w.length}
	if r.ring.head == r.cur {
		r.cur++
	}
	r.ring.head++
	if r.q.dev.hw.trace != nil {
		r.q.completed(false, uint64(r.ring.head-1), wc.ByteLen, at)
	}
	if signaled {
		r.q.complete(r.q.sendCQ, &wc, at, false)
	}
}

var wcOpcodes = [...]verbs.WCOpcode{
	verbs.OpSend: verbs.WCSend, verbs.OpSendWithImm: verbs.WCSend, verbs.OpSendWithInv: verbs.WCSend,
	verbs.OpRDMAWrite: verbs.WCRDMAWrite, verbs.OpRDMAWriteWithImm: verbs.WCRDMAWrite, verbs.OpRDMARead: verbs.WCRDMARead,
	verbs.OpAtomicCmpAndSwp: verbs.WCCompSwap, verbs.OpAtomicFetchAndAdd: verbs.WCFetchAdd,
	verbs.OpBindMW: verbs.WCBindMW, verbs.OpLocalInv: verbs.WCLocalInv,
}

// fail completes the request at the head with an error, and takes the QP to ERR; UC and UD go to SQE,
// where receiving goes on (10.3.1.6).
func (r *requester) fail(status verbs.Status, at loop.Time) {
	q := r.q
	w := r.ring.front()
	wc := verbs.WC{ID: w.id, Status: status}
	q.dev.count.ReqCQEError++
	switch status {
	case verbs.RemInvReqErr:
		q.dev.count.ReqRemoteInvalid++
	case verbs.RemAccessErr:
		q.dev.count.ReqRemoteAccess++
	}
	if r.ring.head == r.cur {
		r.cur++
	}
	r.ring.head++
	q.complete(q.sendCQ, &wc, at, false)
	if q.kind == verbs.RC {
		q.fail(at)
	} else if q.state == verbs.RTS || q.state == verbs.SQD {
		q.state = verbs.SQE
		r.flush(at)
	}
}

// flush completes all that is left with a flush.
func (r *requester) flush(at loop.Time) {
	r.halt()
	for r.ring.len() > 0 {
		wc := verbs.WC{ID: r.ring.front().id, Status: verbs.WRFlushErr}
		r.q.dev.count.ReqCQEFlushError++
		r.ring.head++
		r.cur = r.ring.head
		r.q.complete(r.q.sendCQ, &wc, at, false)
	}
	r.cur = r.ring.head
}
