package conformance

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func stateCases() []Case {
	var all []Case
	for _, kind := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		all = append(all,
			Case{Name: fmt.Sprintf("%v takes the legal state transitions and refuses the others", kind), run: func(t T, s *Suite) { transitions(t, s, kind) }},
			Case{Name: fmt.Sprintf("%v refuses a transition that lacks an attribute it needs", kind), run: func(t T, s *Suite) { lackingAttributes(t, s, kind) }},
		)
	}
	return append(all,
		Case{Name: "a query returns the attributes that were set", run: queryBack},
		Case{Name: "a send posted before RTS is refused", run: sendTooEarly},
		Case{Name: "a receive posted in INIT is used when the QP can receive", run: recvInInit},
		Case{Name: "RC a send posted in SQD waits for RTS, and the event says when the queue has drained", run: drained},
		Case{Name: "RC a QP that was reset and connected again works, and has no old completions", run: resetAndReuse},
		Case{Name: "RC the first message makes the event COMM_EST on a QP in RTR", run: established},
	)
}

// legal is InfiniBand specification 10.3.1 (figure 124) without what it leaves open: RESET and
// ERR to themselves, RESET to ERR.
var legal = map[verbs.QPState][]verbs.QPState{
	verbs.Reset: {verbs.Init},
	verbs.Init:  {verbs.Init, verbs.RTR, verbs.Reset, verbs.Err},
	verbs.RTR:   {verbs.RTS, verbs.Reset, verbs.Err},
	verbs.RTS:   {verbs.RTS, verbs.SQD, verbs.Reset, verbs.Err},
	verbs.SQD:   {verbs.RTS, verbs.SQD, verbs.Reset, verbs.Err},
	verbs.Err:   {verbs.Reset},
}

var leftOpen = map[[2]verbs.QPState]bool{
	{verbs.Reset, verbs.Reset}: true, {verbs.Reset, verbs.Err}: true, {verbs.Err, verbs.Err}: true,
}

var reachable = []verbs.QPState{verbs.Reset, verbs.Init, verbs.RTR, verbs.RTS, verbs.SQD, verbs.Err}

// brought makes a QP of A's in a state, as if connected to B's.
func (p *pair) brought(to verbs.QPState) verbs.QP {
	p.t.Helper()
	qp := p.a.newQP(&p.o)
	switch to {
	case verbs.SQD:
		p.bring(p.a, p.b, qp, p.b.qp, verbs.RTS, psnA, psnB)
		p.a.mustErr("modify QP to SQD", func(done func(error)) {
			qp.Modify(verbs.QPAttr{State: verbs.SQD}, verbs.MaskState, done)
		})
		p.a.awaitDrained(qp)
	case verbs.Err:
		p.bring(p.a, p.b, qp, p.b.qp, verbs.RTS, psnA, psnB)
		p.a.toErr(qp)
	default:
		p.bring(p.a, p.b, qp, p.b.qp, to, psnA, psnB)
	}
	return qp
}

// attrFor is what a transition needs. RTS from SQD or RTS and SQD itself need nothing.
func (p *pair) attrFor(from, to verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask) {
	if to == verbs.RTS && from != verbs.RTR {
		return verbs.QPAttr{State: to}, verbs.MaskState
	}
	return p.step(to, p.a, p.b, p.b.qp.Num(), psnA, psnB)
}

func transitions(t T, s *Suite, kind verbs.QPType) {
	p := newPair(t, s, options{Type: kind})
	for _, from := range reachable {
		for _, to := range append(reachable, verbs.SQE) {
			if leftOpen[[2]verbs.QPState{from, to}] {
				continue
			}
			qp := p.brought(from)
			attr, mask := p.attrFor(from, to)
			err := p.a.tryErr("modify QP", func(done func(error)) { qp.Modify(attr, mask, done) })
			want := from
			ok := false
			for _, l := range legal[from] {
				if l == to {
					ok, want = true, to
				}
			}
			if (err == nil) != ok {
				t.Errorf("%v from %v to %v: legal is %v, error %v", kind, from, to, ok, err)
				want = to
				if err != nil {
					want = from
				}
			}
			if st := p.a.state(qp); st != want {
				t.Errorf("%v from %v to %v: the provider believes it in %v", kind, from, to, st)
			}
			if st := p.a.query(qp).State; st != want {
				t.Errorf("%v from %v to %v: a query says %v", kind, from, to, st)
			}
			p.a.destroyQP(qp)
		}
	}
}

func lackingAttributes(t T, s *Suite, kind verbs.QPType) {
	p := newPair(t, s, options{Type: kind})
	for _, step := range []struct{ from, to verbs.QPState }{{verbs.Reset, verbs.Init}, {verbs.Init, verbs.RTR}, {verbs.RTR, verbs.RTS}} {
		attr, mask := p.attrFor(step.from, step.to)
		for bit := verbs.QPAttrMask(1); bit <= mask; bit <<= 1 {
			if mask&bit == 0 || bit == verbs.MaskState {
				continue
			}
			qp := p.brought(step.from)
			if err := p.a.tryErr("modify QP", func(done func(error)) { qp.Modify(attr, mask&^bit, done) }); err == nil {
				t.Errorf("%v from %v to %v without %v: no error", kind, step.from, step.to, bit)
			}
			if st := p.a.query(qp).State; st != step.from {
				t.Errorf("%v from %v to %v without %v: left in %v", kind, step.from, step.to, bit, st)
			}
			p.a.destroyQP(qp)
		}
		// What has no place in a transition is refused as well.
		qp := p.brought(step.from)
		foreign := verbs.MaskSQDAsyncNotify
		if err := p.a.tryErr("modify QP", func(done func(error)) { qp.Modify(attr, mask|foreign, done) }); err == nil {
			t.Errorf("%v from %v to %v with %v: no error", kind, step.from, step.to, foreign)
		}
		p.a.destroyQP(qp)
	}
}

func queryBack(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, MTU: 2048, MaxRDAtomic: 3, MaxDestRD: 5, MinRNRTimer: 14, Timeout: 18, RetryCnt: 4, RNRRetry: 3, TrafficClass: 106})
	a := p.a.query(p.a.qp)
	want := verbs.QPAttr{
		State: verbs.RTS, CurState: a.CurState, PathMTU: 2048, RQPSN: a.RQPSN, SQPSN: a.SQPSN, DestQPN: p.b.qp.Num(),
		Access: p.o.QPAccess, MaxRDAtomic: a.MaxRDAtomic, MaxDestRDAtomic: a.MaxDestRDAtomic, MinRNRTimer: 14, Timeout: 18, RetryCnt: 4, RNRRetry: 3,
		AH: verbs.AHAttr{DGID: a.AH.DGID, SGIDIndex: p.a.end.GIDIndex, HopLimit: 64, TrafficClass: 106},
	}
	if a != want {
		t.Errorf("queried %+v\nwant %+v", a, want)
	}
	if a.AH.DGID.Unmap() != p.b.end.GID.Unmap() {
		t.Errorf("queried destination %v, want %v", a.AH.DGID, p.b.end.GID)
	}
	// A device may round the number of outstanding operations up.
	if a.MaxRDAtomic < 3 || a.MaxDestRDAtomic < 5 {
		t.Errorf("queried max_rd_atomic %d and max_dest_rd_atomic %d, set 3 and 5", a.MaxRDAtomic, a.MaxDestRDAtomic)
	}
}

func sendTooEarly(t T, s *Suite) {
	for _, st := range []verbs.QPState{verbs.Reset, verbs.Init, verbs.RTR} {
		p := newPair(t, s, options{Type: verbs.RC})
		qp := p.brought(st)
		err := p.a.attempt(func() error { return qp.PostSend(p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 8), 0)) })
		if err == nil {
			t.Errorf("a send posted in %v: no error", st)
		}
		p.check("a send posted in %v", st)
		p.a.destroyQP(qp)
		p.a.sends.none(fmt.Sprintf("a send posted in %v", st))
	}
}

// awaitDrained waits until a QP in SQD has nothing under way any more: before that it may
// refuse to be modified.
func (h *half) awaitDrained(qp verbs.QP) {
	h.t.Helper()
	for range 200 {
		if !h.query(qp).SQDraining {
			return
		}
		h.pause()
	}
	h.t.Fatalf("%s: an idle QP in SQD does not drain", h.dev.Name())
}

func recvInInit(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, StopB: true, BState: verbs.Init})
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 4, SGL: p.b.sge(100, 50)})
	p.bringB(verbs.RTR)
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 50), 0))
	p.a.sends.one(1, verbs.Success)
	p.b.recvs.one(4, verbs.Success)
	p.b.scatter([]span{{100, 50}}, p.a.gather([]span{{0, 50}}))
	p.check("a receive posted in INIT")
}

func drained(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	p.a.mustErr("modify QP to SQD", func(done func(error)) {
		p.a.qp.Modify(verbs.QPAttr{State: verbs.SQD, SQDAsyncNotify: true}, verbs.MaskState|verbs.MaskSQDAsyncNotify, done)
	})
	p.a.async.expect(t, verbs.EventSQDrained, func(e verbs.AsyncEvent) bool { return e.QP == p.a.qp })
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000))
	// B's own request shows that time has passed on the wire.
	ping := verbs.SendWR{ID: 2, Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p.b.sge(0, 8), RemoteAddr: p.a.addr(2000), RKey: p.a.mr.RKey()}
	p.b.send(p.b.qp, ping)
	p.b.sends.one(2, verbs.Success)
	p.a.scatter([]span{{2000, 8}}, p.b.gather([]span{{0, 8}}))
	p.a.sends.none("a WRITE posted in SQD")
	p.check("a WRITE posted in SQD")
	p.a.mustErr("modify QP to RTS", func(done func(error)) {
		p.a.qp.Modify(verbs.QPAttr{State: verbs.RTS}, verbs.MaskState, done)
	})
	if p.a.departs(SQDNotResumed) {
		p.b.send(p.b.qp, ping)
		p.b.sends.one(2, verbs.Success)
		p.a.sends.none("a WRITE posted in SQD, back in RTS, with nothing posted since")
		p.a.send(p.a.qp, p.wr(3, verbs.OpRDMAWrite, p.a.sge(0, 1), 1000))
		p.a.sends.one(1, verbs.Success)
		p.a.sends.one(3, verbs.Success)
	} else {
		p.a.sends.one(1, verbs.Success)
	}
	p.b.scatter([]span{{1000, 100}}, p.a.gather([]span{{0, 100}}))
	p.check("a WRITE posted in SQD, back in RTS")
	p.prove("SQD")
}

func resetAndReuse(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	reset := func(h *half) {
		h.mustErr("modify QP to RESET", func(done func(error)) { h.qp.Modify(verbs.QPAttr{State: verbs.Reset}, verbs.MaskState, done) })
	}
	for round := range 3 {
		p.prove(fmt.Sprintf("round %d", round))
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 77}) // is gone with the reset
		reset(p.a)
		reset(p.b)
		p.bring(p.b, p.a, p.b.qp, p.a.qp, verbs.RTS, psnB, psnA)
		p.bring(p.a, p.b, p.a.qp, p.b.qp, verbs.RTS, psnA, psnB)
	}
	p.prove("three resets")
	p.a.sends.none("three resets")
	p.b.recvs.none("three resets")
}

func established(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, StopB: true, BState: verbs.RTR})
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 8), 8))
	p.a.sends.one(1, verbs.Success)
	p.b.scatter([]span{{8, 8}}, p.a.gather([]span{{0, 8}}))
	p.check("a WRITE to a QP in RTR")
	if p.b.departs(NoCommEst) {
		p.b.pause()
		if n := p.b.async.count(t, verbs.EventCommEst); n != 0 {
			t.Errorf("%d events COMM_EST, declared as never made", n)
		}
		return
	}
	p.b.async.expect(t, verbs.EventCommEst, func(e verbs.AsyncEvent) bool { return e.QP == p.b.qp })
}
