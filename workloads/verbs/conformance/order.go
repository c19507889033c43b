package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

func orderCases() []Case {
	return []Case{
		{Name: "RC a fenced SEND carries what the READ before it brought", run: fencedSend},
		{Name: "RC a fenced SEND carries what the atomic before it brought", run: fencedAtomic},
		{Name: "RC READs beyond the number that may be outstanding wait and all succeed", run: manyReads},
		{Name: "RC READs beyond what the responder allows are refused as invalid", run: tooManyReads},
		{Name: "RC a READ returns what the WRITE before it wrote", run: readAfterWrite},
		{Name: "RC the receive of a SEND shows that the WRITEs before it have arrived", run: sendAfterWrites},
	}
}

func fencedSend(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const n = 20000
	for i := range 5 {
		from, tmp, to := i*n, 30000, 120000+i*n
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 3, SGL: p.b.sge(to, n)})
		read := p.wr(1, verbs.OpRDMARead, p.a.sge(tmp, n), from)
		send := p.wr(2, verbs.OpSend, p.a.sge(tmp, n), 0)
		send.Flags |= verbs.Fence
		p.a.send(p.a.qp, read, send)
		p.a.sends.one(1, verbs.Success)
		p.a.sends.one(2, verbs.Success)
		p.b.recvs.one(3, verbs.Success)
		data := p.b.gather([]span{{from, n}})
		p.a.scatter([]span{{tmp, n}}, data)
		p.b.scatter([]span{{to, n}}, data)
		p.check("READ and fenced SEND %d", i)
	}
}

func fencedAtomic(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	p.b.putWord(4096, 41)
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 3, SGL: p.b.sge(9000, 8)})
	add := p.wr(1, verbs.OpAtomicFetchAndAdd, p.a.sge(800, 8), 4096)
	add.CompareAdd = 1
	send := p.wr(2, verbs.OpSend, p.a.sge(800, 8), 0)
	send.Flags |= verbs.Fence
	p.a.send(p.a.qp, add, send)
	p.a.sends.one(1, verbs.Success)
	p.a.sends.one(2, verbs.Success)
	p.b.recvs.one(3, verbs.Success)
	p.a.wantWord(800, 41)
	p.b.wantWord(4096, 42)
	p.b.wantWord(9000, 41)
	p.check("FETCH_AND_ADD and fenced SEND")
}

func manyReads(t T, s *Suite) {
	for _, limit := range []int{1, 2, 4, 16} {
		p := newPair(t, s, options{Type: verbs.RC, MaxRDAtomic: limit, MaxDestRD: limit})
		const n, count = 3000, 30
		var wrs []verbs.SendWR
		for i := range count {
			wrs = append(wrs, p.wr(uint64(i), verbs.OpRDMARead, p.a.sge(i*n, n), 1000+(count-1-i)*n))
		}
		p.a.send(p.a.qp, wrs...)
		for i := range count {
			p.a.sends.one(uint64(i), verbs.Success)
			p.a.scatter([]span{{i * n, n}}, p.b.gather([]span{{1000 + (count-1-i)*n, n}}))
		}
		p.check("30 READs, %d outstanding", limit)
	}
}

// tooManyReads has a requester that may have more READs outstanding than the responder takes.
// A responder that is quick enough never has too many, so success is right as well.
func tooManyReads(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, MaxRDAtomic: 16, MaxDestRD: 1})
	const n, count = 8000, 16
	var wrs []verbs.SendWR
	for i := range count {
		wrs = append(wrs, p.wr(uint64(i), verbs.OpRDMARead, p.a.sge(i*n, n), 1000+i*100))
	}
	unlimited := p.b.departs(ReadsUnlimited)
	p.a.send(p.a.qp, wrs...)
	for i := range count {
		wc := p.a.sends.take(1)[0]
		switch {
		case wc.ID != uint64(i):
			t.Fatalf("completion %d is of request %d", i, wc.ID)
		case wc.Status == verbs.Success:
			p.a.scatter([]span{{i * n, n}}, p.b.gather([]span{{1000 + i*100, n}}))
		case unlimited || wc.Status != verbs.RemInvReqErr:
			t.Fatalf("READ %d of %d where one is allowed: %v", i, count, wc.Status)
		default:
			p.b.check("READs beyond the responder's limit")
			return
		}
	}
	p.check("%d READs where one is allowed", count)
}

func readAfterWrite(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const n = 7000
	var wrs []verbs.SendWR
	for i := range 8 {
		write := p.wr(uint64(2*i), verbs.OpRDMAWrite, p.a.sge(i*n, n), 50000)
		write.Flags |= verbs.Fence // without it the next WRITE may be done before the READ (10.8.3.3)
		wrs = append(wrs, write,
			p.wr(uint64(2*i+1), verbs.OpRDMARead, p.a.sge(100000+i*n, n), 50000))
	}
	p.a.send(p.a.qp, wrs...)
	for i := range wrs {
		p.a.sends.one(uint64(i), verbs.Success)
	}
	for i := range 8 {
		data := p.a.gather([]span{{i * n, n}})
		p.b.scatter([]span{{50000, n}}, data)
		p.a.scatter([]span{{100000 + i*n, n}}, data)
	}
	p.check("8 times WRITE and READ of one place")
}

func sendAfterWrites(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const n, count = 5000, 10
	for round := range 3 {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 9})
		var wrs []verbs.SendWR
		for i := range count {
			wr := p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(round*100+i*n, n), 100000+i*n)
			wr.Flags = 0
			wrs = append(wrs, wr)
		}
		wrs = append(wrs, p.wr(50, verbs.OpSend, nil, 0))
		p.a.send(p.a.qp, wrs...)
		p.b.recvs.one(9, verbs.Success)
		p.b.scatter([]span{{100000, count * n}}, p.a.gather([]span{{round * 100, count * n}}))
		p.b.check("round %d: at the receive", round)
		p.a.sends.one(50, verbs.Success)
	}
}
