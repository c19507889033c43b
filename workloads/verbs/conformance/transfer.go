package conformance

import (
	"bytes"
	"fmt"
	"math/rand"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// sizes are message sizes around MTU boundaries, bytes.
func sizes(mtu int) []int {
	return []int{0, 1, 2, 3, mtu - 1, mtu, mtu + 1, 2*mtu - 1, 2 * mtu, 2*mtu + 1, 5*mtu - 1, 5 * mtu, 5*mtu + 1, 16*mtu + 3}
}

// shape cuts a message into the pieces of a scatter-gather list.
type shape struct {
	name string
	cut  func(n int) []int
}

var whole = shape{"one piece", func(n int) []int { return []int{n} }}

// shapes has at most 8 pieces, as many as a pair's QPs take.
var shapes = []shape{
	whole,
	{"two halves", func(n int) []int { return []int{n / 2, n - n/2} }},
	{"eight pieces", func(n int) []int {
		var p []int
		for left := 8; left > 0; left-- {
			p = append(p, n/left)
			n -= n / left
		}
		return p
	}},
	{"uneven pieces", func(n int) []int {
		a, b := min(1, n), n/3
		c := min(7, n-a-min(b, n-a))
		b = min(b, n-a)
		return []int{a, b, c, n - a - b - c}
	}},
	{"pieces of zero length among others", func(n int) []int { return []int{0, n / 2, 0, 0, n - n/2, 0} }},
}

func transferCases() []Case {
	var all []Case
	add := func(name string, run func(t T, s *Suite)) { all = append(all, Case{Name: name, run: run}) }
	for _, kind := range []verbs.QPType{verbs.RC, verbs.UC} {
		ops := []verbs.Opcode{verbs.OpSend, verbs.OpSendWithImm, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm}
		if kind == verbs.RC {
			ops = append(ops, verbs.OpRDMARead)
		}
		for _, op := range ops {
			add(fmt.Sprintf("%v %v carries every size in every shape", kind, op), func(t T, s *Suite) {
				p := newPair(t, s, options{Type: kind, MTU: 1024})
				for _, n := range sizes(1024) {
					for _, sh := range shapes {
						p.transfer(op, n, sh, whole)
						if op == verbs.OpSend || op == verbs.OpSendWithImm {
							p.transfer(op, n, whole, sh)
						}
					}
				}
			})
		}
		add(fmt.Sprintf("%v carries every size at every path MTU", kind), func(t T, s *Suite) {
			for _, mtu := range []int{256, 512, 1024, 2048, 4096} {
				if mtu > s.ends[0].Device.Port().ActiveMTU || mtu > s.ends[1].Device.Port().ActiveMTU {
					t.Errorf("the fabric's MTU of %d bytes does not let path MTU %d be tried", s.ends[0].Device.Port().ActiveMTU, mtu)
					continue
				}
				p := newPair(t, s, options{Type: kind, MTU: mtu})
				for _, n := range sizes(mtu) {
					for _, op := range ops {
						p.transfer(op, n, shapes[1], shapes[3])
					}
				}
			}
		})
	}
	add("RC carries messages of a megabyte", megabyte)
	add("RC carries a message in both directions at once", duplex)
	add("RC messages of one QP arrive in the order of posting", inOrder)
	return all
}

// transfer moves one message of A's and checks both completions and all memory. The receive
// buffer of a SEND has room left.
func (p *pair) transfer(op verbs.Opcode, n int, local, remote shape) {
	p.t.Helper()
	what := fmt.Sprintf("%v %v of %d bytes, path MTU %d, %s to %s", p.o.Type, op, n, p.o.MTU, local.name, remote.name)
	const id, rid = 0x1111222233334444, 0x5555666677778888
	const imm = 0x01020304
	// Offsets move from one transfer to the next, so that nothing arrives where it was before.
	lo, ro := 64+n*7%911, 70000+n*13%1009
	list, here := p.a.sgl(lo, local.cut(n))
	wr := p.wr(id, op, list, ro)
	wr.Imm = imm
	there := []span{{ro, n}}
	takesRecv := false
	var data []byte
	switch op {
	case verbs.OpRDMARead:
		p.a.scatter(here, p.b.want[ro:ro+n])
	case verbs.OpRDMAWrite:
		data = p.a.gather(here)
	case verbs.OpRDMAWriteWithImm:
		data = p.a.gather(here)
		takesRecv = true
		p.b.recv(p.b.qp, verbs.RecvWR{ID: rid})
	default:
		data = p.a.gather(here)
		takesRecv = true
		cut := remote.cut(n)
		cut[len(cut)-1] += 13
		var rlist []verbs.SGE
		rlist, there = p.b.sgl(ro, cut)
		p.b.recv(p.b.qp, verbs.RecvWR{ID: rid, SGL: rlist})
	}
	p.a.send(p.a.qp, wr)
	wc := p.a.sends.one(id, verbs.Success)
	if want := wcOf(op); wc.Op != want || wc.QPN != p.a.qp.Num() {
		p.t.Fatalf("%s: completion %v of QP %#x, want %v of %#x", what, wc.Op, wc.QPN, want, p.a.qp.Num())
	}
	if takesRecv {
		p.checkRecv(what, p.b.recvs.one(rid, verbs.Success), op, n, imm)
	} else if p.o.Type == verbs.UC {
		p.flag() // UC says nothing about arrival
	}
	p.b.scatter(there, data)
	p.check("%s", what)
}

// flag sends an empty message from A to B and waits until it has arrived.
func (p *pair) flag() {
	p.t.Helper()
	p.b.recv(p.b.qp, verbs.RecvWR{ID: 99})
	p.a.send(p.a.qp, p.wr(98, verbs.OpSend, nil, 0))
	p.a.sends.one(98, verbs.Success)
	p.b.recvs.one(99, verbs.Success)
}

func (p *pair) checkRecv(what string, wc verbs.WC, op verbs.Opcode, n int, imm uint32) {
	p.t.Helper()
	wantOp := verbs.WCRecv
	if op == verbs.OpRDMAWriteWithImm {
		wantOp = verbs.WCRecvRDMAWithImm
	}
	var flags verbs.WCFlags
	if op == verbs.OpSendWithImm || op == verbs.OpRDMAWriteWithImm {
		flags = verbs.WithImm
	} else {
		imm = 0
	}
	if p.b.departs(GRHOnEveryReceive) {
		flags |= verbs.WithGRH
	}
	if wc.Op != wantOp || wc.ByteLen != uint32(n) || wc.Flags != flags || wc.Imm != imm || wc.QPN != p.b.qp.Num() {
		p.t.Fatalf("%s: receive completion %+v, want %v, %d bytes, flags %v, immediate %#x, QP %#x", what, wc, wantOp, n, flags, imm, p.b.qp.Num())
	}
}

func wcOf(op verbs.Opcode) verbs.WCOpcode {
	switch op {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		return verbs.WCRDMAWrite
	case verbs.OpRDMARead:
		return verbs.WCRDMARead
	case verbs.OpAtomicCmpAndSwp:
		return verbs.WCCompSwap
	case verbs.OpAtomicFetchAndAdd:
		return verbs.WCFetchAdd
	case verbs.OpBindMW:
		return verbs.WCBindMW
	case verbs.OpLocalInv:
		return verbs.WCLocalInv
	}
	return verbs.WCSend
}

// megabyte moves messages of many packets, longer than any window of the transport.
func megabyte(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, MTU: 4096})
	const n = 1<<20 + 4321
	from, fromMR := p.a.region(n, verbs.LocalWrite)
	to, toMR := p.b.region(n+64, everyAccess)
	rand.New(rand.NewSource(3)).Read(from.Bytes())
	sent := bytes.Clone(from.Bytes())
	sgl := []verbs.SGE{{Addr: fromMR.Addr(), Length: n, LKey: fromMR.LKey()}}
	at := func(op verbs.Opcode) verbs.SendWR {
		wr := p.wr(1, op, sgl, 0)
		wr.RemoteAddr, wr.RKey = toMR.Addr()+32, toMR.RKey()
		return wr
	}
	want := make([]byte, n+64)
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpSend, verbs.OpRDMARead} {
		switch op {
		case verbs.OpSend:
			clear(to.Bytes())
			p.b.recv(p.b.qp, verbs.RecvWR{ID: 2, SGL: []verbs.SGE{{Addr: toMR.Addr() + 32, Length: n, LKey: toMR.LKey()}}})
		case verbs.OpRDMARead:
			clear(from.Bytes())
		}
		p.a.send(p.a.qp, at(op))
		p.a.sends.one(1, verbs.Success)
		if op == verbs.OpSend {
			if wc := p.b.recvs.one(2, verbs.Success); wc.ByteLen != n {
				t.Errorf("%d of %d bytes were received", wc.ByteLen, n)
			}
		}
		copy(want[32:], sent)
		if !bytes.Equal(to.Bytes(), want) || !bytes.Equal(from.Bytes(), sent) {
			t.Fatalf("%v of %d bytes: the data differ", op, n)
		}
	}
	p.check("messages of %d bytes elsewhere", n)
}

// duplex has A write into B and B into A at the same time, several messages deep.
func duplex(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	const n, count = 9000, 6
	for i := range count {
		from, to := i*n, 100000+i*n
		wa := p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(from, n), to)
		wb := verbs.SendWR{ID: uint64(i), Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p.b.sge(from, n), RemoteAddr: p.a.addr(to), RKey: p.a.mr.RKey()}
		p.a.send(p.a.qp, wa)
		p.b.send(p.b.qp, wb)
	}
	for i := range count {
		p.a.sends.one(uint64(i), verbs.Success)
		p.b.sends.one(uint64(i), verbs.Success)
		here, there := []span{{i * n, n}}, []span{{100000 + i*n, n}}
		fromA, fromB := p.a.gather(here), p.b.gather(here)
		p.b.scatter(there, fromA)
		p.a.scatter(there, fromB)
	}
	p.check("six WRITEs of %d bytes each way", n)
}

// inOrder posts messages of very different sizes at once.
func inOrder(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	lengths := []int{30000, 1, 5000, 0, 1024, 2, 20000, 1023, 7, 1}
	var recvs []verbs.RecvWR
	var sends []verbs.SendWR
	off := 0
	for i, n := range lengths {
		recvs = append(recvs, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(100000+off, n)})
		wr := p.wr(uint64(100+i), verbs.OpSendWithImm, p.a.sge(off, n), 0)
		wr.Imm = uint32(i)
		sends = append(sends, wr)
		off += n
	}
	p.b.recv(p.b.qp, recvs...)
	p.a.send(p.a.qp, sends...)
	p.b.scatter([]span{{100000, off}}, p.a.gather([]span{{0, off}}))
	for i, n := range lengths {
		p.a.sends.one(uint64(100+i), verbs.Success)
		wc := p.b.recvs.one(uint64(i), verbs.Success)
		if wc.Imm != uint32(i) || wc.ByteLen != uint32(n) {
			t.Errorf("receive %d got message %d of %d bytes, want %d bytes", i, wc.Imm, wc.ByteLen, n)
		}
	}
	p.check("ten messages posted at once")
}
