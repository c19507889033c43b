package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

func srqCases() []Case {
	return []Case{
		{Name: "an SRQ's receives are taken in order by all its QPs", run: srqShared},
		{Name: "an SRQ's limit event comes once when fewer receives are left", run: srqLimit},
		{Name: "an SRQ that runs dry makes RC senders wait, and none fail", run: srqDry},
		{Name: "a failed QP does not take an SRQ's receives with it, and says when it has taken its last", run: srqSurvives},
		{Name: "UD QPs share an SRQ", run: srqDatagrams},
	}
}

func srqShared(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SRQ: true})
	qps := p.contend()
	const each, n = 8, 1500
	for i := range each * rivals {
		p.b.recv(nil, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(100000+i*n, n)})
	}
	for i := range each {
		for k, qp := range qps {
			wr := p.wr(uint64(i), verbs.OpSendWithImm, p.a.sge((i*rivals+k)*100, n), 0)
			wr.Imm = uint32(i*rivals + k)
			p.a.send(qp, wr)
		}
	}
	for _, wc := range p.a.sends.take(each * rivals) {
		if wc.Status != verbs.Success {
			t.Fatalf("a SEND to an SRQ: %v", wc.Status)
		}
	}
	used := map[uint64]bool{}
	last := map[uint32]int{}
	for _, wc := range p.b.recvs.take(each * rivals) {
		if wc.Status != verbs.Success || used[wc.ID] || wc.ID >= each*rivals {
			t.Fatalf("receive %d: %v, used before: %v", wc.ID, wc.Status, used[wc.ID])
		}
		used[wc.ID] = true
		// Within one QP, messages come in order and so do the receives they take.
		if was, ok := last[wc.QPN]; ok && int(wc.ID) <= was {
			t.Errorf("QP %#x took receive %d after %d", wc.QPN, wc.ID, was)
		}
		last[wc.QPN] = int(wc.ID)
		p.b.scatter([]span{{100000 + int(wc.ID)*n, n}}, p.a.gather([]span{{int(wc.Imm) * 100, n}}))
	}
	p.check("%d SENDs of %d QPs to one SRQ", each*rivals, rivals)
}

func srqLimit(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SRQ: true})
	post := func(n int) {
		for range n {
			p.b.recv(nil, verbs.RecvWR{ID: 1})
		}
	}
	eat := func(n int) {
		for range n {
			p.a.send(p.a.qp, p.wr(1, verbs.OpSend, nil, 0))
			p.a.sends.one(1, verbs.Success)
			p.b.recvs.one(1, verbs.Success)
		}
	}
	arm := func(limit int) {
		p.b.mustErr("set SRQ limit", func(done func(error)) { p.b.srq.SetLimit(limit, done) })
	}
	ours := func(e verbs.AsyncEvent) bool { return e.SRQ == p.b.srq }
	post(10)
	arm(5)
	eat(5) // 5 are left, which is not fewer than 5
	if n := p.b.async.count(t, verbs.EventSRQLimitReached); n != 0 {
		t.Errorf("%d limit events with 5 receives left and a limit of 5", n)
	}
	eat(1)
	p.b.async.expect(t, verbs.EventSRQLimitReached, ours)
	eat(2)
	post(10)
	eat(8)
	if n := p.b.async.count(t, verbs.EventSRQLimitReached); n != 1 {
		t.Errorf("%d limit events for one arming", n)
	}
	p.b.async.clear(t)
	post(6)
	arm(3)
	eat(8)
	p.b.async.expect(t, verbs.EventSRQLimitReached, ours)
}

func srqDry(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SRQ: true, RNRRetry: 7, MinRNRTimer: 1})
	second, _ := p.connect()
	const n, count = 2000, 10
	for i := range count {
		p.a.send(p.a.qp, p.wr(uint64(i), verbs.OpSend, p.a.sge(i*n, n), 0))
		p.a.send(second, p.wr(uint64(i), verbs.OpSend, p.a.sge(i*n, n), 0))
	}
	for i := range 2 * count {
		p.b.recv(nil, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(100000+i*n, n)})
		p.b.recvs.one(uint64(i), verbs.Success)
	}
	for _, wc := range p.a.sends.take(2 * count) {
		if wc.Status != verbs.Success {
			t.Fatalf("a SEND to an SRQ that ran dry: %v", wc.Status)
		}
	}
	p.a.check("SENDs to an SRQ that ran dry")
}

func srqSurvives(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, SRQ: true})
	a2, _ := p.connect()
	for i := range 4 {
		p.b.recv(nil, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(i*100, 100)})
	}
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(1000, 100), 0))
	p.a.sends.one(1, verbs.Success)
	p.b.recvs.one(0, verbs.Success)
	p.b.toErr(p.b.qp)
	p.b.async.expect(t, verbs.EventQPLastWQEReached, func(e verbs.AsyncEvent) bool { return e.QP == p.b.qp })
	p.a.send(a2, p.wr(2, verbs.OpSend, p.a.sge(2000, 100), 0))
	p.a.sends.one(2, verbs.Success)
	p.b.recvs.one(1, verbs.Success)
	p.b.recvs.none("a QP on an SRQ failed")
	p.b.scatter([]span{{0, 100}}, p.a.gather([]span{{1000, 100}}))
	p.b.scatter([]span{{100, 100}}, p.a.gather([]span{{2000, 100}}))
	p.check("SENDs around the failure of a QP on an SRQ")
}

func srqDatagrams(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD, SRQ: true})
	_, second := p.connect()
	for i := range 4 {
		p.b.recv(nil, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(i*200, 140)})
	}
	for i := range 4 {
		wr := p.wr(9, verbs.OpSend, p.a.sge(i*100, 100), 0)
		if i%2 == 1 {
			wr.RemoteQPN = second.Num()
		}
		p.a.send(p.a.qp, wr)
		p.a.sends.one(9, verbs.Success)
		wc := p.b.recvs.one(uint64(i), verbs.Success)
		if wc.QPN != wr.RemoteQPN {
			t.Errorf("datagram %d completed on QP %#x, sent to %#x", i, wc.QPN, wr.RemoteQPN)
		}
		p.b.settle(span{i * 200, grhLen})
		p.b.scatter([]span{{i*200 + grhLen, 100}}, p.a.gather([]span{{i * 100, 100}}))
		p.check("datagram %d to an SRQ", i)
	}
}
