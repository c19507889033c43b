package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

func eventCases() []Case {
	return []Case{
		{Name: "a CQ that overflows makes the event CQ_ERR", run: cqOverflow},
	}
}

// cqOverflow completes more than the CQ holds, without polling.
func cqOverflow(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, CQDepth: 16, ManualRecv: true, Depth: 128})
	for range 100 {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 1})
	}
	for i := range 100 {
		wr := p.wr(uint64(i), verbs.OpSend, nil, 0)
		wr.Flags = 0 // A's CQ is not to be filled
		p.a.send(p.a.qp, wr)
	}
	p.b.async.expect(t, verbs.EventCQErr, func(e verbs.AsyncEvent) bool { return e.CQ == p.b.recvs.cq })
}

func resourceCases() []Case {
	return []Case{
		{Name: "a PD, a CQ and an SRQ that are in use are not destroyed, and go on working", run: inUse},
		{Name: "a region must lie within its memory", run: regionBounds},
		{Name: "an object that was destroyed is refused", run: afterDestroy},
		{Name: "a device that is closed takes what is left of its objects with it", run: closeWithLeftovers, Reopens: true},
		{Name: "attributes out of range are refused before the device sees them", run: attributeRanges},
	}
}

func inUse(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SRQ: true})
	for _, o := range []struct {
		what    string
		destroy func(func(error))
	}{{"PD", p.b.pd.Dealloc}, {"CQ", p.b.recvs.cq.Destroy}, {"SRQ", p.b.srq.Destroy}} {
		if err := p.b.tryErr("destroy", o.destroy); err == nil {
			t.Fatalf("the %s of a living QP was destroyed", o.what)
		}
	}
	p.prove("attempts to destroy what is in use")
}

func regionBounds(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	mem := p.a.memory(8192)
	for _, r := range [][2]int{{-1, 10}, {0, 8193}, {8000, 193}, {0, -1}, {9000, 0}} {
		if _, err := try(p.a, "register memory", func(done func(verbs.MR, error)) {
			p.a.pd.RegMR(mem, r[0], r[1], verbs.LocalWrite, done)
		}); err == nil {
			t.Errorf("%d bytes from %d of 8192 were registered", r[1], r[0])
		}
	}
	// A part of it is bounded by its own ends.
	mr := must(p.a, "register memory", func(done func(verbs.MR, error)) { p.a.pd.RegMR(mem, 100, 1000, everyAccess, done) })
	p.a.cleanup("deregister memory", mr.Dereg)
	if mr.Addr() != mem.Addr()+100 || mr.Len() != 1000 || mr.Memory() != mem {
		t.Errorf("the region is %d bytes at %#x, of memory at %#x", mr.Len(), mr.Addr(), mem.Addr())
	}
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 1, SGL: p.b.sge(0, 2000)})
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, []verbs.SGE{{Addr: mem.Addr() + 99, Length: 10, LKey: mr.LKey()}}, 0))
	p.a.sends.one(1, p.a.localStatus(verbs.LocProtErr))
	p.check("a SEND from before a region's first byte")
}

func afterDestroy(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	qp := p.a.newQP(&p.o)
	p.a.destroyQP(qp)
	if err := p.a.attempt(func() error { return qp.PostSend(p.wr(1, verbs.OpSend, nil, 0)) }); err == nil {
		t.Error("a send was posted to a QP that was destroyed")
	}
	if err := p.a.attempt(func() error { return qp.PostRecv(verbs.RecvWR{ID: 1}) }); err == nil {
		t.Error("a receive was posted to a QP that was destroyed")
	}
	if err := p.a.tryErr("modify", func(done func(error)) { qp.Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, done) }); err == nil {
		t.Error("a QP that was destroyed was modified")
	}
	if _, err := try(p.a, "query", qp.Query); err == nil {
		t.Error("a QP that was destroyed was queried")
	}
	if err := p.a.tryErr("destroy", qp.Destroy); err == nil {
		t.Error("a QP was destroyed twice")
	}
	p.prove("uses of a destroyed QP")
}

// closeWithLeftovers opens B's device once more and leaves one of everything.
func closeWithLeftovers(t T, s *Suite) {
	for range 3 {
		end, err := s.provider.Open(1)
		if err != nil {
			t.Fatalf("open a second time: %v", err)
		}
		h := &half{t: t, suite: s, end: end, dev: end.Device}
		h.pd = must(h, "allocate PD", h.dev.AllocPD)
		var mem verbs.Memory
		h.now("allocate memory", func() (err error) { mem, err = h.dev.AllocMemory(8192, verbs.HostMemory); return err })
		must(h, "register memory", func(done func(verbs.MR, error)) { h.pd.RegMR(mem, 0, 8192, everyAccess, done) })
		h.sends = newQueue(h, "send", 16, false)
		h.recvs = h.sends
		h.srq = must(h, "create SRQ", func(done func(verbs.SRQ, error)) { h.pd.CreateSRQ(verbs.SRQInit{MaxWR: 4, MaxSGE: 1}, done) })
		must(h, "create QP", func(done func(verbs.QP, error)) {
			h.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: h.sends.cq, RecvCQ: h.sends.cq, SRQ: h.srq, MaxSendWR: 4, MaxSendSGE: 1}, done)
		})
		must(h, "create AH", func(done func(verbs.AH, error)) {
			h.pd.CreateAH(verbs.AHAttr{DGID: s.ends[0].GID, SGIDIndex: end.GIDIndex}, done)
		})
		must(h, "allocate window", func(done func(verbs.MW, error)) { h.pd.AllocMW(verbs.MWType2, done) })
		h.mustErr("close with leftovers", h.dev.Close)
		if _, err := try(h, "allocate PD", h.dev.AllocPD); err == nil {
			t.Error("a closed device allocated a PD")
		}
		if err := h.tryErr("close twice", h.dev.Close); err == nil {
			t.Error("a device was closed twice")
		}
	}
}

func attributeRanges(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	for _, c := range []struct {
		what   string
		change func(*verbs.QPAttr)
	}{
		{"path MTU 1000", func(a *verbs.QPAttr) { a.PathMTU = 1000 }},
		{"no destination GID", func(a *verbs.QPAttr) { a.AH.DGID = verbs.GID{} }},
		{"RNR timer 32", func(a *verbs.QPAttr) { a.MinRNRTimer = 32 }},
		{"max_dest_rd_atomic −1", func(a *verbs.QPAttr) { a.MaxDestRDAtomic = -1 }},
		{"source GID index −1", func(a *verbs.QPAttr) { a.AH.SGIDIndex = -1 }},
	} {
		qp := p.brought(verbs.Init)
		attr, mask := p.attrFor(verbs.Init, verbs.RTR)
		c.change(&attr)
		if err := p.a.tryErr("modify QP", func(done func(error)) { qp.Modify(attr, mask, done) }); err == nil {
			t.Errorf("%s: no error", c.what)
		}
		p.a.destroyQP(qp)
	}
	qp := p.brought(verbs.RTR)
	attr, mask := p.attrFor(verbs.RTR, verbs.RTS)
	attr.Timeout = 32
	if err := p.a.tryErr("modify QP", func(done func(error)) { qp.Modify(attr, mask, done) }); err == nil {
		t.Error("timeout 32: no error")
	}
}
