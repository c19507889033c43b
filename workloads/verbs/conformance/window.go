package conformance

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func windowCases() []Case {
	var all []Case
	for _, kind := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		all = append(all,
			Case{Name: fmt.Sprintf("a type %d window opens its range and nothing else", kind), run: func(t T, s *Suite) { windowRange(t, s, kind) }},
			Case{Name: fmt.Sprintf("a type %d window gives only the access it was bound with", kind), run: func(t T, s *Suite) { windowAccess(t, s, kind) }},
			Case{Name: fmt.Sprintf("a type %d window on a region without MW_BIND fails with MW_BIND_ERR", kind), run: func(t T, s *Suite) { windowUnbindable(t, s, kind) }},
		)
	}
	return append(all,
		Case{Name: "a type 1 window that is bound again has a new key and the old one is dead", run: windowRebind},
		Case{Name: "a window on another protection domain's region fails with MW_BIND_ERR", run: windowOtherPD},
		Case{Name: "LOCAL_INV closes a type 2 window", run: windowLocalInv},
		Case{Name: "SEND_WITH_INV closes the receiver's type 2 window and the receive says which", run: windowSendInv},
	)
}

// window allocates a window of B's and binds it on B's QP to part of its region.
func (p *pair) window(kind verbs.MWType) verbs.MW {
	p.t.Helper()
	w := must(p.b, "allocate memory window", func(done func(verbs.MW, error)) { p.b.pd.AllocMW(kind, done) })
	p.b.cleanup("deallocate memory window", w.Dealloc)
	return w
}

func (p *pair) bind(w verbs.MW, off, n int, access verbs.Access) {
	p.t.Helper()
	p.b.send(p.b.qp, verbs.SendWR{ID: 60, Op: verbs.OpBindMW, Flags: verbs.Signaled,
		Bind: &verbs.BindMW{MW: w, MR: p.b.mr, Addr: p.b.addr(off), Length: uint64(n), Access: access}})
	if wc := p.b.sends.one(60, verbs.Success); wc.Op != verbs.WCBindMW {
		p.t.Fatalf("a binding completed as %v", wc.Op)
	}
}

func (p *pair) rkey(w verbs.MW) uint32 {
	p.t.Helper()
	var k uint32
	p.b.now("read key", func() error { k = w.RKey(); return nil })
	return k
}

// through makes a request of A's through a key of B's.
func (p *pair) through(key uint32, op verbs.Opcode, off, n int) verbs.SendWR {
	wr := p.wr(1, op, p.a.sge(0, n), off)
	wr.RKey = key
	return wr
}

func windowRange(t T, s *Suite, kind verbs.MWType) {
	const off, n = 9000, 5000
	for _, c := range []struct {
		what      string
		off, n    int
		want      verbs.Status
		departure string
	}{
		{"all of it", off, n, verbs.Success, ""},
		{"its first byte", off, 1, verbs.Success, ""},
		{"its last byte", off + n - 1, 1, verbs.Success, ""},
		{"a byte before it", off - 1, 2, verbs.RemAccessErr, WindowBoundsUnchecked},
		{"a byte after it", off + n - 1, 2, verbs.RemAccessErr, WindowBoundsUnchecked},
	} {
		p := newPair(t, s, options{Type: verbs.RC})
		w := p.window(kind)
		p.bind(w, off, n, verbs.RemoteWrite|verbs.RemoteRead)
		p.a.send(p.a.qp, p.through(p.rkey(w), verbs.OpRDMAWrite, c.off, c.n))
		want := c.want
		if c.departure != "" && p.b.departs(c.departure) {
			want = verbs.Success
		}
		p.a.sends.one(1, want)
		if want == verbs.Success {
			p.b.scatter([]span{{c.off, c.n}}, p.a.gather([]span{{0, c.n}}))
		}
		p.check("a WRITE to a window: %s", c.what)
	}
}

func windowAccess(t T, s *Suite, kind verbs.MWType) {
	for _, c := range []struct {
		access verbs.Access
		op     verbs.Opcode
		want   verbs.Status
	}{
		{verbs.RemoteWrite, verbs.OpRDMAWrite, verbs.Success},
		{verbs.RemoteWrite, verbs.OpRDMARead, verbs.RemAccessErr},
		{verbs.RemoteRead, verbs.OpRDMARead, verbs.Success},
		{verbs.RemoteRead, verbs.OpRDMAWrite, verbs.RemAccessErr},
		{verbs.RemoteRead, verbs.OpAtomicFetchAndAdd, verbs.RemAccessErr},
		{verbs.RemoteAtomic, verbs.OpAtomicFetchAndAdd, verbs.Success},
	} {
		p := newPair(t, s, options{Type: verbs.RC})
		w := p.window(kind)
		p.bind(w, 8192, 64, c.access)
		before := p.b.word(8192)
		p.a.send(p.a.qp, p.through(p.rkey(w), c.op, 8192, 8))
		p.a.sends.one(1, c.want)
		if c.want == verbs.Success {
			switch c.op {
			case verbs.OpRDMAWrite:
				p.b.scatter([]span{{8192, 8}}, p.a.gather([]span{{0, 8}}))
			default: // the addend is zero
				p.a.wantWord(0, before)
			}
		}
		p.check("%v through a window bound with %v", c.op, c.access)
	}
}

func windowUnbindable(t T, s *Suite, kind verbs.MWType) {
	p := newPair(t, s, options{Type: verbs.RC})
	w := p.window(kind)
	_, mr := p.b.region(4096, verbs.LocalWrite|verbs.RemoteWrite)
	err := p.b.attempt(func() error {
		return p.b.qp.PostSend(verbs.SendWR{ID: 61, Op: verbs.OpBindMW, Flags: verbs.Signaled,
			Bind: &verbs.BindMW{MW: w, MR: mr, Addr: mr.Addr(), Length: 100, Access: verbs.RemoteWrite}})
	})
	if err == nil {
		p.b.sends.one(61, p.b.localStatus(verbs.MWBindErr))
	}
	p.check("a binding to a region without MW_BIND")
}

func windowOtherPD(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	w := p.window(verbs.MWType2)
	pd := must(p.b, "allocate PD", p.b.dev.AllocPD)
	p.b.cleanup("deallocate PD", pd.Dealloc)
	mem := p.b.memory(4096)
	mr := must(p.b, "register memory", func(done func(verbs.MR, error)) { pd.RegMR(mem, 0, 4096, everyAccess, done) })
	p.b.cleanup("deregister memory", mr.Dereg)
	err := p.b.attempt(func() error {
		return p.b.qp.PostSend(verbs.SendWR{ID: 61, Op: verbs.OpBindMW, Flags: verbs.Signaled,
			Bind: &verbs.BindMW{MW: w, MR: mr, Addr: mr.Addr(), Length: 100, Access: verbs.RemoteWrite}})
	})
	if err == nil {
		p.b.sends.one(61, p.b.localStatus(verbs.MWBindErr))
	}
}

func windowRebind(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	w := p.window(verbs.MWType1)
	p.bind(w, 1000, 100, verbs.RemoteWrite)
	old := p.rkey(w)
	p.bind(w, 2000, 100, verbs.RemoteWrite)
	if now := p.rkey(w); now == old {
		t.Fatalf("the key is %#x before and after", old)
	}
	p.a.send(p.a.qp, p.through(p.rkey(w), verbs.OpRDMAWrite, 2000, 100))
	p.a.sends.one(1, verbs.Success)
	p.b.scatter([]span{{2000, 100}}, p.a.gather([]span{{0, 100}}))
	p.a.send(p.a.qp, p.through(old, verbs.OpRDMAWrite, 1000, 100))
	p.a.sends.one(1, verbs.RemAccessErr)
	p.check("a window that was bound again")
}

func windowLocalInv(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	w := p.window(verbs.MWType2)
	p.bind(w, 1000, 100, verbs.RemoteWrite)
	key := p.rkey(w)
	p.a.send(p.a.qp, p.through(key, verbs.OpRDMAWrite, 1000, 100))
	p.a.sends.one(1, verbs.Success)
	p.b.scatter([]span{{1000, 100}}, p.a.gather([]span{{0, 100}}))
	p.b.send(p.b.qp, verbs.SendWR{ID: 62, Op: verbs.OpLocalInv, Flags: verbs.Signaled, InvRKey: key})
	if wc := p.b.sends.one(62, verbs.Success); wc.Op != verbs.WCLocalInv {
		t.Errorf("LOCAL_INV completed as %v", wc.Op)
	}
	p.a.send(p.a.qp, p.through(key, verbs.OpRDMAWrite, 1000, 50))
	p.a.sends.one(1, verbs.RemAccessErr)
	p.check("a window that was invalidated")
}

func windowSendInv(t T, s *Suite) {
	for _, n := range []int{200, 10000} { // one packet, and several
		sendInv(newPair(t, s, options{Type: verbs.RC}), n)
	}
}

func sendInv(p *pair, n int) {
	p.t.Helper()
	w := p.window(verbs.MWType2)
	p.bind(w, 1000, 100, verbs.RemoteWrite)
	key := p.rkey(w)
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 70, SGL: p.b.sge(5000, n)})
	wr := p.wr(1, verbs.OpSendWithInv, p.a.sge(300, n), 0)
	wr.InvRKey = key
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.Success)
	wc := p.b.recvs.one(70, verbs.Success)
	if wc.Flags&verbs.WithInv == 0 || wc.InvRKey != key || wc.ByteLen != uint32(n) {
		p.t.Errorf("the receive is %+v, want the key %#x and %d bytes", wc, key, n)
	}
	p.b.scatter([]span{{5000, n}}, p.a.gather([]span{{300, n}}))
	p.check("SEND_WITH_INV of %d bytes", n)
	p.a.send(p.a.qp, p.through(key, verbs.OpRDMAWrite, 1000, 50))
	p.a.sends.one(1, verbs.RemAccessErr)
	p.check("a window that a SEND of %d bytes invalidated", n)
}
