package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func withDCQCN(name string, change func(*dcqcn.Params)) func(int, *Profile) {
	return func(_ int, p *Profile) {
		p.DCQCN = params(name)
		if change != nil {
			change(p.DCQCN)
		}
	}
}

// A marked flow's CNPs come back apart by the interval, one each flow, in the class that the profile names, to the queue
// pair that sent what was marked.
func TestMarkedPacketsBringCNPsAtMostOneAnIntervalAndFlow(t *testing.T) {
	const interval = 50 * time.Microsecond
	l := profiled(withDCQCN("paper", func(p *dcqcn.Params) { p.CNPDSCP, p.CNP802pPrio = 40, 5 }))
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 3, func(int) uint8 { return 26 })
	marked := map[uint32]bool{pairs[0][1].qp.num: true, pairs[1][1].qp.num: true}
	var ce int
	l.wires[0].tap = func(f *link.Frame) bool {
		if marked[f.Packet.BTH.DestQP] && f.Packet.PayloadLen > 0 {
			f.MarkCE()
			ce++
		}
		return true
	}
	type cnp struct {
		at loop.Time
		qp uint32
	}
	var cnps []cnp
	l.wires[1].tap = func(f *link.Frame) bool {
		if f.Packet.BTH.Opcode == roce.CNP {
			if !f.Packet.BTH.BECN || f.DSCP() != 40 || f.ECN() != roce.NotECT || f.Priority != 5 || f.Len != 14+20+8+12+16+4 {
				t.Fatalf("CNP: BECN %v, DSCP %d, ECN %d, priority %d, %d bytes", f.Packet.BTH.BECN, f.DSCP(), f.ECN(), f.Priority, f.Len)
			}
			cnps = append(cnps, cnp{l.v.Now(), f.Packet.BTH.DestQP})
		}
		return true
	}
	for _, p := range pairs {
		stream(t, p, 200)
	}
	l.until(l.v.Now().Add(time.Millisecond))
	last := map[uint32]loop.Time{}
	for _, c := range cnps {
		if before, ok := last[c.qp]; ok && c.at.Sub(before) < interval-time.Microsecond {
			t.Errorf("CNPs for QP %#x %v apart", c.qp, c.at.Sub(before))
		}
		last[c.qp] = c.at
	}
	if len(last) != 2 || last[pairs[2][0].qp.num] != 0 || len(cnps) < 20 {
		t.Errorf("%d CNPs for %d flows", len(cnps), len(last))
	}
	a, b := e[0].Counters(), e[1].Counters()
	if b.ECNMarked == 0 || b.ECNMarked > uint64(ce) || b.CNPSent != uint64(len(cnps)) || a.CNPHandled < b.CNPSent-2 || a.CNPIgnored != 0 {
		t.Errorf("%d marked (%d by the wire), %d CNPs sent (%d seen), %d handled, %d ignored", b.ECNMarked, ce, b.CNPSent, len(cnps), a.CNPHandled, a.CNPIgnored)
	}
	if pairs[2][0].qp.pace != nil || pairs[0][0].qp.pace == nil {
		t.Error("a flow that nobody marked has a limiter, or a marked one has none")
	}
}

// What a limited queue pair sends over a time is its rate over that time, and the others take the rest of the line.
func TestALimitedQueuePairSendsAtItsRateAndTheOthersTakeTheRest(t *testing.T) {
	// A period of 10 ms for everything that raises the rate: it stands still after the CNPs.
	l := profiled(withDCQCN("paper", func(p *dcqcn.Params) { p.RPGTimeReset, p.RPGByteReset, p.ClampTgtRate = 10*time.Millisecond, 0, true }))
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 3, func(int) uint8 { return 26 })
	for _, p := range pairs {
		stream(t, p, 900)
	}
	l.until(l.v.Now().Add(20 * time.Microsecond))
	q := pairs[0][0].qp
	for range 3 { // from 100 Gb/s to 50, 25 and a little more than 12.5
		f := l.frames.Get()
		f.Kind, f.Packet = roce.KindRoCE, roce.NewCNP(q.num)
		f.Packet.Dst, f.Packet.Src = l.addrs[0], l.addrs[1]
		f.ArriveAt(e[0].Device, 0)
		l.wires[1].from.Post(func() { l.wires[1].from.Send(l.wires[0].from, 0, l.v.Now().Add(labDelay), &f.Timer) })
		l.until(l.v.Now().Add(5 * time.Microsecond))
	}
	rate := q.pace.rp.Rate()
	if rate > 13*dcqcn.Gbps || rate < 12*dcqcn.Gbps {
		t.Fatalf("three CNPs leave %v", rate)
	}
	n := l.tally()
	const span = 2 * time.Millisecond
	l.until(l.v.Now().Add(span))
	if q.pace.rp.Rate() != rate {
		t.Fatal("the rate changed")
	}
	wire := func(payload int) float64 { return float64(payload) / 4096 * 4190 * 8 / span.Seconds() } // bits a second on the line
	if got := wire(n.qp[pairs[0][1].qp.num]); got < 0.995*float64(rate) || got > 1.005*float64(rate) {
		t.Errorf("it sent %.3f Gb/s, its rate is %v", got/1e9, rate)
	}
	for _, p := range pairs[1:] {
		if got, want := wire(n.qp[p[1].qp.num]), (100e9-float64(rate))/2; got < 0.99*want || got > 1.01*want {
			t.Errorf("another sent %.2f Gb/s, want %.2f", got/1e9, want/1e9)
		}
	}
}

// A queue pair that WRITEs and is READ from has one rate: requests and READ responses take it in turns, and each all of it when the other has nothing.
func TestRequestsAndREADResponsesOfAQueuePairShareItsRate(t *testing.T) {
	for _, c := range []struct {
		writes, reads bool
		responses     float64 // of what is sent, their share
	}{{true, true, 0.5}, {true, false, 0}, {false, true, 1}} {
		l := profiled(withDCQCN("paper", func(p *dcqcn.Params) { p.RPGTimeReset, p.RPGByteReset, p.ClampTgtRate = 10*time.Millisecond, 0, true }))
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
		if c.writes {
			stream(t, p, 900)
		}
		for i := range 64 {
			wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: p[1].sge(0, 512<<10), RemoteAddr: p[0].mem.addr, RKey: p[0].mr.was}
			if c.reads {
				if err := p[1].qp.PostSend(wr); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.until(l.v.Now().Add(20 * time.Microsecond))
		for range 3 {
			f := l.frames.Get()
			f.Kind, f.Packet = roce.KindRoCE, roce.NewCNP(p[0].qp.num)
			f.Packet.Dst, f.Packet.Src = l.addrs[0], l.addrs[1]
			e[0].Receive(f)
		}
		l.until(l.v.Now().Add(20 * time.Microsecond))
		rate := float64(p[0].qp.pace.rp.Rate())
		var bits, responses float64
		l.wires[0].tap = func(f *link.Frame) bool {
			if f.Packet.PayloadLen > 0 {
				n := float64(f.Len+link.Overhead) * 8
				bits += n
				if op := f.Packet.BTH.Opcode; op >= roce.RCRDMAReadResponseFirst && op <= roce.RCRDMAReadResponseOnly {
					responses += n
				}
			}
			return true
		}
		const span = 2 * time.Millisecond
		l.until(l.v.Now().Add(span))
		if got := bits / span.Seconds(); got < 0.99*rate || got > 1.01*rate || rate > 13e9 {
			t.Errorf("WRITEs %v, READs %v: it sent %.3f Gb/s, its rate is %.3f", c.writes, c.reads, got/1e9, rate/1e9)
		}
		if share := responses / bits; share < c.responses-0.05 || share > c.responses+0.05 {
			t.Errorf("WRITEs %v, READs %v: %.2f of it were responses", c.writes, c.reads, share)
		}
	}
}

// A queue pair that is reset is a new flow: it begins at line rate.
func TestAResetQueuePairForgetsItsRate(t *testing.T) {
	l := profiled(withDCQCN("paper", nil))
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	f := l.frames.Get()
	f.Kind, f.Packet = roce.KindRoCE, roce.NewCNP(e[0].qp.num)
	f.Packet.Dst, f.Packet.Src = l.addrs[0], l.addrs[1]
	e[0].Receive(f)
	q := e[0].qp
	if q.pace == nil || q.tx.port.pace != q.pace || q.rx.port.pace != q.pace {
		t.Fatal("the CNP found nobody")
	}
	q.Modify(verbs.QPAttr{State: verbs.Reset}, verbs.MaskState, func(error) {})
	l.until(l.v.Now().Add(time.Microsecond))
	if q.pace != nil || q.tx.port.pace != nil || q.rx.port.pace != nil {
		t.Error("it keeps its limiter")
	}
}

func TestREADResponsesAreLimitedAtTheirResponder(t *testing.T) {
	l := profiled(withDCQCN("paper", func(p *dcqcn.Params) { p.RPGTimeReset, p.RPGByteReset = 10*time.Millisecond, 0 }))
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	marks := 1
	l.wires[1].tap = func(f *link.Frame) bool {
		if marks > 0 && f.Packet.PayloadLen > 0 {
			f.MarkCE()
			marks--
		}
		return true
	}
	for i := range 32 {
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: p[0].sge(0, 512<<10), RemoteAddr: p[1].mem.addr, RKey: p[1].mr.was}
		if err := p[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
	}
	l.until(l.v.Now().Add(20 * time.Microsecond))
	rate := float64(p[1].qp.pace.rp.Rate())
	back := [2]*end{p[1], p[0]}
	if got := l.rate(back, time.Millisecond) * 4190 / 4166; got < 0.99*rate || got > 1.01*rate || rate != 50e9 {
		t.Errorf("responses come at %.2f Gb/s, the rate is %.2f", got/1e9, rate/1e9)
	}
}

func TestDataIsSentAsMarkableWhereDCQCNIsOnAndAsTheApplicationSaysWhereItIsOff(t *testing.T) {
	for _, on := range []bool{false, true} {
		for _, class := range []uint8{roce.TrafficClass(26, roce.NotECT), roce.TrafficClass(26, roce.ECT1), roce.TrafficClass(26, roce.ECT0)} {
			l := profiled(func(_ int, p *Profile) {
				if on {
					p.DCQCN = params("mlx5")
				}
			})
			e := l.pairOf(t, verbs.RC, 1<<20, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.AH.TrafficClass = class })
			want := class
			if on && class&3 == 0 {
				want |= uint8(roce.ECT0)
			}
			seen := 0
			for h := range l.wires {
				l.wires[h].tap = func(f *link.Frame) bool {
					seen++
					ask := want
					if f.Packet.BTH.Opcode == roce.RCAcknowledge {
						ask = class
					}
					if f.TrafficClass != ask {
						t.Errorf("DCQCN %v: %v goes out with %#x, the application said %#x", on, f.Packet.BTH.Opcode, f.TrafficClass, class)
					}
					return true
				}
			}
			l.one(t, e, 4096)
			if seen < 5 {
				t.Fatal("nothing was seen")
			}
		}
	}
}

func TestCNPsForNobodyAndWhereDCQCNIsOffAreIgnored(t *testing.T) {
	for _, on := range []bool{false, true} {
		l := profiled(func(_ int, p *Profile) {
			if on {
				p.DCQCN = params("mlx5")
			}
		})
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		want := uint64(1)
		if !on {
			want = 2
		}
		for _, num := range []uint32{e[0].qp.num, 0x4711} {
			f := l.frames.Get()
			f.Kind, f.Packet = roce.KindRoCE, roce.NewCNP(num)
			f.Packet.Dst, f.Packet.Src = l.addrs[0], l.addrs[1]
			e[0].Receive(f)
		}
		if c := e[0].Counters(); c.CNPIgnored != want || c.CNPHandled != 2-want || c.StrayPackets != 0 {
			t.Errorf("DCQCN %v: %d ignored, %d handled", on, c.CNPIgnored, c.CNPHandled)
		}
	}
}

// A queue that marks by DCQCN's curve is held where the model says by senders that are RNICs: the loop is closed
// through NP, CNP and RP.
func TestTheLoopOfMarksCNPsAndRatesHoldsAQueue(t *testing.T) {
	l := profiled(withDCQCN("paper", nil))
	config := l.config
	l.config = func(c *Config) { config(c); c.Rate = 40e9 }
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 4, func(int) uint8 { return 26 })
	// The wire of host 0 is a bottleneck of 10 Gb/s, which marks on the bytes that wait when a packet leaves.
	const bottleneck = 10_000_000_000
	profile, _ := dcqcn.ProfileNamed("paper")
	w := l.wires[0]
	cp := dcqcn.CP{Marking: profile.Marking, Random: w.rng}
	queue := link.NewLine(bottleneck)
	var sum, n float64
	w.hold = func(f *link.Frame, at loop.Time) loop.Time {
		waiting := max(queue.Free()-at, 0)
		bytes := float64(waiting) * bottleneck / 8e9
		if f.Packet.PayloadLen > 0 {
			sum, n = sum+bytes, n+1
			// Marked at departure: what will wait then is what comes while it does, about as much again in a steady state.
			if cp.Mark(dcqcn.Bytes(bytes)) && f.ECN() != roce.NotECT {
				f.MarkCE()
			}
		}
		return queue.Send(at, f.Len)
	}
	for _, p := range pairs {
		stream(t, p, 1000)
	}
	l.until(l.v.Now().Add(8 * time.Millisecond))
	sum, n = 0, 0
	got := l.rate([2]*end{e[0], e[1]}, 8*time.Millisecond)
	mean := sum / n
	if got < 0.7*bottleneck || mean > 400_000 {
		t.Errorf("the bottleneck carries %.2f of 10 Gb/s, %.0f bytes wait in the mean", got/1e9, mean)
	}
	c := e[0].Counters()
	if c.CNPHandled < 50 || c.PacketSeqErr != 0 || c.LocalAckTimeoutErr != 0 {
		t.Errorf("%d CNPs, %d NAKs, %d timeouts", c.CNPHandled, c.PacketSeqErr, c.LocalAckTimeoutErr)
	}
}
