package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// responder executes a peer's requests in the order of their PSNs and answers them. READ responses
// and atomics' leave by the port's scheduler, in the order of their requests; ACKs and NAKs never
// overtake them.
type responder struct {
	q     *qp
	port  sender
	queue recvQueue // of a QP without an SRQ

	epsn    roce.PSN // expected next
	msn     uint32
	told    bool // a NAK went out for epsn: whatever else comes beyond it is dropped silently
	came    bool // a request has come since RTR
	closing bool // an error is being answered; nothing more is taken

	doing  roce.Operation // of the message that has begun and not ended; OpUnknown: none
	begun  roce.PSN       // its first PSN
	got    uint32         // bytes of it so far
	region *region        // WRITE: where it goes
	va     uint64
	left   uint32
	placed bool    // the packet at hand has been written already
	recv   recvWQE // the receive in use
	taken  bool

	owed     int // requests that asked for an ACK and haven't one
	ackBy    loop.Time
	ackTimer loop.Timer
	reply    reply // what follows the responses that are pending

	order *reorder // of selective repeat

	res     []resource // the last READs and atomics, a ring
	newest  int
	turn    int // no response of an older one is due
	pending int // of res
}

// reply is an ACK or a NAK that waits for the responses before it.
type reply struct {
	due      bool
	psn      roce.PSN
	syndrome roce.Syndrome
}

func (r *responder) init(q *qp) {
	r.q, r.port.src, r.port.qpn, r.port.responder, r.port.ect = q, r, q.num, true, q.dev.cc.ect
	r.ackTimer.Fire = r.ackDue
}

func (r *responder) begin(psn roce.PSN) { r.epsn = psn }

func (r *responder) reset() {
	r.halt()
	r.queue.head = r.queue.tail
	r.taken = false
	r.epsn, r.msn = 0, 0
}

// halt forgets what is under way.
func (r *responder) halt() {
	r.q.dev.port.forget(&r.port)
	r.q.dev.loop.Disarm(&r.ackTimer)
	r.told, r.came, r.closing, r.doing, r.region = false, false, false, roce.OpUnknown, nil
	r.owed, r.ackBy, r.reply.due = 0, 0, false
	r.release()
	clear(r.res)
	r.pending = 0
}

// request takes a packet of the peer's requester; what it completes is visible at a time.
func (r *responder) request(f *link.Frame, info *roce.Info, at loop.Time) {
	q := r.q
	if q.kind == verbs.UD {
		r.datagram(f, info, at)
		return
	}
	if q.kind == verbs.UC {
		r.unreliable(f, info, at)
		return
	}
	p := &f.Packet
	switch d := p.BTH.PSN.Sub(r.epsn); {
	case d < 0:
		r.duplicate(f, info, at)
		return
	case r.closing:
		return
	case d > 0 && r.q.selective:
		r.ahead(f, info, d, at)
		return
	case d > 0:
		r.gap(at)
		return
	}
	r.establish()
	r.execute(f, info, at)
	if r.order != nil && r.order.n > 0 {
		r.catchUp(at)
	}
}

// establish makes the event of the first request in RTR (11.6.3.1).
func (r *responder) establish() {
	if !r.came {
		r.came = true
		if r.q.state == verbs.RTR {
			r.q.dev.event(verbs.AsyncEvent{Type: verbs.EventCommEst, QP: r.q})
		}
	}
}

// gap is a request beyond the one expected: one NAK says so.
func (r *responder) gap(at loop.Time) {
	r.q.dev.count.OutOfSequence++
	if r.told && r.q.dev.cfg.Bugs&BugNAKEach == 0 {
		return
	}
	if r.q.dev.cfg.Profile.Recovery == GoBack0 && r.doing != roce.OpUnknown {
		r.restart()
	}
	r.told = true
	r.answer(r.epsn, roce.NAK(roce.NAKPSNSequenceError), at)
}

// restart has the message begin anew: go-back-0's way.
func (r *responder) restart() {
	r.epsn, r.doing = r.begun, roce.OpUnknown
}

// execute does the request that was expected.
func (r *responder) execute(f *link.Frame, info *roce.Info, at loop.Time) {
	p := &f.Packet
	if info.Any(roce.Starts) != (r.doing == roce.OpUnknown) || info.Any(roce.Middle|roce.Last) && info.Operation != r.doing {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	switch info.Operation {
	case roce.OpSend:
		r.send(p, info, at)
	case roce.OpRDMAWrite:
		r.write(p, info, at)
	case roce.OpRDMAReadRequest:
		r.read(p, at)
	case roce.OpCmpSwap, roce.OpFetchAdd:
		r.atomic(p, info, at)
	default:
		r.refuse(roce.NAKInvalidRequest, at)
	}
}

// sized says whether a packet of a message carries as much as its place in it demands (9.7.4.1.6).
func (r *responder) sized(info *roce.Info, n int) bool {
	mtu := int(r.q.mtu)
	switch {
	case info.Any(roce.First | roce.Middle):
		return n == mtu
	case info.Any(roce.Last):
		return n > 0 && n <= mtu
	}
	return n <= mtu
}

// passed says that the expected packet has been executed; done, that its message has.
func (r *responder) passed(p *roce.Packet, done bool, at loop.Time) {
	r.epsn = r.epsn.Next()
	r.told = false
	if r.reply.due {
		r.reply = reply{true, p.BTH.PSN, roce.ACK(roce.CreditsInvalid)}
	}
	if done {
		r.doing, r.region = roce.OpUnknown, nil
		r.msn = (r.msn + 1) & 0xffffff
	}
	if p.BTH.AckReq {
		r.owe(at)
	}
}

// send takes a packet of a SEND.
func (r *responder) send(p *roce.Packet, info *roce.Info, at loop.Time) {
	if !r.sized(info, p.PayloadLen) {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	if info.Any(roce.Starts) {
		if !r.take() {
			r.notReady(at)
			return
		}
		r.doing, r.begun, r.got = roce.OpSend, p.BTH.PSN, 0
	}
	status, at := r.place(p, at)
	if status != verbs.Success {
		r.spoil(status, at)
		return
	}
	if !info.Any(roce.Ends) {
		r.passed(p, false, at)
		return
	}
	wc := verbs.WC{Op: verbs.WCRecv, ByteLen: r.got}
	if info.Any(roce.Immediate) {
		wc.Imm, wc.Flags = p.ImmDt, verbs.WithImm
	}
	if info.Any(roce.Invalidate) {
		if r.q.dev.cfg.Bugs&BugInvalidateLate == 0 && !r.q.invalidate(p.IETH) {
			r.denied(at)
			return
		}
		wc.InvRKey, wc.Flags = p.IETH, verbs.WithInv
	}
	r.received(&wc, p.BTH.SE, at)
	r.passed(p, true, at)
}

// place writes a SEND's packet, which may be written at a time, into the receive in use, and says when that is done.
func (r *responder) place(p *roce.Packet, at loop.Time) (verbs.Status, loop.Time) {
	n := uint32(p.PayloadLen)
	switch {
	case n > r.recv.length-r.got:
		return verbs.LocLenErr, at
	case n > 0 && r.recv.bad:
		return verbs.LocProtErr, at
	}
	addr, kind := scatter(r.recv.sgl, r.got, p.Payload, r.q.dev.content)
	r.got += n
	return verbs.Success, r.q.dev.land(at, addr, n, kind)
}

// write takes a packet of a WRITE.
func (r *responder) write(p *roce.Packet, info *roce.Info, at loop.Time) {
	if !r.sized(info, p.PayloadLen) {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	if info.Any(roce.Starts) {
		if !r.aim(p, at) {
			return
		}
	}
	n := uint32(p.PayloadLen)
	if info.Any(roce.Ends) != (n == r.left) || n > r.left || info.Any(roce.HasRETH) && p.RETH.VA != r.va && n > 0 {
		r.refuse(roce.NAKInvalidRequest, at)
		return
	}
	if info.Any(roce.Immediate) && !r.take() {
		r.notReady(at)
		return
	}
	if n > 0 {
		if !r.region.live() {
			r.denied(at)
			return
		}
		switch {
		case r.placed:
		case r.q.dev.cfg.Bugs&BugShortLast != 0 && info.Any(roce.Last) && n < r.q.mtu:
		default:
			r.region.store(r.va, p)
			at = r.q.dev.land(at, r.region.place(r.va), n, r.region.mem.kind)
		}
		r.va += uint64(n)
		r.left -= n
		r.got += n
	}
	if info.Any(roce.Starts) {
		r.doing = roce.OpRDMAWrite
	}
	if info.Any(roce.Immediate) {
		wc := verbs.WC{Op: verbs.WCRecvRDMAWithImm, ByteLen: r.got, Imm: p.ImmDt, Flags: verbs.WithImm}
		r.received(&wc, p.BTH.SE, at)
	}
	r.passed(p, info.Any(roce.Ends), at)
}

// aim begins a WRITE: may it, and where to?
func (r *responder) aim(p *roce.Packet, at loop.Time) bool {
	q := r.q
	q.dev.count.RxWriteRequests++
	if q.attr.Access&verbs.RemoteWrite == 0 || p.RETH.DMALen > maxMsg {
		r.refuse(roce.NAKInvalidRequest, at)
		return false
	}
	r.region = nil
	if p.RETH.DMALen > 0 {
		if r.region = q.remote(p.RETH.RKey, p.RETH.VA, uint64(p.RETH.DMALen), verbs.RemoteWrite); r.region == nil {
			r.denied(at)
			return false
		}
	}
	r.va, r.left, r.got, r.begun = p.RETH.VA, p.RETH.DMALen, 0, p.BTH.PSN
	return true
}

// remote finds what a peer may use through a key, nil when it may not.
func (q *qp) remote(key uint32, va, n uint64, access verbs.Access) *region {
	g := q.dev.keys.find(key)
	if g == nil || g.pd != q.pd || g.qp != nil && g.qp != q || g.access&access == 0 || !g.live() || !g.holds(va, n) {
		return nil
	}
	return g
}

// take has a receive in use, which it may be already, and says whether there is one.
func (r *responder) take() bool {
	if r.taken {
		return true
	}
	q := r.q
	from := &r.queue
	if q.srq != nil {
		from = &q.srq.queue
	}
	if from.len() == 0 {
		return false
	}
	w := from.front()
	// The lists are exchanged, so that neither is lost to its next user.
	r.recv, w.sgl = *w, r.recv.sgl
	from.head++
	r.taken = true
	r.recv.bad = !q.pd.resolve(r.recv.sgl, verbs.LocalWrite)
	if q.srq != nil {
		q.srq.watch()
	}
	return true
}

// received completes the receive in use.
func (r *responder) received(wc *verbs.WC, solicited bool, at loop.Time) {
	wc.ID = r.recv.id
	r.taken = false
	if r.q.dev.hw.trace != nil {
		r.q.completed(true, uint64(r.msn), wc.ByteLen, at)
	}
	r.q.complete(r.q.recvCQ, wc, at, solicited)
}

// flush completes the receives that are left with a flush: an SRQ's are not the QP's.
func (r *responder) flush(at loop.Time) {
	r.halt()
	count := &r.q.dev.count
	if r.taken {
		count.RespCQEFlushError++
		r.received(&verbs.WC{Status: verbs.WRFlushErr}, true, at)
	}
	for r.queue.len() > 0 {
		count.RespCQEFlushError++
		wc := verbs.WC{ID: r.queue.front().id, Status: verbs.WRFlushErr}
		r.queue.head++
		r.q.complete(r.q.recvCQ, &wc, at, true)
	}
}
