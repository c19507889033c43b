package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Unreliable transports drop silently, but not without a trace.
func TestWhatAnUnreliableQPDropsIsCounted(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  verbs.QPType
		send  func(l *lab, e [2]*end) verbs.SendWR
		count func(*Counters) *uint64
	}{
		{"UC SEND without a receive", verbs.UC, func(_ *lab, e [2]*end) verbs.SendWR {
			return verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGL: e[0].sge(0, 100)}
		}, func(c *Counters) *uint64 { return &c.OutOfBuffer }},
		{"UC WRITE with immediate without a receive", verbs.UC, func(_ *lab, e [2]*end) verbs.SendWR {
			w := e[0].write(e[1], 1, 100)
			w.Op = verbs.OpRDMAWriteWithImm
			return w
		}, func(c *Counters) *uint64 { return &c.OutOfBuffer }},
		{"UC WRITE by a wrong key", verbs.UC, func(_ *lab, e [2]*end) verbs.SendWR {
			w := e[0].write(e[1], 1, 100)
			w.RKey++
			return w
		}, func(c *Counters) *uint64 { return &c.RespRemoteAccess }},
		{"UC WRITE to a QP that allows none", verbs.UC, func(_ *lab, e [2]*end) verbs.SendWR {
			e[1].qp.attr.Access = 0
			return e[0].write(e[1], 1, 100)
		}, func(c *Counters) *uint64 { return &c.RespRemoteAccess }},
		{"UD SEND without a receive", verbs.UD, func(l *lab, e [2]*end) verbs.SendWR { return datagramTo(l, e, 0) },
			func(c *Counters) *uint64 { return &c.OutOfBuffer }},
		{"UD SEND with a wrong Q_Key", verbs.UD, func(l *lab, e [2]*end) verbs.SendWR { return datagramTo(l, e, 1) },
			func(c *Counters) *uint64 { return &c.StrayPackets }},
	} {
		l := newLab(false)
		e := l.pairOf(t, c.kind, 4096, nil)
		e[0].post(t, c.send(l, e))
		l.await(t, e[0], 1)
		l.v.RunUntil(l.v.Now().Add(time.Millisecond))
		got := e[1].Counters()
		n := *c.count(&got)
		if n != 1 || got.RNRNakSent != 0 || len(e[1].poll()) != 0 {
			t.Errorf("%s: counted %d times, want once; %d RNR NAKs on a transport without", c.name, n, got.RNRNakSent)
		}
	}
}

func datagramTo(l *lab, e [2]*end, off uint32) verbs.SendWR {
	h := &ah{object: object{dev: e[0].Device}, pd: e[0].pd}
	h.path.set(e[0].Device, &verbs.AHAttr{DGID: l.addrs[1].Netip()})
	return verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGL: e[0].sge(0, 100), AH: h, RemoteQPN: e[1].qp.num, RemoteQKey: e[1].qp.attr.QKey + off}
}

// A CNP goes to the peer of a queue pair. Without a peer, or for a packet of somebody else's, none is made.
func TestAMarkedPacketMakesACNPOnlyForItsQueuePairsPeer(t *testing.T) {
	l := profiled(withDCQCN("paper", func(p *dcqcn.Params) { p.MinTimeBetweenCNPs = 0 }))
	e := l.pairOf(t, verbs.RC, 4096, nil)
	q := e[1].qp
	marked := func(src roce.Addr) {
		f := l.frames.Get()
		p := &f.Packet
		f.Kind, f.TrafficClass = roce.KindRoCE, roce.TrafficClass(26, roce.CE)
		*p = roce.Packet{Src: src, Dst: l.addrs[1], TrafficClass: f.TrafficClass}
		p.BTH = roce.BTH{Opcode: roce.RCSendOnly, PKey: roce.DefaultPKey, DestQP: q.num, PSN: q.rx.epsn}
		e[1].Receive(f)
	}
	sent := 0
	l.wires[1].tap = func(f *link.Frame) bool {
		if f.Packet.BTH.Opcode == roce.CNP {
			sent++
			if f.Dst != 0 || f.Packet.BTH.DestQP != e[0].qp.num {
				t.Errorf("a CNP for QP %#x of port %d", f.Packet.BTH.DestQP, f.Dst)
			}
		}
		return true
	}
	settle := func() { l.until(l.v.Now().Add(10 * time.Microsecond)) }
	marked(l.addrs[0])
	settle()
	if sent != 1 {
		t.Fatalf("%d CNPs for a marked packet", sent)
	}
	marked(roce.Addr4([4]byte{10, 9, 9, 9}))
	settle()
	if err := l.wait(t, func(done func(error)) { q.Modify(verbs.QPAttr{State: verbs.Reset}, verbs.MaskState, done) }); err != nil {
		t.Fatal(err)
	}
	marked(l.addrs[0])
	settle()
	if c := e[1].Counters(); sent != 1 || c.CNPSent != 1 || c.ECNMarked != 3 {
		t.Errorf("%d CNPs sent, %d counted, %d marked packets", sent, c.CNPSent, c.ECNMarked)
	}
}

func TestABindingOfAnotherDevicesWindowIsRefused(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	type foreign struct{ verbs.MW }
	for _, flags := range []verbs.SendFlags{0, verbs.Inline} {
		err := e[0].qp.PostSend(verbs.SendWR{Op: verbs.OpBindMW, Flags: flags | verbs.Signaled, Bind: &verbs.BindMW{MW: foreign{}, MR: e[0].mr, Addr: e[0].mem.addr, Length: 8}})
		switch {
		case flags != 0 && err == nil:
			t.Error("a binding with inline data was posted")
		case flags == 0 && err != nil:
			t.Error(err)
		case flags == 0:
			if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.MWBindErr {
				t.Errorf("it completed with %v", wc.Status)
			}
			e[0].qp.reset()
			l.connect(t, e, verbs.RC, nil)
		}
	}
}

// A change of max_dest_rd_atomic in SQD is the owner's alone: the peer, whose answer was lost, still gets it.
func TestAnswersAreRememberedThroughAChangeOfHowMany(t *testing.T) {
	for _, n := range []int{1, 2, 9} {
		l := newLab(false)
		e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.MaxDestRDAtomic = 4 })
		lost := 0
		l.wires[1].tap = func(f *link.Frame) bool {
			lost++
			return lost > 1
		}
		e[0].post(t, verbs.SendWR{ID: 1, Op: verbs.OpAtomicFetchAndAdd, Flags: verbs.Signaled, SGL: e[0].sge(0, 8), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was, CompareAdd: 5})
		l.settle(t, func() bool { return lost == 1 })
		for _, step := range []struct {
			a    verbs.QPAttr
			mask verbs.QPAttrMask
		}{
			{verbs.QPAttr{State: verbs.SQD}, verbs.MaskState}, {verbs.QPAttr{State: verbs.SQD, MaxDestRDAtomic: n}, verbs.MaskState | verbs.MaskMaxDestRDAtomic},
			{verbs.QPAttr{State: verbs.RTS}, verbs.MaskState},
		} {
			if err := l.wait(t, func(done func(error)) { e[1].qp.Modify(step.a, step.mask, done) }); err != nil {
				t.Fatal(err)
			}
		}
		if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success || word(e[1].mem.bytes) != 5 {
			t.Errorf("with %d: %v, the value is %d", n, wc.Status, word(e[1].mem.bytes))
		}
		for i := range 2 * n { // and it holds as many as it says
			e[0].post(t, verbs.SendWR{ID: uint64(2 + i), Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: e[0].sge(0, 8), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was})
			if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success {
				t.Fatalf("with %d, READ %d: %v", n, i, wc.Status)
			}
		}
	}
}

// A READ's response leaves after its request's checks, as an ACK does.
func TestAResponseLeavesAfterItsRequestWasChecked(t *testing.T) {
	const check = 10 * time.Microsecond
	for _, slow := range []time.Duration{0, check} {
		l := profiled(func(_ int, p *Profile) { p.Stages = Stages{CQEWrite: 1, RxContext: slow} })
		e := l.pairOf(t, verbs.RC, 4096, nil)
		var asked, answered time.Duration
		l.wires[0].tap = func(*link.Frame) bool { asked = time.Duration(l.v.Now()); return true }
		l.wires[1].tap = func(*link.Frame) bool { answered = time.Duration(l.v.Now()); return true }
		e[0].post(t, verbs.SendWR{ID: 1, Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: e[0].sge(0, 8), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was})
		l.await(t, e[0], 1)
		if took := answered - asked; took < labDelay+slow || took > labDelay+slow+time.Microsecond {
			t.Errorf("with %v of checks a response left %v after its request", slow, took)
		}
	}
}
