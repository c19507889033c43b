package conformance

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func atomicCases() []Case {
	return []Case{
		{Name: "RC FETCH_AND_ADD returns the old value and adds, and wraps", run: fetchAdd},
		{Name: "RC CMP_AND_SWP returns the old value and swaps only if it was equal", run: compareSwap},
		{Name: "RC an atomic's result goes where its scatter-gather list says", run: atomicPieces},
		{Name: "RC FETCH_AND_ADDs of many QPs lose nothing and return every value once", run: contendedAdd},
		{Name: "RC CMP_AND_SWPs of many QPs let exactly one win each round", run: contendedSwap},
	}
}

// putWord sets eight bytes of the region, in the host's order.
func (h *half) putWord(off int, v uint64) {
	binary.NativeEndian.PutUint64(h.mem.Bytes()[off:], v)
	h.wantWord(off, v)
}

func (h *half) wantWord(off int, v uint64) { binary.NativeEndian.PutUint64(h.want[off:], v) }

func (h *half) word(off int) uint64 { return binary.NativeEndian.Uint64(h.mem.Bytes()[off:]) }

func fetchAdd(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const at = 4096
	value := uint64(0xfffffffffffffff0)
	p.b.putWord(at, value)
	for i, add := range []uint64{0, 1, 7, 0x10, 1 << 63, 0xffffffffffffffff, 0x123456789abcdef0} {
		wr := p.wr(1, verbs.OpAtomicFetchAndAdd, p.a.sge(16*i, 8), at)
		wr.CompareAdd = add
		p.a.send(p.a.qp, wr)
		if wc := p.a.sends.one(1, verbs.Success); wc.Op != verbs.WCFetchAdd {
			t.Errorf("completion %v", wc.Op)
		}
		p.a.wantWord(16*i, value)
		value += add
		p.b.wantWord(at, value)
		p.check("FETCH_AND_ADD of %#x", add)
	}
}

func compareSwap(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const at = 8192
	value := uint64(5)
	p.b.putWord(at, value)
	for i, c := range []struct{ compare, swap uint64 }{{5, 6}, {5, 7}, {6, 0xfedcba9876543210}, {6, 1}, {0xfedcba9876543210, 0}, {0, 0}} {
		wr := p.wr(1, verbs.OpAtomicCmpAndSwp, p.a.sge(16*i, 8), at)
		wr.CompareAdd, wr.Swap = c.compare, c.swap
		p.a.send(p.a.qp, wr)
		if wc := p.a.sends.one(1, verbs.Success); wc.Op != verbs.WCCompSwap {
			t.Errorf("completion %v", wc.Op)
		}
		p.a.wantWord(16*i, value)
		if value == c.compare {
			value = c.swap
		}
		p.b.wantWord(at, value)
		p.check("CMP_AND_SWP %d", i)
	}
}

func atomicPieces(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	for i, cut := range [][]int{{3, 5}, {1, 1, 1, 1, 1, 1, 1, 1}, {0, 8, 0}} {
		value := 0x0102030405060708 * uint64(i+1)
		p.b.putWord(4096, value)
		list, spans := p.a.sgl(100*i, cut)
		wr := p.wr(1, verbs.OpAtomicFetchAndAdd, list, 4096)
		wr.CompareAdd = 1
		p.a.send(p.a.qp, wr)
		p.a.sends.one(1, verbs.Success)
		var old [8]byte
		binary.NativeEndian.PutUint64(old[:], value)
		p.a.scatter(spans, old[:])
		p.b.wantWord(4096, value+1)
		p.check("FETCH_AND_ADD into pieces of %v bytes", cut)
	}
}

const rivals = 6

// contend brings up more QPs beside the pair's own.
func (p *pair) contend() []verbs.QP {
	qps := []verbs.QP{p.a.qp}
	for len(qps) < rivals {
		a, _ := p.connect()
		qps = append(qps, a)
	}
	return qps
}

func contendedAdd(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, CQDepth: 1024})
	qps := p.contend()
	const each, at = 40, 4096
	p.b.putWord(at, 1000)
	for i := range each {
		for k, qp := range qps {
			slot := i*rivals + k
			wr := p.wr(uint64(slot), verbs.OpAtomicFetchAndAdd, p.a.sge(8*slot, 8), at)
			wr.CompareAdd = 1
			p.a.send(qp, wr)
		}
	}
	for _, wc := range p.a.sends.take(each * rivals) {
		if wc.Status != verbs.Success {
			t.Fatalf("request %d: %v", wc.ID, wc.Status)
		}
	}
	p.b.wantWord(at, 1000+each*rivals)
	seen := map[uint64]bool{}
	for slot := range each * rivals {
		v := p.a.word(8 * slot)
		if v < 1000 || v >= 1000+each*rivals || seen[v] {
			t.Errorf("request %d returned %d, out of range or a second time", slot, v)
		}
		seen[v] = true
	}
	// One QP's requests are executed in the order of posting.
	for k := range rivals {
		for i := 1; i < each; i++ {
			if before, after := p.a.word(8*((i-1)*rivals+k)), p.a.word(8*(i*rivals+k)); before >= after {
				t.Errorf("QP %d: request %d returned %d and the next one %d", k, i-1, before, after)
			}
		}
	}
	p.a.settle(span{0, 8 * each * rivals})
	p.check("%d FETCH_AND_ADDs by %d QPs", each*rivals, rivals)
}

func contendedSwap(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	qps := p.contend()
	const at = 4096
	for round := range 10 {
		p.b.putWord(at, uint64(round))
		for k, qp := range qps {
			wr := p.wr(uint64(k), verbs.OpAtomicCmpAndSwp, p.a.sge(8*k, 8), at)
			wr.CompareAdd, wr.Swap = uint64(round), uint64(1000+k)
			p.a.send(qp, wr)
		}
		for _, wc := range p.a.sends.take(rivals) {
			if wc.Status != verbs.Success {
				t.Fatalf("round %d: %v", round, wc.Status)
			}
		}
		winner := p.b.word(at)
		if winner < 1000 || winner >= 1000+rivals {
			t.Fatalf("round %d left %d", round, winner)
		}
		for k := range qps {
			want := winner
			if uint64(1000+k) == winner {
				want = uint64(round)
			}
			p.a.wantWord(8*k, want)
		}
		p.b.wantWord(at, winner)
		p.check("round %d", round)
	}
}
