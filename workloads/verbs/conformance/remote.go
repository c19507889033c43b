package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

func remoteErrorCases() []Case {
	// access makes a WRITE, READ or atomic to a place and with a key of B's.
	to := func(op verbs.Opcode, off, n int, key func(p *pair) uint32) func(p *pair) verbs.SendWR {
		return func(p *pair) verbs.SendWR {
			wr := p.wr(0, op, p.a.sge(4096, n), off)
			if key != nil {
				wr.RKey = key(p)
			}
			return wr
		}
	}
	badKey := func(p *pair) uint32 { return p.b.mr.RKey() ^ 0x5500 }
	nextKey := func(p *pair) uint32 { return p.b.mr.RKey() + 1 }
	without := func(op verbs.Opcode, access verbs.Access) func(p *pair) verbs.SendWR {
		return func(p *pair) verbs.SendWR {
			mem, mr := p.b.region(4096, access)
			wr := p.wr(0, op, p.a.sge(4096, 8), 0)
			wr.RemoteAddr, wr.RKey = mem.Addr(), mr.RKey()
			return wr
		}
	}
	otherPD := func(p *pair) verbs.SendWR {
		pd := must(p.b, "allocate PD", p.b.dev.AllocPD)
		p.b.cleanup("deallocate PD", pd.Dealloc)
		mem := p.b.memory(4096)
		mr := must(p.b, "register memory", func(done func(verbs.MR, error)) { pd.RegMR(mem, 0, 4096, everyAccess, done) })
		p.b.cleanup("deregister memory", mr.Dereg)
		wr := p.wr(0, verbs.OpRDMAWrite, p.a.sge(0, 100), 0)
		wr.RemoteAddr, wr.RKey = mr.Addr(), mr.RKey()
		return wr
	}
	accessErr := func(name string, bad func(p *pair) verbs.SendWR) failure {
		return failure{name: "RC " + name + " fails with REM_ACCESS_ERR", bad: bad, recv: 200, want: verbs.RemAccessErr,
			wantRecv: verbs.WRFlushErr, remote: true, event: verbs.EventQPAccessErr}
	}
	invalid := func(name string, o options, bad func(p *pair) verbs.SendWR) failure {
		return failure{name: "RC " + name + " fails with REM_INV_REQ_ERR", o: o, bad: bad, recv: 200, want: verbs.RemInvReqErr,
			wantRecv: verbs.WRFlushErr, remote: true, event: verbs.EventQPReqErr}
	}
	noAccess := options{Type: verbs.RC, QPAccess: verbs.RemoteWrite}
	noWrite := options{Type: verbs.RC, QPAccess: verbs.RemoteRead}
	fails := []failure{
		accessErr("a WRITE with a remote key that there is not", to(verbs.OpRDMAWrite, 1000, 100, badKey)),
		accessErr("a WRITE of several packets with a remote key that there is not", to(verbs.OpRDMAWrite, 1000, 5000, badKey)),
		accessErr("a WRITE with a remote key one off", to(verbs.OpRDMAWrite, 1000, 100, nextKey)),
		accessErr("a READ with a remote key that there is not", to(verbs.OpRDMARead, 1000, 100, badKey)),
		accessErr("an atomic with a remote key that there is not", to(verbs.OpAtomicFetchAndAdd, 1024, 8, badKey)),
		accessErr("a WRITE that begins before the region", to(verbs.OpRDMAWrite, -1, 100, nil)),
		accessErr("a WRITE that ends beyond the region", to(verbs.OpRDMAWrite, memSize-99, 100, nil)),
		accessErr("a WRITE of several packets that ends beyond the region", to(verbs.OpRDMAWrite, memSize-4999, 5000, nil)),
		accessErr("a READ that ends beyond the region", to(verbs.OpRDMARead, memSize-4999, 5000, nil)),
		accessErr("an atomic beyond the region", to(verbs.OpAtomicCmpAndSwp, memSize, 8, nil)),
		accessErr("a WRITE to a region without REMOTE_WRITE", without(verbs.OpRDMAWrite, verbs.LocalWrite|verbs.RemoteRead)),
		accessErr("a READ of a region without REMOTE_READ", without(verbs.OpRDMARead, verbs.LocalWrite|verbs.RemoteWrite)),
		accessErr("an atomic on a region without REMOTE_ATOMIC", without(verbs.OpAtomicFetchAndAdd, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)),
		accessErr("a WRITE to another protection domain's region", otherPD),
		invalid("a READ to a QP without REMOTE_READ", noAccess, to(verbs.OpRDMARead, 1000, 100, nil)),
		{name: "RC a WRITE to a QP without REMOTE_WRITE fails with REM_INV_REQ_ERR", o: noWrite},
		invalid("an atomic to a QP without REMOTE_ATOMIC", noAccess, to(verbs.OpAtomicFetchAndAdd, 1024, 8, nil)),
		{name: "RC a SEND longer than its receive fails with REM_INV_REQ_ERR, the receive with LOC_LEN_ERR",
			bad: to(verbs.OpSend, 0, 300, nil), recv: 200, want: verbs.RemInvReqErr, wantRecv: verbs.LocLenErr, remote: true, touched: []span{{100000, 200}},
			departure: LongSendReceiveStatus, departs: verbs.RemOpErr, departsRcv: verbs.LocQPOpErr},
		{name: "RC a SEND of several packets longer than its receive fails with REM_INV_REQ_ERR",
			bad: to(verbs.OpSend, 0, 5000, nil), recv: 3000, want: verbs.RemInvReqErr, wantRecv: verbs.LocLenErr, remote: true, touched: []span{{100000, 3000}},
			departure: LongSendReceiveStatus, departs: verbs.RemOpErr, departsRcv: verbs.LocQPOpErr},
	}
	var all []Case
	for _, f := range fails {
		if f.bad == nil {
			all = append(all, Case{Name: f.name, run: writeWithoutAccess})
			continue
		}
		all = append(all, Case{Name: f.name, run: f.run})
	}
	return append(all,
		Case{Name: "RC a SEND into a receive with a bad local key fails with REM_OP_ERR, the receive with LOC_PROT_ERR", run: badReceive},
		Case{Name: "RC a misaligned atomic is refused or fails with REM_INV_REQ_ERR", run: misaligned},
		Case{Name: "RC a READ to a QP that allows none outstanding fails with REM_INV_REQ_ERR", run: noReadsAllowed},
		Case{Name: "RC a WRITE of no bytes needs no key", run: emptyWrite},
	)
}

// writeWithoutAccess can't use the good WRITE that failures begin with.
func writeWithoutAccess(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, QPAccess: verbs.RemoteRead})
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000), p.wr(2, verbs.OpRDMARead, p.a.sge(0, 100), 1000))
	p.a.sends.one(1, verbs.RemInvReqErr)
	p.a.sends.one(2, verbs.WRFlushErr)
	p.check("a WRITE to a QP without REMOTE_WRITE")
	p.b.awaitErr(p.b.qp)
	p.checkEvent(failure{name: "a WRITE to a QP without REMOTE_WRITE", event: verbs.EventQPReqErr})
}

func badReceive(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	sgl := p.b.sge(0, 200)
	sgl[0].LKey ^= 0x5500
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 5, SGL: sgl}, verbs.RecvWR{ID: 6})
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 100), 0))
	p.a.sends.one(1, verbs.RemOpErr)
	want := verbs.LocProtErr
	if p.b.departs(BadReceiveStatus) {
		want = verbs.LocQPOpErr
	}
	p.b.recvs.one(5, want)
	p.b.recvs.one(6, verbs.WRFlushErr)
	p.check("a receive with a bad local key")
}

func misaligned(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	err := p.a.attempt(func() error { return p.a.qp.PostSend(p.wr(1, verbs.OpAtomicFetchAndAdd, p.a.sge(0, 8), 1028)) })
	if err == nil {
		p.a.sends.one(1, verbs.RemInvReqErr)
	}
	p.check("a misaligned atomic")
}

func noReadsAllowed(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, MaxDestRD: -1})
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMARead, p.a.sge(0, 100), 1000))
	p.a.sends.one(1, verbs.RemInvReqErr)
	p.check("a READ to a QP that allows none")
}

func emptyWrite(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead} {
		wr := p.wr(1, op, nil, 0)
		wr.RemoteAddr, wr.RKey = 0xdead, 0xbeef
		p.a.send(p.a.qp, wr)
		p.a.sends.one(1, verbs.Success)
	}
	p.check("an empty WRITE and READ with keys of nothing")
	p.prove("empty requests")
}
