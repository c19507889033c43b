package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// grhLen is what a UD receive has before the payload.
const grhLen = 40

func datagramCases() []Case {
	return []Case{
		{Name: "UD SEND carries every size in every shape after 40 bytes of GRH", run: datagrams},
		{Name: "UD the address handle's traffic class and hop limit are on the wire", run: markedDatagram},
		{Name: "UD a datagram with the wrong Q_Key is dropped silently", run: wrongQKey},
		{Name: "UD a datagram for which no receive is posted is dropped silently", run: noReceive},
		{Name: "UD a datagram longer than the MTU is refused", run: longDatagram},
		{Name: "UD a datagram longer than the receive buffer does not write beyond it", run: shortReceive},
		{Name: "UD one QP sends to several through address handles", run: fanOut},
		{Name: "UD refuses what only connected transports do", run: datagramOps},
	}
}

func datagrams(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD, SGEs: 9})
	mtu := min(s.ends[0].Device.Port().ActiveMTU, s.ends[1].Device.Port().ActiveMTU)
	for _, n := range []int{0, 1, 2, 3, 255, 256, 1023, 1024, mtu - 1, mtu} {
		for _, sh := range shapes {
			p.datagram(n, sh, whole, false)
			p.datagram(n, whole, sh, true)
		}
	}
}

// datagram sends one and checks everything about its arrival. The GRH's buffer is a piece of
// its own, before the pieces of the payload.
func (p *pair) datagram(n int, local, remote shape, imm bool) {
	p.t.Helper()
	what := fmt.Sprintf("datagram of %d bytes, %s to %s", n, local.name, remote.name)
	list, here := p.a.sgl(64+n%911, local.cut(n))
	rlist, there := p.b.sgl(100000+n%1009, append([]int{grhLen}, remote.cut(n)...))
	wr := p.wr(1, verbs.OpSend, list, 0)
	wantFlags, wantImm := verbs.WithGRH, uint32(0)
	if imm {
		wr.Op, wr.Imm = verbs.OpSendWithImm, 0xa1b2c3d4
		wantFlags, wantImm = wantFlags|verbs.WithImm, wr.Imm
	}
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 2, SGL: rlist})
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.Success)
	wc := p.b.recvs.one(2, verbs.Success)
	if wc.Op != verbs.WCRecv || wc.ByteLen != uint32(n+grhLen) || wc.SrcQPN != p.a.qp.Num() || wc.Flags != wantFlags || wc.Imm != wantImm {
		p.t.Fatalf("%s: receive completion %+v, want %d bytes from QP %#x, flags %v, immediate %#x", what, wc, n+grhLen, p.a.qp.Num(), wantFlags, wantImm)
	}
	p.b.settle(there[0])
	p.b.scatter(there[1:], p.a.gather(here))
	p.check("%s", what)
	p.checkGRH(what, p.b.gather(there[:1]))
}

// checkGRH reads the network header: for RoCEv2 over IPv4 the IP header is in the last 20 of
// the 40 bytes and the rest is undefined; over IPv6 it is all 40 (annex 17, RoCEv2).
func (p *pair) checkGRH(what string, grh []byte) {
	p.t.Helper()
	var src, dst netip.Addr
	if p.a.end.GID.Is4In6() || p.a.end.GID.Is4() {
		ip := grh[20:]
		if ip[0]>>4 != 4 {
			p.t.Fatalf("%s: no IPv4 header in the last 20 bytes of the GRH: % x", what, grh)
		}
		src, _ = netip.AddrFromSlice(ip[12:16])
		dst, _ = netip.AddrFromSlice(ip[16:20])
	} else {
		if binary.BigEndian.Uint32(grh)>>28 != 6 {
			p.t.Fatalf("%s: no IPv6 header in the GRH: % x", what, grh)
		}
		src, _ = netip.AddrFromSlice(grh[8:24])
		dst, _ = netip.AddrFromSlice(grh[24:40])
	}
	if src != p.a.end.GID.Unmap() || dst != p.b.end.GID.Unmap() {
		p.t.Fatalf("%s: the GRH says %v to %v, want %v to %v", what, src, dst, p.a.end.GID, p.b.end.GID)
	}
}

func markedDatagram(t T, s *Suite) {
	for _, c := range []struct{ class, hops uint8 }{{106, 64}, {0, 200}, {0x60, 7}} {
		p := newPair(t, s, options{Type: verbs.UD})
		attr := p.ahTo(p.b)
		attr.TrafficClass, attr.HopLimit = c.class, c.hops
		ah := must(p.a, "create AH", func(done func(verbs.AH, error)) { p.a.pd.CreateAH(attr, done) })
		p.a.cleanup("destroy AH", ah.Destroy)
		wr := p.wr(1, verbs.OpSend, p.a.sge(0, 20), 0)
		wr.AH = ah
		p.b.recv(p.b.qp, verbs.RecvWR{ID: 2, SGL: p.b.sge(0, 100)})
		p.a.send(p.a.qp, wr)
		p.a.sends.one(1, verbs.Success)
		p.b.recvs.one(2, verbs.Success)
		grh := p.b.mem.Bytes()[:grhLen]
		class, hops := grh[21], grh[28] // IPv4's TOS and TTL
		if !p.a.end.GID.Unmap().Is4() {
			class, hops = grh[0]<<4|grh[1]>>4, grh[7]
		}
		if class != c.class {
			t.Errorf("traffic class %d arrived as %d", c.class, class)
		}
		// Each router on the way takes one.
		sent := c.hops
		if p.a.departs(HopLimitOfRoute) {
			sent = 64 // Linux's net.ipv4.ip_default_ttl
		}
		if hops > sent || hops+3 < sent {
			t.Errorf("hop limit %d, sent as %d, arrived as %d", c.hops, sent, hops)
		}
	}
}

func wrongQKey(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD})
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 2, SGL: p.b.sge(0, 200)})
	wr := p.wr(1, verbs.OpSend, p.a.sge(0, 100), 0)
	wr.RemoteQKey++
	p.a.send(p.a.qp, wr)
	p.a.sends.one(1, verbs.Success)
	// The receive is still there for a good one.
	p.a.send(p.a.qp, p.wr(3, verbs.OpSend, p.a.sge(300, 50), 0))
	p.a.sends.one(3, verbs.Success)
	if wc := p.b.recvs.one(2, verbs.Success); wc.ByteLen != 50+grhLen {
		t.Fatalf("the receive got %d bytes", wc.ByteLen)
	}
	p.b.settle(span{0, grhLen})
	p.b.scatter([]span{{grhLen, 50}}, p.a.gather([]span{{300, 50}}))
	p.check("a datagram with a wrong Q_Key and a good one")
}

func noReceive(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD})
	for range 5 {
		p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 100), 0))
		p.a.sends.one(1, verbs.Success)
	}
	p.settleQP()
	p.prove("datagrams without a receive")
	p.b.recvs.none("5 datagrams without a receive")
}

// longDatagram is C10-93.1.1: nothing is sent of such a message, and that is no error. A
// provider may also refuse it when it is posted.
func longDatagram(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD})
	mtu := s.ends[0].Device.Port().ActiveMTU
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 9, SGL: p.b.sge(0, 3*mtu)})
	wr := p.wr(1, verbs.OpSend, p.a.sge(0, mtu+1), 0)
	err := p.a.attempt(func() error { return p.a.qp.PostSend(wr) })
	var post *verbs.PostError
	if err != nil && !errors.As(err, &post) {
		t.Fatalf("a datagram longer than the MTU: %v", err)
	}
	if err == nil {
		p.a.sends.one(1, verbs.Success)
	}
	p.settleQP()
	p.b.recvs.none("a datagram longer than the MTU")
	p.check("a datagram longer than the MTU")
}

func shortReceive(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD})
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 1, SGL: p.b.sge(0, grhLen+10)}, verbs.RecvWR{ID: 2, SGL: p.b.sge(1000, 200)})
	p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 100), 0))
	p.a.sends.one(1, verbs.Success)
	if p.b.departs(UDShortReceiveDropped) {
		p.settleQP()
		p.b.recvs.none("a datagram longer than the receive")
	} else {
		p.b.recvs.one(1, verbs.LocLenErr)
	}
	p.b.settle(span{0, grhLen + 10})
	p.check("a datagram longer than the receive")
}

// fanOut sends to two QPs of B's and, through a handle to itself, back to A.
func fanOut(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.UD})
	_, second := p.connect()
	self := must(p.a, "create AH", func(done func(verbs.AH, error)) {
		p.a.pd.CreateAH(verbs.AHAttr{DGID: p.a.end.GID, SGIDIndex: p.a.end.GIDIndex}, done)
	})
	p.a.cleanup("destroy AH", self.Destroy)
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 1, SGL: p.b.sge(0, 140)})
	p.b.recv(second, verbs.RecvWR{ID: 2, SGL: p.b.sge(200, 140)})
	p.a.recv(p.a.qp, verbs.RecvWR{ID: 3, SGL: p.a.sge(10000, 140)})
	first := p.wr(11, verbs.OpSend, p.a.sge(0, 100), 0)
	other := p.wr(12, verbs.OpSend, p.a.sge(100, 100), 0)
	other.RemoteQPN = second.Num()
	back := p.wr(13, verbs.OpSend, p.a.sge(200, 100), 0)
	back.AH, back.RemoteQPN = self, p.a.qp.Num()
	p.a.send(p.a.qp, first, other, back)
	for id := uint64(11); id <= 13; id++ {
		p.a.sends.one(id, verbs.Success)
	}
	got := map[uint64]uint32{}
	for _, wc := range p.b.recvs.take(2) {
		got[wc.ID] = wc.QPN
	}
	if got[1] != p.b.qp.Num() || got[2] != second.Num() {
		t.Errorf("receives 1 and 2 completed on QPs %#x", got)
	}
	p.a.recvs.one(3, verbs.Success)
	p.b.settle(span{0, grhLen}, span{200, grhLen})
	p.a.settle(span{10000, grhLen})
	p.b.scatter([]span{{grhLen, 100}, {200 + grhLen, 100}}, p.a.gather([]span{{0, 200}}))
	p.a.scatter([]span{{10000 + grhLen, 100}}, p.a.gather([]span{{200, 100}}))
	p.check("three datagrams to three QPs")
}

func datagramOps(t T, s *Suite) {
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd} {
		p := newPair(t, s, options{Type: verbs.UD})
		p.unsupported(op, "UD")
	}
}

// unsupported posts an operation that the transport does not have: it is refused, or fails as
// a local QP operation error, and nothing changes.
func (p *pair) unsupported(op verbs.Opcode, transport string) {
	p.t.Helper()
	err := p.a.attempt(func() error { return p.a.qp.PostSend(p.wr(1, op, p.a.sge(0, 8), 1024)) })
	if err == nil {
		if wc := p.a.sends.take(1)[0]; wc.Status != p.a.localStatus(verbs.LocQPOpErr) {
			p.t.Errorf("%v on %s: %v, want a refusal or %v", op, transport, wc.Status, verbs.LocQPOpErr)
		}
	}
	p.check("%v on %s", op, transport)
}
