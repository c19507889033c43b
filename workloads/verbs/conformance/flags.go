package conformance

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func flagCases() []Case {
	return []Case{
		{Name: "RC unsignalled requests make no completion", run: unsignalled},
		{Name: "RC with SignalAll every request makes a completion", run: signalAll},
		{Name: "RC an unsignalled request that fails makes a completion", run: unsignalledFailure},
		{Name: "RC a batch longer than the send queue is taken up to its depth", run: overfull},
		{Name: "RC inline data is that of the time of posting, whatever its keys", run: inline},
		{Name: "UC inline data is that of the time of posting", run: inlineUC},
		{Name: "RC inline data beyond the QP's limit is refused", run: inlineTooLong},
		{Name: "RC a list with too many pieces is refused", run: tooManyPieces},
		{Name: "only solicited receives wake a CQ that is armed for them", run: solicited},
		{Name: "a failed receive wakes a CQ that is armed for solicited ones", run: failedIsSolicited},
		{Name: "a CQ's event comes once an arming", run: oneEventAnArming},
	}
}

func unsignalled(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	var wrs []verbs.SendWR
	for i := range 20 {
		wr := p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(i*100, 100), 100000+i*100)
		if i != 9 && i != 19 {
			wr.Flags = 0
		}
		wrs = append(wrs, wr)
	}
	p.a.send(p.a.qp, wrs...)
	p.a.sends.one(9, verbs.Success)
	p.a.sends.one(19, verbs.Success)
	p.b.scatter([]span{{100000, 2000}}, p.a.gather([]span{{0, 2000}}))
	p.check("18 unsignalled WRITEs and 2 signalled ones")
	p.prove("unsignalled WRITEs")
	p.a.sends.none("20 WRITEs, 2 of them signalled")
}

func signalAll(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SignalAll: true})
	for i := range 5 {
		wr := p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(0, 10), 0)
		wr.Flags = 0
		p.a.send(p.a.qp, wr)
	}
	for i := range 5 {
		p.a.sends.one(uint64(i), verbs.Success)
	}
	p.b.scatter([]span{{0, 10}}, p.a.gather([]span{{0, 10}}))
	p.check("5 WRITEs")
}

func unsignalledFailure(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	bad := p.wr(2, verbs.OpRDMAWrite, p.a.sge(0, 10), 0)
	bad.Flags, bad.RKey = 0, bad.RKey+1
	ok := p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 10), 0)
	ok.Flags = 0
	p.a.send(p.a.qp, ok, bad)
	p.a.sends.one(2, verbs.RemAccessErr)
	p.b.scatter([]span{{0, 10}}, p.a.gather([]span{{0, 10}}))
	p.check("a good and a bad unsignalled WRITE")
}

// overfull posts until the queue is full: what was taken is done, and nothing else.
func overfull(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, Depth: 16, CQDepth: 4096, StopB: true, BState: verbs.Init})
	// B doesn't answer, so nothing leaves A's queue. A provider may have made it deeper.
	var wrs []verbs.SendWR
	for i := range 2000 {
		wrs = append(wrs, p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(i, 1), 100000+i))
	}
	err := p.a.attempt(func() error { return p.a.qp.PostSend(wrs...) })
	var post *verbs.PostError
	if !errors.As(err, &post) {
		t.Fatalf("2000 requests on a queue of 16: error %v", err)
	}
	if post.Posted < 16 || post.Posted >= 2000 {
		t.Fatalf("2000 requests on a queue of 16: %d were taken (%v)", post.Posted, err)
	}
	// B comes up, and what was taken arrives.
	p.bringB(verbs.RTS)
	for i := range post.Posted {
		p.a.sends.one(uint64(i), verbs.Success)
	}
	p.b.scatter([]span{{100000, post.Posted}}, p.a.gather([]span{{0, post.Posted}}))
	p.check("%d of 2000 WRITEs", post.Posted)
	p.prove("after the overfull batch")
}

func inline(t T, s *Suite)   { inlineOn(t, s, verbs.RC) }
func inlineUC(t T, s *Suite) { inlineOn(t, s, verbs.UC) }

func inlineOn(t T, s *Suite, kind verbs.QPType) {
	const limit = 128
	p := newPair(t, s, options{Type: kind, Inline: limit})
	for _, n := range []int{0, 1, 17, 64, limit} {
		for _, sh := range shapes {
			for _, op := range []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWrite} {
				what := fmt.Sprintf("inline %v of %d bytes in %s", op, n, sh.name)
				list, here := p.a.sgl(200, sh.cut(n))
				for i := range list {
					list[i].LKey = 0xbad
				}
				data := p.a.gather(here)
				wr := p.wr(1, op, list, 1000)
				wr.Flags |= verbs.Inline
				if op == verbs.OpSend {
					p.b.recv(p.b.qp, verbs.RecvWR{ID: 2, SGL: p.b.sge(1000, n)})
				}
				p.a.now("post, then overwrite the buffer", func() error {
					err := p.a.qp.PostSend(wr)
					for i := range p.a.want[:2000] {
						p.a.want[i]++
					}
					copy(p.a.mem.Bytes(), p.a.want[:2000])
					return err
				})
				p.a.sends.one(1, verbs.Success)
				if op == verbs.OpSend {
					p.b.recvs.one(2, verbs.Success)
				} else if kind == verbs.UC {
					p.flag()
				}
				p.b.scatter([]span{{1000, n}}, data)
				p.check("%s", what)
			}
		}
	}
}

func inlineTooLong(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, Inline: 32})
	// A provider may have given more than it was asked for, but never a megabyte.
	mem, mr := p.a.region(1<<20, verbs.LocalWrite)
	wr := p.wr(1, verbs.OpSend, []verbs.SGE{{Addr: mr.Addr(), Length: uint32(mem.Len()), LKey: mr.LKey()}}, 0)
	wr.Flags |= verbs.Inline
	p.refused(wr, "a megabyte inline")
}

func tooManyPieces(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	cut := make([]int, 200) // more than any device takes
	for i := range cut {
		cut[i] = 1
	}
	list, _ := p.a.sgl(0, cut)
	p.refused(p.wr(1, verbs.OpSend, list, 0), "200 pieces")
	var post *verbs.PostError
	if err := p.b.attempt(func() error { return p.b.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: list}) }); !errors.As(err, &post) {
		t.Errorf("a receive of 200 pieces: error %v", err)
	}
	p.prove("lists that were too long")
}

// refused posts a good request, the given one and another good one: the first is taken alone.
func (p *pair) refused(bad verbs.SendWR, what string) {
	p.t.Helper()
	good := p.wr(7, verbs.OpRDMAWrite, p.a.sge(0, 4), 0)
	err := p.a.attempt(func() error { return p.a.qp.PostSend(good, bad, good) })
	var post *verbs.PostError
	if !errors.As(err, &post) || post.Posted != 1 {
		p.t.Fatalf("%s between two good requests: error %v (%+v), want one taken", what, err, post)
	}
	p.a.sends.one(7, verbs.Success)
	p.b.scatter([]span{{0, 4}}, p.a.gather([]span{{0, 4}}))
	p.prove(what)
}

// solicitedPair has B's receive CQ under the case's control.
func solicitedPair(t T, s *Suite) *pair {
	return newPair(t, s, options{Type: verbs.RC, ManualRecv: true})
}

func solicited(t T, s *Suite) {
	p := solicitedPair(t, s)
	arm := func() { p.b.now("arm", func() error { return p.b.recvs.cq.ReqNotify(true) }) }
	send := func(flags verbs.SendFlags) {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 5})
		wr := p.wr(6, verbs.OpSend, nil, 0)
		wr.Flags |= flags
		p.a.send(p.a.qp, wr)
		p.a.sends.one(6, verbs.Success)
	}
	arm()
	for range 3 {
		send(0)
	}
	// The completions are there, and no event was.
	for range 3 {
		p.b.recvs.one(5, verbs.Success)
	}
	if n := p.b.recvs.eventCount(); n != 0 {
		t.Fatalf("%d events for unsolicited receives", n)
	}
	send(verbs.Solicited)
	p.b.recvs.event(1)
	p.b.recvs.one(5, verbs.Success)
	// Armed for any completion, an unsolicited one wakes it.
	p.b.now("arm", func() error { return p.b.recvs.cq.ReqNotify(false) })
	send(0)
	p.b.recvs.event(2)
	p.b.recvs.one(5, verbs.Success)
}

func failedIsSolicited(t T, s *Suite) {
	p := solicitedPair(t, s)
	p.b.now("arm", func() error { return p.b.recvs.cq.ReqNotify(true) })
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 5})
	p.b.mustErr("modify QP to ERR", func(done func(error)) {
		p.b.qp.Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, done)
	})
	if p.b.departs(FlushNotSolicited) {
		p.b.recvs.one(5, verbs.WRFlushErr)
		p.b.pause()
		if n := p.b.recvs.eventCount(); n != 0 {
			t.Errorf("%d events, declared as none", n)
		}
		return
	}
	p.b.recvs.event(1)
	p.b.recvs.one(5, verbs.WRFlushErr)
}

func oneEventAnArming(t T, s *Suite) {
	p := solicitedPair(t, s)
	p.b.now("arm", func() error { return p.b.recvs.cq.ReqNotify(false) })
	for range 5 {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 5})
		p.a.send(p.a.qp, p.wr(6, verbs.OpSend, nil, 0))
		p.a.sends.one(6, verbs.Success)
	}
	p.b.recvs.event(1)
	for range 5 {
		p.b.recvs.one(5, verbs.Success)
	}
	if n := p.b.recvs.eventCount(); n != 1 {
		t.Errorf("%d events for one arming", n)
	}
	// Unarmed, nothing comes; the pair still works.
	p.prove("one arming")
	if n := p.b.recvs.eventCount(); n != 1 {
		t.Errorf("%d events for one arming", n)
	}
}
