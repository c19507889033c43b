package rnic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// profiled is a lab whose devices have a profile that is changed a little; host 1's may differ.
func profiled(change func(host int, p *Profile)) *lab {
	l := newLab(false)
	l.config = func(c *Config) {
		c.Profile = Default()
		if change != nil {
			change(int(c.MAC[5]), &c.Profile)
		}
	}
	return l
}

// more makes further pairs of QPs on the two devices of a pair, each with a DSCP of its own.
func (l *lab) more(t testing.TB, e [2]*end, n int, dscp func(i int) uint8) [][2]*end {
	t.Helper()
	var out [][2]*end
	for i := range n {
		var p [2]*end
		for h := range p {
			p[h] = l.endOf(t, e[h].Device, verbs.RC, 1<<20, nil, h)
		}
		l.connect(t, p, verbs.RC, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) {
			a.PathMTU, a.AH.TrafficClass, a.Timeout, a.MaxRDAtomic, a.MaxDestRDAtomic = 4096, roce.TrafficClass(dscp(i), roce.ECT0), 14, 16, 16
		})
		out = append(out, p)
	}
	return out
}

// stream posts WRITEs of 64 KiB from an end to the other of its pair.
func stream(t testing.TB, p [2]*end, messages int) {
	t.Helper()
	for i := range messages {
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: p[0].sge(0, 64<<10), RemoteAddr: p[1].mem.addr, RKey: p[1].mr.was}
		if err := p[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
	}
}

// until handles events up to a time.
func (l *lab) until(at loop.Time) { l.v.RunUntil(at) }

// tally counts payload bytes of requests that left host 0, by QP at host 1 and by priority.
type tally struct {
	qp    map[uint32]int
	class map[uint8]int
}

func (l *lab) tally() *tally {
	n := &tally{map[uint32]int{}, map[uint8]int{}}
	l.wires[0].tap = func(f *link.Frame) bool {
		if f.Kind == roce.KindRoCE {
			n.qp[f.Packet.BTH.DestQP] += f.Packet.PayloadLen
			n.class[f.Priority] += f.Packet.PayloadLen
		}
		return true
	}
	return n
}

// Eight QPs that always have something to send get the same, to a packet.
func TestQueuePairsOfAPrioritySendInTurn(t *testing.T) {
	l := profiled(nil)
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 8, func(int) uint8 { return 26 })
	for _, p := range pairs {
		stream(t, p, 40)
	}
	l.until(l.v.Now().Add(20 * time.Microsecond)) // all are at it
	n := l.tally()
	l.until(l.v.Now().Add(800 * time.Microsecond))
	least, most := 1<<30, 0
	for _, p := range pairs {
		got := n.qp[p[1].qp.num]
		least, most = min(least, got), max(most, got)
	}
	if least == 0 || most-least > 2*4096 {
		t.Errorf("of one QP %d bytes left, of another %d", least, most)
	}
	if sent := float64(least*8) * 8 / 800e-6; sent < 0.96*100e9*4096/4190 {
		t.Errorf("together they sent %.1f Gb/s", sent/1e9)
	}
}

func TestPrioritiesShareTheLineByTheirWeightsAndStrictOnesGoFirst(t *testing.T) {
	for _, c := range []struct {
		weights [8]int
		shares  map[uint8]float64 // of priorities 1, 3 and 5
	}{
		{[8]int{1: 1, 3: 3, 5: 4, 6: 1}, map[uint8]float64{1: 0.125, 3: 0.375, 5: 0.5}},
		{[8]int{1: 2, 3: 2, 6: 1}, map[uint8]float64{1: 0, 3: 0, 5: 1}},
		{[8]int{}, map[uint8]float64{1: 0, 3: 0, 5: 1}},
		{[8]int{3: 1}, map[uint8]float64{1: 0, 3: 0, 5: 1}},
	} {
		l := profiled(func(_ int, p *Profile) { p.Scheduler.Weights = c.weights })
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		dscps := []uint8{8, 26, 40}
		pairs := l.more(t, e, 6, func(i int) uint8 { return dscps[i%3] })
		for _, p := range pairs {
			stream(t, p, 200)
		}
		l.until(l.v.Now().Add(20 * time.Microsecond))
		n := l.tally()
		l.until(l.v.Now().Add(1500 * time.Microsecond))
		all := n.class[1] + n.class[3] + n.class[5]
		for class, want := range c.shares {
			if got := float64(n.class[class]) / float64(all); got < want-0.01 || got > want+0.01 {
				t.Errorf("weights %v: priority %d has %.3f of the line, want %.3f", c.weights, class, got, want)
			}
		}
	}
}

// pause sends host 0 a pause frame, as its switch would.
func (l *lab) pause(d *Device, kind roce.Kind, pfc roce.PFC) {
	f := l.frames.Get()
	f.Kind, f.Len, f.PFC = kind, roce.MinFrameLen, pfc
	f.ArriveAt(d, 0)
	l.wires[1].from.Post(func() { l.wires[1].from.Send(l.wires[0].from, 0, l.v.Now().Add(labDelay), &f.Timer) })
}

func TestAPausedPriorityIsSilentAndTheOthersGoOn(t *testing.T) {
	for _, global := range []bool{false, true} {
		t.Run(fmt.Sprintf("global %v", global), func(t *testing.T) {
			l := profiled(func(_ int, p *Profile) {
				if p.Pause.Global = global; global {
					p.Pause.Lossless = 0
				}
			})
			e := l.pairOf(t, verbs.RC, 1<<20, nil)
			dscps := []uint8{26, 8}
			pairs := l.more(t, e, 2, func(i int) uint8 { return dscps[i] })
			for _, p := range pairs {
				stream(t, p, 400)
			}
			l.until(l.v.Now().Add(20 * time.Microsecond))
			kind, pfc := roce.KindPFC, roce.PFC{}
			pfc.Set(3, 20_000) // 102.4 µs
			pfc.Set(1, 0)
			if global {
				kind = roce.KindPause
				for i := range uint8(8) {
					pfc.Set(i, 20_000)
				}
			}
			start := l.v.Now()
			l.pause(e[0].Device, kind, pfc)
			l.until(start.Add(2 * time.Microsecond)) // it has arrived, and the packets on the line are through
			n := l.tally()
			l.until(start.Add(100 * time.Microsecond))
			if n.class[3] != 0 {
				t.Errorf("%d bytes of the paused priority left", n.class[3])
			}
			if n.class[1] > 0 == global {
				t.Errorf("%d bytes of another priority left", n.class[1])
			}
			l.until(start.Add(130 * time.Microsecond))
			if n.class[3] == 0 {
				t.Error("the pause doesn't end with its quanta")
			}
			c := e[0].Counters().Priority
			if c[3].RxPause != 1 || c[3].RxPauseTime != 102_400 || !global && c[1].RxPauseTime != 0 {
				t.Errorf("counted %d frames and %d ns", c[3].RxPause, c[3].RxPauseTime)
			}

			// A pause is ended by one of no quanta.
			l.pause(e[0].Device, kind, pfc)
			l.until(l.v.Now().Add(10 * time.Microsecond))
			pfc.Set(3, 0)
			pfc.Set(1, 0)
			l.pause(e[0].Device, kind, pfc)
			l.until(l.v.Now().Add(2 * time.Microsecond))
			n = l.tally()
			l.until(l.v.Now().Add(10 * time.Microsecond))
			if n.class[3] == 0 {
				t.Error("XON is not obeyed")
			}
		})
	}
}

func TestAPortObeysOnlyThePausesThatItsProfileNames(t *testing.T) {
	l := profiled(func(_ int, p *Profile) { p.Pause.Lossless = 1 << 2 })
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 1, func(int) uint8 { return 26 })
	stream(t, pairs[0], 400)
	l.until(l.v.Now().Add(20 * time.Microsecond))
	var all roce.PFC
	for i := range uint8(8) {
		all.Set(i, 0xffff)
	}
	l.pause(e[0].Device, roce.KindPFC, all)
	l.pause(e[0].Device, roce.KindPause, all)
	l.until(l.v.Now().Add(2 * time.Microsecond))
	n := l.tally()
	l.until(l.v.Now().Add(20 * time.Microsecond))
	if n.class[3] == 0 || e[0].Counters().Priority[3].RxPause != 0 {
		t.Error("priority 3, which has no flow control, was paused")
	}
	if e[0].Counters().Priority[2].RxPause != 1 {
		t.Error("priority 2's pause isn't counted")
	}
}

func TestControlOfAPausedPriorityWaitsToo(t *testing.T) {
	l := profiled(nil)
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	var pfc roce.PFC
	pfc.Set(3, 0xffff)
	f := l.frames.Get()
	f.Kind, f.Len, f.PFC = roce.KindPFC, roce.MinFrameLen, pfc
	f.ArriveAt(e[1].Device, 0)
	l.wires[0].from.Post(func() { l.wires[0].from.Send(l.wires[1].from, 0, l.v.Now().Add(labDelay), &f.Timer) })
	l.until(l.v.Now().Add(2 * time.Microsecond))
	acks := 0
	l.wires[1].tap = func(*link.Frame) bool { acks++; return true }
	stream(t, p, 1)
	l.until(l.v.Now().Add(100 * time.Microsecond))
	if acks != 0 {
		t.Error("an ACK of the paused priority left")
	}
	l.await(t, p[0], 1)
}

// A UD QP sends in the priority of each datagram's address handle: one that is paused doesn't leave, whatever was sent before.
func TestADatagramIsSentInItsOwnPriority(t *testing.T) {
	l := profiled(func(_ int, p *Profile) { p.Pause.Lossless = 1<<3 | 1<<1 })
	e := l.pairOf(t, verbs.UD, 1<<20, nil)
	handles := map[uint8]verbs.AH{}
	for _, dscp := range []uint8{8, 26} {
		e[0].pd.CreateAH(verbs.AHAttr{DGID: l.addrs[1].Netip(), TrafficClass: roce.TrafficClass(dscp, roce.NotECT)}, func(a verbs.AH, err error) {
			if err != nil {
				t.Fatal(err)
			}
			handles[dscp] = a
		})
	}
	l.settle(t, func() bool { return len(handles) == 2 })
	var pfc roce.PFC
	pfc.Set(3, 0xffff)
	l.pause(e[0].Device, roce.KindPFC, pfc)
	l.until(l.v.Now().Add(2 * time.Microsecond))
	n := l.tally()
	for i, dscp := range []uint8{8, 8, 26, 8} {
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpSend, SGL: e[0].sge(0, 100), AH: handles[dscp], RemoteQPN: e[1].qp.num, RemoteQKey: 1}
		if err := e[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
	}
	l.until(l.v.Now().Add(50 * time.Microsecond))
	if n.class[3] != 0 || n.class[1] != 200 {
		t.Errorf("priority 3, which is paused, sent %d bytes, priority 1 %d; the datagram behind keeps its order", n.class[3], n.class[1])
	}
	l.until(l.v.Now().Add(400 * time.Microsecond))
	if n.class[3] != 100 || n.class[1] != 300 {
		t.Errorf("after the pause priority 3 has sent %d bytes, priority 1 %d", n.class[3], n.class[1])
	}
}

// ACKs of the other direction go before data, and a CNP's priority before both.
func TestControlDoesNotWaitBehindData(t *testing.T) {
	l := profiled(nil)
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	pairs := l.more(t, e, 9, func(int) uint8 { return 26 })
	for i, p := range pairs {
		if i > 0 {
			stream(t, p, 100)
		}
	}
	l.until(l.v.Now().Add(50 * time.Microsecond))
	// Host 1 writes 64 KiB to host 0, whose own line is full; the ACK asked for comes at once.
	back := [2]*end{pairs[0][1], pairs[0][0]}
	start := l.v.Now()
	stream(t, back, 1)
	l.await(t, back[0], 1)
	took := l.v.Now().Sub(start)
	l2 := profiled(nil)
	e2 := l2.pairOf(t, verbs.RC, 1<<20, nil)
	quiet := l2.more(t, e2, 1, func(int) uint8 { return 26 })[0]
	start = l2.v.Now()
	stream(t, [2]*end{quiet[1], quiet[0]}, 1)
	l2.await(t, quiet[1], 1)
	if alone := l2.v.Now().Sub(start); took > alone+2*336 {
		t.Errorf("a WRITE against a full line took %v, on an idle one %v; the ACK may wait for a packet or two of 336ns", took, alone)
	}
}

func TestALinkThatIsDownLosesWhatIsSentAndForgetsPauses(t *testing.T) {
	l := profiled(nil)
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	var all roce.PFC
	all.Set(3, 0xffff)
	l.pause(e[0].Device, roce.KindPFC, all)
	l.until(l.v.Now().Add(2 * time.Microsecond))
	n := l.tally()
	e[0].SetLink(false)
	stream(t, p, 1)
	l.until(l.v.Now().Add(50 * time.Microsecond))
	if n.class[3] != 0 {
		t.Error("a port that is down sends")
	}
	if e[0].Counters().TxDiscards == 0 {
		t.Error("nothing was lost on a link that is down: the requester waits for it, and its retries never run out")
	}
	e[0].SetLink(true)
	l.await(t, p[0], 1)
	if got := e[0].Counters().Priority[3].RxPauseTime; got > 60_000 {
		t.Errorf("the pause was forgotten after %v, but counts %d ns", 51*time.Microsecond, got)
	}
}

// At saturation a packet costs the sender about one event, whatever the number of QPs, and idle QPs cost nothing.
func TestAPacketCostsAnEventAndAnIdleQueuePairNone(t *testing.T) {
	events := func(idle, busy int) (handled uint64, packets int) {
		l := profiled(nil)
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		pairs := l.more(t, e, idle+busy, func(int) uint8 { return 26 })
		for _, p := range pairs[idle:] {
			stream(t, p, 400/busy)
		}
		l.until(l.v.Now().Add(20 * time.Microsecond))
		sent, before := e[0].Counters().TxPackets, l.v.Handled()
		l.until(l.v.Now().Add(500 * time.Microsecond))
		return l.v.Handled() - before, int(e[0].Counters().TxPackets - sent)
	}
	alone, packets := events(0, 1)
	// Per packet: the port's turn and the arrival; an ACK for every sixteenth; ACK timers and completions are few.
	if q := float64(alone) / float64(packets); q > 2.3 {
		t.Errorf("%d events for %d packets: %.2f each", alone, packets, q)
	}
	many, packets2 := events(0, 8)
	if q := float64(many) / float64(packets2); q > 2.3 {
		t.Errorf("of eight QPs %d events for %d packets: %.2f each", many, packets2, q)
	}
	if with, _ := events(500, 1); with != alone {
		t.Errorf("500 idle QPs cost %d events", int64(with)-int64(alone))
	}
}

// A burst commits packets together: fewer events for the same packets at the same times, and as many more that a pause
// can't hold back.
func TestABurstSavesEventsAndChangesNoDeparture(t *testing.T) {
	run := func(burst int) (events uint64, last []loop.Time, late int) {
		l := profiled(func(_ int, p *Profile) { p.Scheduler.Burst = burst })
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
		stream(t, p, 400)
		l.until(l.v.Now().Add(20 * time.Microsecond))
		l.wires[0].hold = func(f *link.Frame, at loop.Time) loop.Time { last = append(last, at); return at }
		before := l.v.Handled()
		l.until(l.v.Now().Add(300 * time.Microsecond))
		events = l.v.Handled() - before
		var pfc roce.PFC
		pfc.Set(3, 1000)
		l.pause(e[0].Device, roce.KindPFC, pfc)
		arrives := l.v.Now().Add(labDelay)
		l.wires[0].hold = func(_ *link.Frame, at loop.Time) loop.Time {
			if at > arrives {
				late++
			}
			return at
		}
		l.until(arrives.Add(4 * time.Microsecond))
		return events, last, late
	}
	one, at1, late1 := run(0)
	four, at4, late4 := run(4)
	n := len(at1)
	same := 0
	for i := slices.Index(at1, at4[0]); i >= 0 && i+same < n && same < len(at4) && at1[i+same] == at4[same]; {
		same++
	}
	if same < n-4 {
		t.Errorf("%d packets one by one, %d in bursts, of which %d leave when those do", n, len(at4), same)
	}
	if saved := float64(one-four) / float64(n); saved < 0.7 || saved > 0.76 {
		t.Errorf("a burst of four saves %.2f events a packet", saved)
	}
	if late1 > 1 || late4 > 4 || late4 <= late1 {
		t.Errorf("%d packets left after the pause one by one, %d in bursts", late1, late4)
	}
}
