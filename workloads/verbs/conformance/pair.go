package conformance

import "github.com/rocebed/rocebed/workloads/verbs"

// pair is two halves with a QP each that are connected (UD: ready to send).
type pair struct {
	t    T
	s    *Suite
	o    options
	a, b *half
	ah   verbs.AH // UD: from A to B

	markerQP verbs.QP // B's, UD: see settleQP
	markers  uint64
}

// The first PSNs are unequal and near the end of their range, so that they wrap in every case
// that sends more than a few packets.
const (
	psnA = 0xfffffd
	psnB = 0xfffff0
	qkey = 0x11223344
)

func newPair(t T, s *Suite, o options) *pair {
	t.Helper()
	o.fill()
	p := &pair{t: t, s: s, o: o, a: newHalf(t, s, 0, &o), b: newHalf(t, s, 1, &o)}
	p.a.qp, p.b.qp = p.connect()
	if o.Type == verbs.UD {
		p.ah = must(p.a, "create AH", func(done func(verbs.AH, error)) { p.a.pd.CreateAH(p.ahTo(p.b), done) })
		p.a.cleanup("destroy AH", p.ah.Destroy)
	}
	return p
}

// connect makes one more QP on each side and brings both up.
func (p *pair) connect() (a, b verbs.QP) {
	p.t.Helper()
	a, b = p.a.newQP(&p.o), p.b.newQP(&p.o)
	// The responder first: a requester may send as soon as it can.
	p.bring(p.b, p.a, b, a, p.o.BState, psnB, psnA)
	p.bring(p.a, p.b, a, b, verbs.RTS, psnA, psnB)
	return a, b
}

func (p *pair) ahTo(to *half) verbs.AHAttr {
	from := p.a
	if to == p.a {
		from = p.b
	}
	return verbs.AHAttr{DGID: to.end.GID, SGIDIndex: from.end.GIDIndex, TrafficClass: p.o.TrafficClass}
}

// bring takes h's QP from where it is to a state on the way to RTS.
func (p *pair) bring(h, peer *half, qp, peerQP verbs.QP, to verbs.QPState, psn, peerPSN uint32) {
	p.t.Helper()
	at := h.state(qp)
	for _, next := range []verbs.QPState{verbs.Init, verbs.RTR, verbs.RTS} {
		if next <= at {
			continue
		}
		if to < next {
			return
		}
		attr, mask := p.step(next, h, peer, peerQP.Num(), psn, peerPSN)
		h.mustErr("modify QP to "+next.String(), func(done func(error)) { qp.Modify(attr, mask, done) })
	}
}

// step is the attributes that the specification requires for a transition to a state.
func (p *pair) step(to verbs.QPState, h, peer *half, peerQPN, psn, peerPSN uint32) (verbs.QPAttr, verbs.QPAttrMask) {
	o := &p.o
	attr := verbs.QPAttr{State: to}
	mask := verbs.MaskState
	rc, ud := o.Type == verbs.RC, o.Type == verbs.UD
	switch to {
	case verbs.Init:
		if ud {
			attr.QKey = qkey
			return attr, mask | verbs.MaskQKey
		}
		attr.Access = o.QPAccess
		return attr, mask | verbs.MaskAccess
	case verbs.RTR:
		if ud {
			return attr, mask
		}
		attr.PathMTU, attr.AH, attr.DestQPN, attr.RQPSN = o.MTU, p.ahTo(peer), peerQPN, peerPSN
		mask |= verbs.MaskPathMTU | verbs.MaskAH | verbs.MaskDestQPN | verbs.MaskRQPSN
		if rc {
			attr.MaxDestRDAtomic, attr.MinRNRTimer = o.MaxDestRD, o.MinRNRTimer
			mask |= verbs.MaskMaxDestRDAtomic | verbs.MaskMinRNRTimer
		}
	case verbs.RTS:
		attr.SQPSN = psn
		mask |= verbs.MaskSQPSN
		if rc {
			attr.Timeout, attr.RetryCnt, attr.RNRRetry, attr.MaxRDAtomic = o.Timeout, o.RetryCnt, o.RNRRetry, o.MaxRDAtomic
			mask |= verbs.MaskTimeout | verbs.MaskRetryCnt | verbs.MaskRNRRetry | verbs.MaskMaxRDAtomic
		}
	}
	return attr, mask
}

// bringB takes B's QP, which was left behind, further.
func (p *pair) bringB(to verbs.QPState) {
	p.t.Helper()
	p.bring(p.b, p.a, p.b.qp, p.a.qp, to, psnB, psnA)
}

// check compares both sides' memory with what it must hold.
func (p *pair) check(what string, args ...any) {
	p.t.Helper()
	p.a.check(what, args...)
	p.b.check(what, args...)
}

// wr makes a signalled request of A's to B's region.
func (p *pair) wr(id uint64, op verbs.Opcode, sgl []verbs.SGE, remoteOff int) verbs.SendWR {
	wr := verbs.SendWR{ID: id, Op: op, Flags: verbs.Signaled, SGL: sgl, RemoteAddr: p.b.addr(remoteOff), RKey: p.b.mr.RKey()}
	if p.o.Type == verbs.UD {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = p.ah, p.b.qp.Num(), qkey
	}
	return wr
}

// prove sends a small message from A to B, to show that the pair works, and that everything
// that A's QP sent before has arrived.
func (p *pair) prove(what string) {
	p.t.Helper()
	const id, n = 0xabcdef, 100
	src, dst := 5000, 5000
	grh := 0
	if p.o.Type == verbs.UD {
		grh = 40
	}
	p.b.recv(p.b.qp, verbs.RecvWR{ID: id, SGL: p.b.sge(dst, n+grh)})
	p.a.send(p.a.qp, p.wr(id, verbs.OpSend, p.a.sge(src, n), 0))
	p.a.sends.one(id, verbs.Success)
	p.b.recvs.one(id, verbs.Success)
	p.b.settle(span{dst, grh})
	p.b.scatter([]span{{dst + grh, n}}, p.a.gather([]span{{src, n}}))
	p.check("%s: a SEND afterwards", what)
}

// markerOff is where settleQP's marker lies; no case uses the end of the region.
const markerOff = memSize - 64

// settleQP returns when B has handled what A's QP has sent so far, on transports that do not
// say so: a marker follows on the same QP, which takes the same path. A UD QP sends it to
// another of B's QPs; the others write it.
func (p *pair) settleQP() {
	p.t.Helper()
	if p.o.Type == verbs.UD {
		if p.markerQP == nil {
			_, p.markerQP = p.connect()
		}
		p.b.recv(p.markerQP, verbs.RecvWR{ID: 0xfeed, SGL: p.b.sge(markerOff, grhLen)})
		wr := p.wr(0xfeed, verbs.OpSend, nil, 0)
		wr.RemoteQPN = p.markerQP.Num()
		p.a.send(p.a.qp, wr)
		p.a.sends.one(0xfeed, verbs.Success)
		p.b.recvs.takeID(0xfeed)
		p.b.settle(span{markerOff, grhLen})
		// A device may handle each QP's packets in a task of its own, as rxe does, and the marker's may be done first.
		for range 10 {
			p.b.pause()
		}
		return
	}
	for range 100 {
		p.markers++
		v := 0xfeed000000000000 + p.markers
		p.a.putWord(markerOff, v)
		p.a.send(p.a.qp, p.wr(0xfeed, verbs.OpRDMAWrite, p.a.sge(markerOff, 8), markerOff))
		p.a.sends.one(0xfeed, verbs.Success)
		if p.b.sees(markerOff, v) {
			p.b.wantWord(markerOff, v)
			return
		}
	}
	p.t.Fatalf("none of 100 markers arrived")
}
