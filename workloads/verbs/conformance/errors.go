package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

// failure is one bad request of A's among good ones on an RC pair.
type failure struct {
	name string
	o    options
	// bad makes the request that fails, on the pair.
	bad func(p *pair) verbs.SendWR
	// recv says that B has a receive posted, and of how many bytes; -1: none.
	recv int
	want verbs.Status // A's completion
	// wantRecv is B's receive's status: a flush for most, and its own where the receive is at fault.
	wantRecv verbs.Status
	// local says that A finds the error before it sends anything.
	local bool
	// remote says that B's QP fails as well, and event is what B is told.
	remote bool
	event  verbs.AsyncEventType
	// touched is what of B's region may change: what follows a READ has been sent when the READ's
	// response is found to have no place.
	touched []span
	// departure is declared by a provider whose statuses are others.
	departure  string
	departs    verbs.Status
	departsRcv verbs.Status
}

func (f failure) run(t T, s *Suite) {
	p := newPair(t, s, f.o)
	if f.recv >= 0 {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 21, SGL: p.b.sge(100000, f.recv)}, verbs.RecvWR{ID: 22, SGL: p.b.sge(200000, 10)})
	}
	good := p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 64), 64)
	bad := f.bad(p)
	bad.ID, bad.Flags = 2, bad.Flags|verbs.Signaled
	after := p.wr(3, verbs.OpRDMAWrite, p.a.sge(0, 64), 128)
	want, wantRecv := f.want, f.wantRecv
	if f.local {
		want = p.a.localStatus(want)
	}
	if f.departure != "" && p.b.departs(f.departure) {
		want, wantRecv = f.departs, f.departsRcv
	}
	p.a.send(p.a.qp, good)
	p.a.sends.one(1, verbs.Success)
	p.a.send(p.a.qp, bad, after)
	p.a.sends.one(2, want)
	p.a.sends.one(3, verbs.WRFlushErr)
	if st := p.a.state(p.a.qp); st != verbs.Err {
		t.Errorf("%s: the provider believes A's QP in %v", f.name, st)
	}
	if st := p.a.query(p.a.qp).State; st != verbs.Err {
		t.Errorf("%s: A's QP is in %v", f.name, st)
	}
	p.b.scatter([]span{{64, 64}}, p.a.gather([]span{{0, 64}}))
	p.b.settle(f.touched...)
	p.check("%s", f.name)
	if !f.remote {
		if st := p.b.query(p.b.qp).State; st != verbs.RTS {
			t.Errorf("%s: B's QP is in %v", f.name, st)
		}
		p.b.recvs.none(f.name)
		return
	}
	if f.recv >= 0 {
		p.b.recvs.one(21, wantRecv)
		p.b.recvs.one(22, verbs.WRFlushErr)
	}
	p.b.awaitErr(p.b.qp)
	p.checkEvent(f)
}

// checkEvent is 9.9.3: a responder that fails without a receive of its own at
// fault tells its consumer by an affiliated event.
func (p *pair) checkEvent(f failure) {
	p.t.Helper()
	if f.event == 0 {
		return
	}
	if f.event == verbs.EventQPReqErr && p.b.departs(NoRequestErrEvent) {
		if n := p.b.async.count(p.t, f.event); n != 0 {
			p.t.Errorf("%s: %d events %v, declared as never made", f.name, n, f.event)
		}
		return
	}
	p.b.async.expect(p.t, f.event, func(e verbs.AsyncEvent) bool { return e.QP == p.b.qp })
}

// awaitErr waits until a query says that the QP is in ERR.
func (h *half) awaitErr(qp verbs.QP) {
	h.t.Helper()
	var st verbs.QPState
	for range 200 {
		if st = h.query(qp).State; st == verbs.Err {
			return
		}
		h.pause()
	}
	h.t.Errorf("%s: the QP is in %v, want ERR", h.dev.Name(), st)
}

func localErrorCases() []Case {
	other := func(p *pair) (verbs.MR, verbs.PD) {
		pd := must(p.a, "allocate PD", p.a.dev.AllocPD)
		p.a.cleanup("deallocate PD", pd.Dealloc)
		mem := p.a.memory(4096)
		mr := must(p.a, "register memory", func(done func(verbs.MR, error)) { pd.RegMR(mem, 0, 4096, everyAccess, done) })
		p.a.cleanup("deregister memory", mr.Dereg)
		return mr, pd
	}
	fails := []failure{
		{name: "RC a SEND with a local key that there is not fails with LOC_PROT_ERR", recv: 200, want: verbs.LocProtErr, local: true, bad: func(p *pair) verbs.SendWR {
			wr := p.wr(0, verbs.OpSend, p.a.sge(0, 100), 0)
			wr.SGL[0].LKey ^= 0x5500
			return wr
		}},
		{name: "RC a WRITE with a local key that there is not fails with LOC_PROT_ERR", recv: -1, want: verbs.LocProtErr, local: true, bad: func(p *pair) verbs.SendWR {
			wr := p.wr(0, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000)
			wr.SGL[0].LKey++
			return wr
		}},
		{name: "RC a SEND from another protection domain's region fails with LOC_PROT_ERR", recv: 200, want: verbs.LocProtErr, local: true, bad: func(p *pair) verbs.SendWR {
			mr, _ := other(p)
			return p.wr(0, verbs.OpSend, []verbs.SGE{{Addr: mr.Addr(), Length: 100, LKey: mr.LKey()}}, 0)
		}},
		{name: "RC a SEND that begins before its region fails with LOC_PROT_ERR", recv: 200, want: verbs.LocProtErr, local: true, bad: func(p *pair) verbs.SendWR {
			wr := p.wr(0, verbs.OpSend, p.a.sge(0, 100), 0)
			wr.SGL[0].Addr--
			return wr
		}},
		{name: "RC a SEND that ends beyond its region fails with LOC_PROT_ERR", recv: 200, want: verbs.LocProtErr, local: true, bad: func(p *pair) verbs.SendWR {
			return p.wr(0, verbs.OpSend, p.a.sge(memSize-99, 100), 0)
		}},
		{name: "RC a READ into a region without LOCAL_WRITE fails with LOC_PROT_ERR", recv: -1, want: verbs.LocProtErr, touched: []span{{128, 64}}, bad: func(p *pair) verbs.SendWR {
			_, mr := p.a.region(4096, verbs.RemoteRead)
			return p.wr(0, verbs.OpRDMARead, []verbs.SGE{{Addr: mr.Addr(), Length: 100, LKey: mr.LKey()}}, 1000)
		}},
		{name: "RC a READ into a local key that there is not fails with LOC_PROT_ERR", recv: -1, want: verbs.LocProtErr, touched: []span{{128, 64}}, bad: func(p *pair) verbs.SendWR {
			wr := p.wr(0, verbs.OpRDMARead, p.a.sge(0, 100), 1000)
			wr.SGL[0].LKey ^= 0x5500
			return wr
		}},
		{name: "RC LOCAL_INV of a key that there is not fails with LOC_QP_OP_ERR", recv: -1, want: verbs.LocQPOpErr, local: true, bad: func(p *pair) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpLocalInv, InvRKey: p.a.mr.RKey() ^ 0x77700}
		}},
	}
	var all []Case
	for _, f := range fails {
		all = append(all, Case{Name: f.name, run: f.run})
	}
	return append(all,
		Case{Name: "RC requests before one that fails locally complete first", run: earlierComplete},
		Case{Name: "RC a deregistered region's key is no longer good", run: deregistered},
		Case{Name: "UC a SEND with a bad local key fails with LOC_PROT_ERR and the receiver goes on", run: unreliableLocalError},
	)
}

// localStatus is the status of a request that the half's QP finds at fault before it sends anything.
func (h *half) localStatus(want verbs.Status) verbs.Status {
	if h.departs(LocalErrorFlushes) {
		return verbs.WRFlushErr
	}
	return want
}

// earlierComplete has requests under way when the bad one comes.
func earlierComplete(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const count = 10
	var wrs []verbs.SendWR
	for i := range count {
		wrs = append(wrs, p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(i*3000, 3000), 100000+i*3000))
	}
	bad := p.wr(count, verbs.OpRDMAWrite, p.a.sge(0, 100), 0)
	bad.SGL[0].LKey ^= 0x5500
	p.a.send(p.a.qp, append(wrs, bad)...)
	flushed := false
	for i := range count {
		wc := p.a.sends.take(1)[0]
		// Where earlier requests are flushed, they have been executed or not, as UC's.
		ok := wc.Status == verbs.Success && !flushed
		if p.a.departs(LocalErrorFlushes) && wc.Status == verbs.WRFlushErr {
			ok, flushed = true, true
		}
		if wc.ID != uint64(i) || !ok {
			t.Fatalf("request %d of %d before a bad one: %d %v", i, count, wc.ID, wc.Status)
		}
		if flushed {
			p.b.settle(span{100000 + i*3000, 3000})
		} else {
			p.b.scatter([]span{{100000 + i*3000, 3000}}, p.a.gather([]span{{i * 3000, 3000}}))
		}
	}
	p.a.sends.one(count, p.a.localStatus(verbs.LocProtErr))
	if !flushed {
		p.check("%d WRITEs before a bad one", count)
	}
}

// memory allocates without registering.
func (h *half) memory(size int) verbs.Memory {
	h.t.Helper()
	var mem verbs.Memory
	h.now("allocate memory", func() (err error) { mem, err = h.dev.AllocMemory(size, verbs.GPUMemory); return err })
	h.t.Cleanup(func() { h.now("free memory", mem.Free) })
	if mem.Kind() != verbs.GPUMemory || mem.Len() != size || len(mem.Bytes()) != size || mem.Addr()%4096 != 0 {
		h.t.Errorf("%d bytes of GPU memory: %v, %d bytes at %#x", size, mem.Kind(), mem.Len(), mem.Addr())
	}
	return mem
}

func deregistered(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	mem := p.b.memory(4096)
	mr := must(p.b, "register memory", func(done func(verbs.MR, error)) { p.b.pd.RegMR(mem, 0, 4096, everyAccess, done) })
	wr := p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 100), 0)
	wr.RemoteAddr, wr.RKey = mr.Addr(), mr.RKey()
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.Success)
	p.b.mustErr("deregister memory", mr.Dereg)
	clear(mem.Bytes())
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.RemAccessErr)
	for i, b := range mem.Bytes() {
		if b != 0 {
			t.Fatalf("byte %d of a region that was deregistered is %#x", i, b)
		}
	}
	p.check("a WRITE to a deregistered region")
}

func unreliableLocalError(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UC})
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 5, SGL: p.b.sge(0, 100)})
	wr := p.wr(1, verbs.OpSend, p.a.sge(0, 100), 0)
	wr.SGL[0].LKey ^= 0x5500
	p.a.send(p.a.qp, wr, p.wr(2, verbs.OpSend, p.a.sge(0, 100), 0))
	p.a.sends.one(1, p.a.localStatus(verbs.LocProtErr))
	p.a.sends.one(2, verbs.WRFlushErr)
	if st := p.b.query(p.b.qp).State; st != verbs.RTS {
		t.Errorf("B's QP is in %v", st)
	}
	p.b.recvs.none("a SEND that failed at the sender")
	p.check("a SEND that failed at the sender")
}
