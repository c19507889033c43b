package conformance

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

func unreliableCases() []Case {
	return []Case{
		{Name: "UC refuses READ and atomics", run: unreliableOps},
		{Name: "UC a SEND for which no receive is posted is dropped, and the next one arrives", run: unreliableNoReceive},
		{Name: "UC a WRITE with a bad key succeeds for the sender and changes nothing", run: unreliableBadKey},
		{Name: "UC a lost packet loses its message and no other", run: unreliableLoss},
		{Name: "RC delivers everything in order over a fabric that loses packets", run: reliableLoss},
	}
}

func unreliableOps(t T, s *Suite) {
	for _, op := range []verbs.Opcode{verbs.OpRDMARead, verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd} {
		p := newPair(t, s, options{Type: verbs.UC})
		p.unsupported(op, "UC")
	}
}

func unreliableNoReceive(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UC})
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 3000), 0))
	p.a.sends.one(1, verbs.Success)
	p.settleQP()
	p.prove("a SEND without a receive")
	p.b.recvs.none("a SEND without a receive")
}

func unreliableBadKey(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UC})
	wr := p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 3000), 100000)
	wr.RKey ^= 0xff00
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.Success)
	p.settleQP()
	p.check("a WRITE with a bad key")
	p.prove("a WRITE with a bad key")
}

// unreliableLoss sends numbered messages of three packets while packets are lost. What
// completes is whole, in the order of sending, and takes the receives in their order.
func unreliableLoss(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UC})
	heal := p.lose(0.2)
	const count, n, base, marker = 60, 2500, 100000, 0xffff
	slot := func(i int) span { return span{base + i*n, n} }
	message := func(i int) span { return span{i * 1000, n} }
	for i := range count + 1 {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(slot(i).off, n)})
	}
	send := func(i int, imm uint32) {
		wr := p.wr(uint64(i), verbs.OpSendWithImm, p.a.sge(message(i).off, n), 0)
		wr.Imm = imm
		p.a.send(p.a.qp, wr)
		p.a.sends.one(uint64(i), verbs.Success)
	}
	for i := range count {
		send(i, uint32(i))
	}
	p.settleQP()
	heal()
	// Markers until one arrives: a provider may still lose the message after a broken one.
	var arrived []verbs.WC
	for try := 0; ; try++ {
		if try == 10 {
			t.Fatalf("none of 10 messages after the loss arrived")
		}
		send(count, marker)
		p.settleQP()
		arrived = append(arrived, p.b.recvs.takeAll()...)
		if k := len(arrived); k > 0 && arrived[k-1].Imm == marker {
			break
		}
	}
	last := -1
	for k, wc := range arrived {
		if wc.ID != uint64(k) || wc.Status != verbs.Success || wc.ByteLen != n || int(wc.Imm) <= last {
			t.Fatalf("completion %d: receive %d, %v, %d bytes of message %d after message %d", k, wc.ID, wc.Status, wc.ByteLen, wc.Imm, last)
		}
		last = int(wc.Imm)
		p.b.scatter([]span{slot(k)}, p.a.gather([]span{message(min(last, count))}))
	}
	if got := len(arrived) - 1; got == 0 || got == count {
		t.Fatalf("%d of %d messages arrived while a fifth of the packets was lost", got, count)
	}
	p.check("%d of %d messages", len(arrived)-1, count)
}

// reliableLoss has both sides do everything at once while packets, and one side's ACKs, are lost.
func reliableLoss(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, Timeout: 14})
	heal := p.lose(0.05)
	const n, count = 5000, 12
	p.b.putWord(4096, 100)
	for i := range count {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(100000+i*n, n)})
		add := p.wr(3, verbs.OpAtomicFetchAndAdd, p.a.sge(8*i, 8), 4096)
		add.CompareAdd = 1
		p.a.send(p.a.qp,
			p.wr(1, verbs.OpSend, p.a.sge(2000+i*200, n), 0),
			p.wr(2, verbs.OpRDMARead, p.a.sge(20000+i*n, n), 20000+i*300),
			add,
			p.wr(4, verbs.OpRDMAWrite, p.a.sge(100000+i*200, n), 170000+i*n))
		p.b.send(p.b.qp, verbs.SendWR{ID: 5, Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p.b.sge(30000+i*10, n),
			RemoteAddr: p.a.addr(170000 + i*n), RKey: p.a.mr.RKey()})
	}
	for i := range count {
		for id := uint64(1); id <= 4; id++ {
			p.a.sends.one(id, verbs.Success)
		}
		p.b.recvs.one(uint64(i), verbs.Success)
		p.b.sends.one(5, verbs.Success)
		p.a.wantWord(8*i, uint64(100+i))
		p.a.scatter([]span{{20000 + i*n, n}}, p.b.gather([]span{{20000 + i*300, n}}))
	}
	for i := range count {
		p.b.scatter([]span{{100000 + i*n, n}}, p.a.gather([]span{{2000 + i*200, n}}))
		p.b.scatter([]span{{170000 + i*n, n}}, p.a.gather([]span{{100000 + i*200, n}}))
		p.a.scatter([]span{{170000 + i*n, n}}, p.b.gather([]span{{30000 + i*10, n}}))
	}
	p.b.wantWord(4096, 100+count)
	heal()
	p.check("%d of each operation at 5 %% loss", count)
}

// lose starts losing packets from A to B and returns what ends it.
func (p *pair) lose(fraction float64) (heal func()) {
	p.t.Helper()
	if p.s.provider.Lose == nil {
		p.t.Fatalf("%s: the provider's fabric cannot lose packets: set Provider.Lose", p.s.provider.Name)
	}
	undo, err := p.s.provider.Lose(fraction)
	if err != nil {
		p.t.Fatalf("lose %v of the packets: %v", fraction, err)
	}
	done := false
	heal = func() {
		if !done {
			done = true
			if err := undo(); err != nil {
				p.t.Fatalf("stop losing packets: %v", err)
			}
		}
	}
	p.t.Cleanup(heal)
	return heal
}
