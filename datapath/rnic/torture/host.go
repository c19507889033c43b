package torture

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// host is a device and what it has to do.
type host struct {
	r    *pair
	i    int
	node *loop.Node
	addr roce.Addr
	dev  *rnic.Device
	pd   verbs.PD
	cq   verbs.CQ
	srq  verbs.SRQ
	mem  verbs.Memory
	mr   verbs.MR
	qp   verbs.QP
	ah   verbs.AH
	mws  [windows]verbs.MW
	rng  *rand.Rand

	mine   *script // what it asks for
	theirs *script // what it is asked for

	posted  int // of mine.ops
	bound   int
	next    int // the first of mine.ops that has not completed
	failed  bool
	given   int // of theirs.recvs
	got     int
	last    int // UC and UD: the last of theirs.ops that arrived
	broken  bool
	postAt  loop.Timer
	giveAt  loop.Timer
	waiting bool
}

const recvID = 1 << 32
const bindID = 1 << 33

func (h *host) bad(format string, args ...any) {
	h.r.mon.violated("host %d at %v: %s", h.i, h.node.Now(), fmt.Sprintf(format, args...))
}

// onEvent takes what has completed.
func (h *host) onEvent(verbs.CQ) {
	var wcs [16]verbs.WC
	for {
		n := h.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			h.completion(&wcs[i])
		}
		if n < len(wcs) {
			break
		}
	}
	if err := h.cq.ReqNotify(false); err != nil {
		h.bad("request notification: %v", err)
	}
	h.pump()
	h.give()
}

func (h *host) completion(wc *verbs.WC) {
	if wc.QPN != h.qp.Num() {
		h.bad("a completion of QP %#x, there is %#x alone", wc.QPN, h.qp.Num())
	}
	switch {
	case wc.ID >= bindID:
		h.bound++
		if wc.Status != verbs.Success {
			h.bad("binding window %d: %v", wc.ID-bindID, wc.Status)
		}
	case wc.ID >= recvID:
		h.received(wc)
	default:
		h.sent(wc)
	}
}

// sent takes the completion of a request.
func (h *host) sent(wc *verbs.WC) {
	id := int(wc.ID)
	if id >= h.posted || id < h.next {
		h.bad("request %d completes (%v); %d is next of %d posted", id, wc.Status, h.next, h.posted)
		return
	}
	for ; h.next < id; h.next++ {
		if o := h.mine.ops[h.next]; o.flags&verbs.Signaled != 0 || h.failed || o.bad != 0 {
			h.bad("request %d (%v) makes no completion before that of %d", o.id, o.kind, id)
			return
		}
		h.succeeded(h.mine.ops[h.next])
	}
	o := h.mine.ops[id]
	h.next++
	if h.failed {
		if wc.Status != verbs.WRFlushErr {
			h.bad("request %d after one that failed: %v", id, wc.Status)
		}
		return
	}
	if wc.Status == verbs.Success {
		if o.flags&verbs.Signaled == 0 {
			h.bad("request %d completes, though it isn't signalled", id)
		}
		if o.bad != 0 {
			h.bad("request %d (%v) succeeds, want %v", id, o.kind, o.bad)
		}
		if wc.Op != opcode(o.kind) {
			h.bad("request %d (%v) completes as %v", id, o.kind, wc.Op)
		}
		h.succeeded(o)
		return
	}
	h.failed = true
	h.next = id + 1
	h.r.loosen(h.i, id)
	if wc.Status != o.bad && !h.r.excused(h, wc.Status) {
		h.bad("request %d (%v) completes with %v, want %v", id, o.kind, wc.Status, o.bad)
	}
}

// succeeded checks what must be true when a request has succeeded.
func (h *host) succeeded(o *op) {
	h.r.mon.completed(h.i, o, h.node.Now())
	if o.kind == verbs.OpRDMARead || o.kind == verbs.OpAtomicCmpAndSwp || o.kind == verbs.OpAtomicFetchAndAdd {
		if got := h.read(o.local...); !bytes.Equal(got, o.data) {
			h.bad("request %d (%v of %d bytes) brings %s", o.id, o.kind, o.length, differ(got, o.data))
		}
	}
}

func opcode(k verbs.Opcode) verbs.WCOpcode {
	switch k {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		return verbs.WCRDMAWrite
	case verbs.OpRDMARead:
		return verbs.WCRDMARead
	case verbs.OpAtomicCmpAndSwp:
		return verbs.WCCompSwap
	case verbs.OpAtomicFetchAndAdd:
		return verbs.WCFetchAdd
	}
	return verbs.WCSend
}

// differ says where two strings of bytes of one length do.
func differ(got, want []byte) string {
	first, n := -1, 0
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Sprintf("%d wrong bytes of %d, the first at %d", n, len(got), first)
}

// pump posts what may be posted.
func (h *host) pump() {
	for h.posted < len(h.mine.ops) && !h.waiting && h.r.started {
		o := h.mine.ops[h.posted]
		err := h.qp.PostSend(h.wr(o))
		if errors.Is(err, rnic.ErrFull) {
			h.wait(3 * time.Microsecond) // what makes room may make no completion
			return
		}
		if err != nil {
			h.bad("post request %d: %v", o.id, err)
			return
		}
		h.posted++
		if o.lateness > 0 {
			h.wait(time.Duration(o.lateness) * time.Microsecond)
		}
	}
}

func (h *host) wait(d time.Duration) {
	h.waiting = true
	h.node.Arm(&h.postAt, h.node.Now().Add(d))
}

// wr is the work request of one of the script.
func (h *host) wr(o *op) verbs.SendWR {
	peer := h.r.hosts[1-h.i]
	wr := verbs.SendWR{
		ID: uint64(o.id), Op: o.kind, Flags: o.flags, Imm: o.imm, CompareAdd: o.add, Swap: o.swap,
		SGL: h.sgl(o.local), RemoteAddr: peer.mem.Addr() + uint64(o.remote), RKey: peer.mr.RKey(), AH: h.ah,
		RemoteQPN: peer.qp.Num(), RemoteQKey: h.r.plan.attr.QKey,
	}
	if o.window >= 0 {
		wr.RKey = peer.mws[o.window].RKey()
		wr.InvRKey = wr.RKey
	}
	if o.spoil != nil {
		o.spoil(&wr)
	}
	return wr
}

func (h *host) sgl(list []span) (out []verbs.SGE) {
	for _, s := range list {
		out = append(out, verbs.SGE{Addr: h.mem.Addr() + uint64(s.off), Length: uint32(s.n), LKey: h.mr.LKey()})
	}
	return out
}

// give posts receives: as many as fit, or one now and then where they are to come late.
func (h *host) give() {
	for h.given < len(h.theirs.recvs) && h.given-h.got < h.r.plan.depth && !h.giveAt.Armed() && h.r.connected {
		rc := h.theirs.recvs[h.given]
		wr := verbs.RecvWR{ID: recvID + uint64(h.given), SGL: h.sgl(rc.list)}
		var err error
		if h.srq != nil {
			err = h.srq.PostRecv(wr)
		} else {
			err = h.qp.PostRecv(wr)
		}
		if err != nil {
			h.bad("post receive %d: %v", h.given, err)
			return
		}
		h.given++
		if h.r.plan.late {
			h.node.Arm(&h.giveAt, h.node.Now().Add(time.Duration(h.rng.IntN(30))*time.Microsecond))
		}
	}
}

// received takes the completion of a receive.
func (h *host) received(wc *verbs.WC) {
	id := int(wc.ID - recvID)
	if id != h.got || id >= h.given {
		h.bad("receive %d completes (%v); %d is next of %d posted", id, wc.Status, h.got, h.given)
		return
	}
	h.got++
	rc := h.theirs.recvs[id]
	if h.r.plan.kind != verbs.RC {
		h.arrived(rc, wc)
		return
	}
	o := rc.got
	if h.broken || wc.Status != verbs.Success {
		if !(wc.Status == verbs.WRFlushErr || wc.Status == o.badRecv && o.badRecv != 0) || h.broken && wc.Status != verbs.WRFlushErr {
			h.bad("receive %d completes with %v", id, wc.Status)
		}
		if wc.Status == verbs.WRFlushErr && !h.r.hosts[1-h.i].poisoned() && !h.poisoned() && !h.r.faulty() {
			h.bad("receive %d is flushed, and nothing has failed", id)
		}
		h.broken = true
		return
	}
	if o.badRecv != 0 {
		h.bad("receive %d succeeds, want %v", id, o.badRecv)
		return
	}
	want := verbs.WC{ID: wc.ID, QPN: wc.QPN, ByteLen: uint32(o.length)}
	switch o.kind {
	case verbs.OpSend:
		want.Op = verbs.WCRecv
	case verbs.OpSendWithImm:
		want.Op, want.Flags, want.Imm = verbs.WCRecv, verbs.WithImm, o.imm
	case verbs.OpRDMAWriteWithImm:
		want.Op, want.Flags, want.Imm = verbs.WCRecvRDMAWithImm, verbs.WithImm, o.imm
	case verbs.OpSendWithInv:
		want.Op, want.Flags, want.InvRKey = verbs.WCRecv, verbs.WithInv, h.mws[o.window].RKey()
	}
	if *wc != want {
		h.bad("receive %d of request %d (%v) completes as %+v, want %+v", id, o.id, o.kind, *wc, want)
	}
	if o.kind == verbs.OpRDMAWriteWithImm {
		return
	}
	if got := h.read(rc.list...)[:o.length]; !bytes.Equal(got, o.data) {
		h.bad("receive %d of request %d (%v) holds %s", id, o.id, o.kind, differ(got, o.data))
	}
}

// arrived takes a message of UC or UD: it must be one that was sent, whole, and after the last one where the
// wire keeps the order.
func (h *host) arrived(rc *recv, wc *verbs.WC) {
	if wc.Status != verbs.Success {
		h.bad("a receive completes with %v", wc.Status)
		return
	}
	from, n := 0, int(wc.ByteLen)
	if h.r.plan.kind == verbs.UD {
		from = 40
	}
	data := h.read(rc.list...)
	first := 0
	if f := &h.r.plan.faults[1-h.i]; f.double+f.delay == 0 {
		first = h.last + 1
	}
	for i := first; i < len(h.theirs.ops); i++ {
		o := h.theirs.ops[i]
		imm := o.kind == verbs.OpSendWithImm || o.kind == verbs.OpRDMAWriteWithImm
		if o.recv < 0 || o.length+from != n || imm != (wc.Flags&verbs.WithImm != 0) || imm && o.imm != wc.Imm {
			continue
		}
		if o.kind == verbs.OpRDMAWriteWithImm {
			if wc.Op != verbs.WCRecvRDMAWithImm {
				continue
			}
			if got := h.read(span{o.remote, o.length}); !bytes.Equal(got, o.data) {
				h.bad("request %d (%v) arrived with %s", o.id, o.kind, differ(got, o.data))
			}
		} else if !bytes.Equal(data[from:n], o.data) {
			continue
		}
		h.last = i
		return
	}
	h.bad("what arrived (%+v) is no message that was sent after %d", *wc, h.last)
}

// read is the bytes of a list of the host's memory; of phantom memory, what they would be.
func (h *host) read(list ...span) (out []byte) {
	v, ok := h.mem.(verbs.PhantomMemory)
	if !ok {
		return get(h.mem.Bytes(), list)
	}
	for _, s := range list {
		for at := s.off; at < s.off+s.n; {
			stream, off, n := v.At(at)
			for end := min(at+n, s.off+s.n); at < end; at++ {
				out = append(out, h.r.plan.byteOf(stream, off))
				off++
			}
		}
	}
	return out
}

// poisoned says that one of the host's requests is meant to fail.
func (h *host) poisoned() bool {
	n := len(h.mine.ops)
	return n > 0 && h.mine.ops[n-1].bad != 0
}

// through says that the host has nothing left to wait for.
func (h *host) through() bool { return h.next == len(h.mine.ops) }
