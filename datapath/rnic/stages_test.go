package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// rate is what host 1 got of a stream's payload in a time, bits a second.
func (l *lab) rate(p [2]*end, span time.Duration) float64 {
	before := p[1].Counters().RxBytes
	l.until(l.v.Now().Add(span))
	return float64(p[1].Counters().RxBytes-before) * 8 / span.Seconds()
}

// one is how long a WRITE of n bytes takes from its post to its completion.
func (l *lab) one(t *testing.T, p [2]*end, n int) time.Duration {
	t.Helper()
	start := l.v.Now()
	wr := verbs.SendWR{Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p[0].sge(0, n), RemoteAddr: p[1].mem.addr, RKey: p[1].mr.was}
	if err := p[0].qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	if err := p[0].cq.ReqNotify(false); err != nil { // so that its being visible is an event
		t.Fatal(err)
	}
	l.await(t, p[0], 1)
	return l.v.Now().Sub(start)
}

func pairWith(t *testing.T, change func(host int, p *Profile)) (*lab, [2]*end) {
	l := profiled(change)
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	l.until(l.v.Now().Add(10 * time.Microsecond)) // later than anything that could be done ahead
	return l, p
}

// Each stage's latency is paid once by a message and never by a stream: with all of them a line is as full as with none.
func TestLatenciesAddUpForAMessageAndCostAStreamNothing(t *testing.T) {
	bare := func(p *Profile) { p.Stages = Stages{} }
	l, p := pairWith(t, func(_ int, p *Profile) { bare(p) })
	base := l.one(t, p, 64)
	for name, c := range map[string]struct {
		set  func(s *Stages)
		want time.Duration
	}{
		"doorbell":                     {func(s *Stages) { s.Doorbell = 150 }, 150},
		"WQE fetch":                    {func(s *Stages) { s.WQEFetch = 450 }, 450},
		"headers":                      {func(s *Stages) { s.Headers = 60 }, 60},
		"DMA read":                     {func(s *Stages) { s.PCIe.HostRead = 500 }, 500},
		"DMA read, however early":      {func(s *Stages) { s.PCIe.HostRead, s.Prefetch = 500, 2*time.Microsecond }, 500},
		"context, there and back":      {func(s *Stages) { s.RxContext = 120 }, 240},
		"CQE":                          {func(s *Stages) { s.CQEWrite = 300 }, 300},
		"MTT misses, here and there":   {func(s *Stages) { s.MTT = Translate{Entries: 8, Page: 4096, Miss: 700} }, 1400},
		"IOMMU misses":                 {func(s *Stages) { s.IOMMU = Translate{Entries: 8, Page: 4096, Miss: 330} }, 660},
		"GPU latency isn't the host's": {func(s *Stages) { s.PCIe.GPURead = 500 }, 0},
		"PCIe, 88 bytes both ways":     {func(s *Stages) { s.PCIe.NIC = PCIeLink{1, 1} }, 2 * 383},
	} {
		l, p := pairWith(t, func(_ int, p *Profile) { bare(p); c.set(&p.Stages) })
		if got := l.one(t, p, 64) - base; got < c.want-3 || got > c.want+3 {
			t.Errorf("%s: a message takes %v longer, want %v", name, got, c.want)
		}
	}
	full := func(change func(*Profile)) float64 {
		l, p := pairWith(t, func(_ int, p *Profile) { change(p) })
		stream(t, p, 400)
		l.until(l.v.Now().Add(20 * time.Microsecond))
		return l.rate(p, time.Millisecond)
	}
	fast, slow := full(bare), full(func(p *Profile) {
		p.Stages.IOMMU = Translate{Entries: 8, Page: 4096, Miss: 400, Parallel: 8}
	})
	if slow < 0.999*fast || fast < 0.98e11 {
		t.Errorf("a stream runs at %.2f Gb/s with all stages, at %.2f without", slow/1e9, fast/1e9)
	}
}

// A batch of short messages is taken at the message rate, whether it is posted at once or one by one.
func TestShortMessagesGoAtTheMessageRate(t *testing.T) {
	for _, batch := range []int{1, 50} {
		l, p := pairWith(t, func(_ int, p *Profile) { p.Stages.MessageRate = 2e6 })
		wr := verbs.SendWR{Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p[0].sge(0, 8), RemoteAddr: p[1].mem.addr, RKey: p[1].mr.was}
		wrs := make([]verbs.SendWR, batch)
		for i := range wrs {
			wrs[i] = wr
		}
		var first, last loop.Time
		l.wires[0].hold = func(_ *link.Frame, at loop.Time) loop.Time {
			if first == 0 {
				first = at
			}
			last = at
			return at
		}
		for range 500 / batch {
			if err := p[0].qp.PostSend(wrs...); err != nil {
				t.Fatal(err)
			}
		}
		l.await(t, p[0], 500)
		if each := last.Sub(first) / 499; each < 499 || each > 503 {
			t.Errorf("posted %d at a time a message leaves every %v, want 500ns", batch, each)
		}
	}
}

func TestWhatLimitsAStageLimitsAStream(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(host int, p *Profile)
		want float64 // bits a second of frames
	}{
		"the sender's PCIe": {func(host int, p *Profile) {
			if host == 0 {
				p.Stages.PCIe.NIC = PCIeLink{3, 4}
			}
		}, float64(PCIeLink{3, 4}.Rate()) * 256 / 280 * 4166 / 4096},
		"packets a second": {func(_ int, p *Profile) { p.Stages.PacketRate = 1e6 }, 1e6 * 4166 * 8},
		"misses one by one": {func(host int, p *Profile) {
			if host == 0 {
				p.Stages.MTT = Translate{Entries: 8, Page: 4096, Miss: 800}
			}
		}, 4166 * 8 / 800e-9},
	} {
		l, p := pairWith(t, c.set)
		stream(t, p, 400)
		l.until(l.v.Now().Add(50 * time.Microsecond))
		if got := l.rate(p, time.Millisecond); got < 0.97*c.want || got > 1.03*c.want {
			t.Errorf("%s: %.2f Gb/s, want %.2f", name, got/1e9, c.want/1e9)
		}
	}
}

// A receiver whose PCIe is slower than the wire pauses its peer: nothing is lost, and what comes is what PCIe takes.
func TestASlowReceiverPausesItsPeerAndLosesNothing(t *testing.T) {
	for name, slow := range map[string]func(p *Profile){
		"PCIe": func(p *Profile) { p.Stages.PCIe.NIC = PCIeLink{3, 4} },
		"translation": func(p *Profile) {
			p.Stages.MTT = Translate{Entries: 8, Page: 4096, Miss: 1200}
		},
		"PCIe, 802.3x": func(p *Profile) { p.Stages.PCIe.NIC = PCIeLink{3, 4} },
	} {
		l, p := pairWith(t, func(host int, p *Profile) {
			if host == 1 {
				slow(p)
			}
			if name == "PCIe, 802.3x" {
				p.Pause.Global, p.Pause.Lossless = true, 0
			}
		})
		stream(t, p, 400)
		l.until(l.v.Now().Add(100 * time.Microsecond))
		got := l.rate(p, time.Millisecond)
		want := float64(PCIeLink{3, 4}.Rate()) * 256 / 280 * 4166 / 4096
		if name == "translation" {
			want = 4166 * 8 / 1200e-9
		}
		if got < 0.97*want || got > 1.03*want {
			t.Errorf("%s: %.2f Gb/s come, want %.2f", name, got/1e9, want/1e9)
		}
		a, b := p[0].Counters(), p[1].Counters()
		if a.PacketSeqErr != 0 || a.LocalAckTimeoutErr != 0 || b.OutOfSequence != 0 || b.Priority[3].RxBufferDiscards != 0 {
			t.Errorf("%s: something was lost: %d NAKs, %d timeouts, %d discards", name, a.PacketSeqErr, a.LocalAckTimeoutErr, b.Priority[3].RxBufferDiscards)
		}
		if b.Priority[3].TxPause < 10 || a.Priority[3].RxPause != b.Priority[3].TxPause {
			t.Errorf("%s: %d pause frames were sent, %d came", name, b.Priority[3].TxPause, a.Priority[3].RxPause)
		}
		// Bytes held never exceed the threshold and what was under way when it was passed.
		if n := p[1].port.in.held[3]; n > int64(Default().Pause.XOFF+Default().Pause.Headroom) {
			t.Errorf("%s: %d bytes in the buffer", name, n)
		}
		if ended := uint64(l.v.Now()); b.Priority[3].TxPauseTime == 0 || b.Priority[3].TxPauseTime > ended {
			t.Errorf("%s: paused for %d ns", name, b.Priority[3].TxPauseTime)
		}
	}
}

func TestWithoutHeadroomASlowReceiverDropsAndCountsIt(t *testing.T) {
	for name, set := range map[string]func(p *Profile){
		"no headroom":              func(p *Profile) { p.Pause.Headroom = 1000 },
		"no flow control":          func(p *Profile) { p.Pause.Lossless = 0 },
		"a peer that won't listen": nil,
	} {
		l, p := pairWith(t, func(host int, p *Profile) {
			switch {
			case host == 1:
				p.Stages.PCIe.NIC = PCIeLink{3, 4}
				if set != nil {
					set(p)
				}
			case set == nil:
				p.Pause.Lossless = 0
			}
		})
		stream(t, p, 100)
		l.await(t, p[0], 100) // go-back-N brings it all there
		a, b := p[0].Counters(), p[1].Counters()
		if b.Priority[3].RxBufferDiscards == 0 || a.PacketSeqErr == 0 {
			t.Errorf("%s: %d discards, %d NAKs", name, b.Priority[3].RxBufferDiscards, a.PacketSeqErr)
		}
		if string(p[0].mem.bytes[:64<<10]) != string(p[1].mem.bytes[:64<<10]) {
			t.Errorf("%s: what arrived is wrong", name)
		}
	}
}

func TestAPauseIsRepeatedAsLongAsItLastsAndEndsWithTheBuffer(t *testing.T) {
	l, p := pairWith(t, func(host int, p *Profile) {
		p.Pause.Quanta = 400 // 2.05 µs
		if host == 1 {
			p.Stages.PCIe.NIC = PCIeLink{1, 1}
			p.Pause.XON = 20_000
		}
	})
	stream(t, p, 20)
	l.await(t, p[0], 20)
	b := p[1].Counters().Priority[3]
	if begun := p[1].port.in.pauser.Began[3]; b.TxPause < 4*begun || begun == 0 {
		t.Errorf("%d frames for %d pauses", b.TxPause, begun)
	}
	l.until(l.v.Now().Add(time.Millisecond))
	if p[1].port.in.pauser.Paused() != 0 || p[1].port.in.timer.Armed() {
		t.Error("the last pause isn't over")
	}
	if p[1].Counters().Priority[3].RxBufferDiscards != 0 || p[0].Counters().PacketSeqErr != 0 {
		t.Error("something was lost")
	}
}

// What misses its translation on arrival holds up what comes behind it: the receive pipeline keeps its order.
func TestWritesToMemoryKeepTheirOrder(t *testing.T) {
	var h pipeline
	c := Config{Profile: Profile{Stages: Stages{MTT: Translate{Entries: 8, Page: 4096, Miss: 700, Parallel: 4}}}}
	if err := h.init(&c); err != nil {
		t.Fatal(err)
	}
	h.place(0, 4096, 64, verbs.HostMemory) // both pages are known from here on
	h.place(0, 8192, 64, verbs.HostMemory)
	miss := h.place(10_000, 1<<20, 64, verbs.HostMemory)
	hit := h.place(10_001, 4096, 64, verbs.HostMemory)
	if miss != 10_700 || hit != 10_700 {
		t.Errorf("a miss is through at %v, the hit behind it at %v", miss, hit)
	}
}

// The ACK of a WRITE stays behind the responses of the READ before it, however long those wait for their payload.
func TestAnACKDoesNotOvertakeAREADsResponses(t *testing.T) {
	l, p := pairWith(t, func(_ int, p *Profile) { p.Stages.PCIe.HostRead = 5 * time.Microsecond })
	for i, op := range []verbs.Opcode{verbs.OpRDMARead, verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpRDMAWrite} {
		wr := verbs.SendWR{ID: uint64(i), Op: op, Flags: verbs.Signaled, SGL: p[0].sge(0, 3000), RemoteAddr: p[1].mem.addr + 500_000, RKey: p[1].mr.was}
		if err := p[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
	}
	l.await(t, p[0], 4)
	if c := p[0].Counters(); c.ImpliedNakSeqErr != 0 || c.RetransmittedPackets != 0 || c.LocalAckTimeoutErr != 0 {
		t.Errorf("%d implied NAKs, %d sent again, %d timeouts", c.ImpliedNakSeqErr, c.RetransmittedPackets, c.LocalAckTimeoutErr)
	}
}

// A packet that waits for its payload when its queue pair fails goes back to the pool.
func TestAQueuePairInErrorTakesBackWhatWaitsForItsPayload(t *testing.T) {
	l, p := pairWith(t, func(_ int, p *Profile) { p.Stages.PCIe.HostRead = 500 * time.Microsecond })
	stream(t, p, 3)
	l.until(l.v.Now().Add(20 * time.Microsecond))
	if p[0].qp.tx.port.held == nil {
		t.Fatal("nothing waits")
	}
	p[0].qp.Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, func(error) {})
	l.until(l.v.Now().Add(2 * time.Millisecond))
	if n := p[0].Counters().TxPackets; n != 0 {
		t.Errorf("%d packets left all the same", n)
	}
	if l.frames.Made() != uint64(l.frames.Idle()) {
		t.Errorf("%d frames were made, %d are back", l.frames.Made(), l.frames.Idle())
	}
}

// Two NICs of a host that write to host memory at once get half of its root complex each; to their GPUs, all they can.
func TestTwoNICsOfAHostMeetAtItsMemory(t *testing.T) {
	rates := func(kind verbs.MemoryKind) (sum float64) {
		pcie, err := NewPCIe(PCIeConfig{NIC: PCIeLink{4, 16}, GPU: PCIeLink{4, 16}, Host: PCIeLink{3, 8}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s := pcie.attach()
			_ = s
		}
		// Both interleave, as packets arrive.
		var last loop.Time
		const n = 10_000
		for range n {
			for _, s := range pcie.slots {
				last = max(last, s.writeAt(0, 0, 4096, kind))
			}
		}
		return 2 * n * 4096 * 8 / last.Sub(0).Seconds()
	}
	host, gpu := rates(verbs.HostMemory), rates(verbs.GPUMemory)
	if want := float64(PCIeLink{3, 8}.Rate()) * 256 / 280; host < 0.99*want || host > 1.01*want {
		t.Errorf("to host memory %.1f Gb/s, want %.1f", host/1e9, want/1e9)
	}
	if want := 2 * float64(PCIeLink{4, 16}.Rate()) * 256 / 280; gpu < 0.99*want || gpu > 1.01*want {
		t.Errorf("to GPUs %.1f Gb/s, want %.1f", gpu/1e9, want/1e9)
	}
}

// The timeline of a WRITE has every stage that it passed, in the order in which it passed them.
func TestAMessagesTraceGoesThroughAllStagesInOrder(t *testing.T) {
	recorders := [2]*TraceRecorder{{Name: "h0"}, {Name: "h1"}}
	l := profiled(nil)
	change := l.config
	l.config = func(c *Config) {
		change(c)
		c.Trace = recorders[c.MAC[5]]
		c.Profile.Stages.MTT = Translate{Entries: 8, Page: 4096, Miss: 700, Parallel: 4}
	}
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	took := l.one(t, p, 16<<10)
	took2 := l.one(t, p, 16<<10)
	m := recorders[0].Message(p[0].qp.num, false, 0)
	far := recorders[1].Message(p[1].qp.num, true, 0)
	if m == nil || far == nil {
		t.Fatalf("no trace of the message:\n%v%v", recorders[0], recorders[1])
	}
	down := []Stage{StagePost, StageDoorbell, StageWQEFetch, StageTranslate, StageDMARead, StageHeaders, StageQueue, StageWire}
	inOrder := func(m *MessageTrace, stages []Stage, packets int) {
		t.Helper()
		var first loop.Time
		for _, s := range stages {
			x := m.Stages[s]
			if x.Count == 0 || x.First < first || s >= StageTranslate && s <= StageDMAWrite && x.Count != packets {
				t.Errorf("%v: %d packets from %v, the stage before from %v", s, x.Count, x.First, first)
			}
			first = x.First
		}
	}
	inOrder(m, append(down, StageAck, StageCQE), 4)
	inOrder(far, []Stage{StageArrive, StageContext, StageDMAWrite}, 4)
	if m.Stages[StagePacing].Count != 0 {
		t.Error("a flow that nobody limits was paced")
	}
	if got := m.Stages[StageCQE].Last.Sub(m.Stages[StagePost].First); got != took {
		t.Errorf("the trace spans %v, the message took %v", got, took)
	}
	if next := recorders[0].Message(p[0].qp.num, false, 1); next == nil || next.Stages[StageCQE].Last.Sub(next.Stages[StagePost].First) != took2 {
		t.Errorf("the second message's trace is wrong")
	}
	if t.Failed() {
		t.Logf("\n%v%v", recorders[0], recorders[1])
	}
}

// A READ's packets are the responder's; they are traced there, and where they arrive.
func TestAREADIsTracedAtBothItsEnds(t *testing.T) {
	recorders := [2]*TraceRecorder{{Name: "h0"}, {Name: "h1"}}
	l := profiled(nil)
	change := l.config
	l.config = func(c *Config) { change(c); c.Trace = recorders[c.MAC[5]] }
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	wr := verbs.SendWR{Op: verbs.OpRDMARead, Flags: verbs.Signaled, SGL: p[0].sge(0, 16<<10), RemoteAddr: p[1].mem.addr, RKey: p[1].mr.was}
	if err := p[0].qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	l.await(t, p[0], 1)
	m, far := recorders[0].Message(p[0].qp.num, false, 0), recorders[1].Message(p[1].qp.num, true, 0)
	if m == nil || far == nil || m.Stages[StageDMAWrite].Count != 4 || far.Stages[StageDMARead].Count != 4 || far.Stages[StageWire].Count != 4 || m.Stages[StageWire].Count != 1 {
		t.Errorf("traces:\n%v%v", recorders[0], recorders[1])
	}
}
