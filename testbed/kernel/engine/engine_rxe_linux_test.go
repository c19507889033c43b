//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// bed is two hosts on a switch; the switch's port to h2 (number 1) and the one to h1 (2) are the engine's.
//
//	h1 ── eth0 leaf1 eth1 ── h2
type bed struct {
	t *testing.T
	w *linux.Wiring
	e *Engine
}

const (
	toH2, toH1 = 1, 2
	lineRate   = 10 * topo.Mbps
)

var beds int

func lay(t *testing.T, change func(*Port)) *bed {
	t.Helper()
	testneed.Rxe(t) // a kernel that has rxe in namespaces has the engine's discipline, in the guest
	ctx := context.Background()
	none := time.Duration(0)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Delay: &none}}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	beds++
	tb, err := linux.Acquire(ctx, fmt.Sprintf("e%d-%d", os.Getpid(), beds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	b := &bed{t: t}
	if b.w, err = tb.Wire(ctx, plan, linux.WireOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.e, err = Open(Config{Testbed: fmt.Sprint("test", beds), Ports: 2, Nodes: 1, Slots: 4096, Flows: 200, MaxIndex: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.e.SetMemory(0, 1<<20); err != nil {
		t.Fatal(err)
	}
	b.renew(time.Hour)
	p := Declared()
	change(&p)
	for number, name := range map[int]string{toH2: "eth1", toH1: "eth0"} {
		b.attach(number, name, p)
	}
	return b
}

// Declared is a port at 10 Mb/s whose priority 3 is lossless.
func Declared() Port {
	p := Port{Rate: lineRate, MTU: 1500, Obey: 1 << 3, Sends: 1 << 3}
	for d := range p.Priority {
		p.Priority[d] = uint8(d / 8)
	}
	for i := range p.Queues {
		p.Queues[i] = Queue{Reserved: 200_000, Weight: 1}
	}
	p.Queues[6].Weight = 0
	p.Groups[3] = Group{Lossless: true, XOFF: 50_000, XON: 3000, Headroom: 30_000}
	return p
}

func (b *bed) attach(number int, port string, p Port) {
	b.t.Helper()
	ns := b.w.Node("leaf1")
	l, _ := ns.Link(port)
	var conn *tc.Conn
	err := ns.Do(func() (err error) { conn, err = tc.Open(); return err })
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := b.e.Add(number, Place{Ifindex: l.Index, Slots: 2048}, p); err != nil {
		b.t.Fatal(err)
	}
	var batch nl.Batch
	tree := []tc.Object{{ID: Handle(number), Parent: tc.Root, Spec: tc.Engine{Name: b.e.Kind()}}}
	have, err := conn.Tree(l.Index)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, op := range tc.Diff(have, tree) {
		tc.AppendOp(&batch, l.Index, op, port)
	}
	tc.AppendHookPlace(&batch, l.Index, port)
	tc.AppendHook(&batch, l.Index, b.e.Arrive().FD(), port)
	tc.AppendEgressHook(&batch, l.Index, b.e.Pause().FD(), port)
	if err := conn.Send(&batch); err != nil {
		b.t.Fatal(err)
	}
	have, err = conn.Tree(l.Index)
	if err == nil {
		err = tc.Verify(have, tree)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) renew(d time.Duration) {
	b.t.Helper()
	if err := b.e.Renew(d); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) read(number int) Reading {
	b.t.Helper()
	r, err := b.e.Read(number)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// flood sends datagrams from h1 to h2 with a DSCP until stopped, some of them at a time and so many a pause.
func (b *bed) flood(dscp, port int) (stop func()) {
	b.t.Helper()
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	at := net.JoinHostPort(h2.Addr.Addr().String(), fmt.Sprint(port))
	var c *net.UDPConn
	err := b.w.Node("h1").Do(func() error {
		conn, err := net.Dial("udp", at)
		if err != nil {
			return err
		}
		c = conn.(*net.UDPConn)
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		return errors.Join(raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2|2) }), err)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1400)
		for {
			select {
			case <-end:
				return
			default:
			}
			for range 16 {
				_, _ = c.Write(buf) // h2 has no such port, and says so
			}
			time.Sleep(500 * time.Microsecond)
		}
	}()
	return func() { close(end); <-ended; c.Close() }
}

// until waits for a condition of a port.
func (b *bed) until(number int, what string, is func(Reading) bool) Reading {
	b.t.Helper()
	var r Reading
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if r = b.read(number); is(r) {
			return r
		}
	}
	b.t.Fatalf("%s: never; last seen: %+v", what, r)
	return r
}

// pause sends a pause frame from h2 to the switch.
func (b *bed) pause(priority uint8, quanta uint16) {
	b.t.Helper()
	err := b.w.Node("h2").Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		l, _ := b.w.Node("h2").Link("eth0")
		var f roce.PFC
		f.Set(priority, quanta)
		return unix.Sendto(fd, roce.AppendPFC(nil, roce.MAC{2, 0, 0, 0, 0, 9}, &f), 0, &unix.SockaddrLinklayer{Ifindex: l.Index})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestAPortKeepsItsRateAndSharesItByWeight(t *testing.T) {
	b := lay(t, func(p *Port) { p.Queues[2].Weight = 3 })
	defer b.flood(8, 9)()  // priority 1
	defer b.flood(16, 9)() // priority 2
	full := func(r Reading) bool { return r.Queues[1].Bytes > 20_000 && r.Queues[2].Bytes > 20_000 }
	first := b.until(toH2, "both queues fill", full)
	at := Now()
	last := b.until(toH2, "a megabyte and a half is sent", func(r Reading) bool {
		return r.Queues[1].TxBytes+r.Queues[2].TxBytes-first.Queues[1].TxBytes-first.Queues[2].TxBytes > 15e5
	})
	took := Now() - at
	one, two := last.Queues[1].TxBytes-first.Queues[1].TxBytes, last.Queues[2].TxBytes-first.Queues[2].TxBytes
	frames := float64(last.Queues[1].TxFrames + last.Queues[2].TxFrames - first.Queues[1].TxFrames - first.Queues[2].TxFrames)
	// What the machine was late with is known, and makes up for the rest.
	carried := time.Duration((float64(one+two) + frames*frameOverhead) * 8 / float64(lineRate) * 1e9)
	if share := float64(carried+last.Late-first.Late) / float64(took); share < 0.95 || share > 1.05 {
		t.Errorf("the port carried %v of frames in %v, and lost %v", carried, took, last.Late-first.Late)
	}
	if ratio := float64(two) / float64(one); ratio < 2.7 || ratio > 3.3 {
		t.Errorf("weights 3 and 1 shared %.2f to 1", ratio)
	}
}

func TestWhatIsStrictGoesFirstAndLossyQueuesDropBeyondTheirReserve(t *testing.T) {
	b := lay(t, func(*Port) {})
	defer b.flood(8, 9)()
	b.until(toH2, "the lossy queue drops", func(r Reading) bool { return r.Queues[1].Drops > 100 && r.Queues[1].HighWater <= 200_000 })
	defer b.flood(48, 9)() // priority 6, faster than the line
	first := b.until(toH2, "the strict queue fills", func(r Reading) bool { return r.Queues[6].Bytes > 20_000 })
	last := b.until(toH2, "the strict queue is served", func(r Reading) bool { return r.Queues[6].TxFrames-first.Queues[6].TxFrames > 500 })
	if n := last.Queues[1].TxFrames - first.Queues[1].TxFrames; n > 5 {
		t.Errorf("%d frames of the weighted queue went while strict ones waited", n)
	}
}

func TestAPauseHoldsItsPriorityUntilItEndsOrNobodyLooksAfterIt(t *testing.T) {
	b := lay(t, func(*Port) {})
	events, err := b.e.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	stop := b.flood(24, 9) // priority 3
	still := func(what string) {
		t.Helper()
		a := b.until(toH2, what, func(r Reading) bool { return r.Queues[3].Paused })
		b.until(toH2, what+": the queue grows", func(r Reading) bool { return r.Queues[3].Bytes >= 50_000 })
		if z := b.read(toH2); z.Queues[3].TxFrames > a.Queues[3].TxFrames+1 {
			t.Errorf("%s: %d frames went", what, z.Queues[3].TxFrames-a.Queues[3].TxFrames)
		}
	}
	goes := func(what string) {
		t.Helper()
		a := b.read(toH2)
		b.until(toH2, what, func(r Reading) bool { return r.Queues[3].TxFrames > a.Queues[3].TxFrames+5 })
	}
	goes("before any pause")
	b.pause(3, 0xffff)
	still("paused")
	b.pause(3, 0)
	goes("after XON")
	b.pause(4, 0xffff)
	goes("another priority's pause")
	b.pause(3, 0xffff) // 65,535 quanta at 10 Mb/s: 3.4 s
	goes("after the quanta have run out")
	if err := b.e.Declare(toH2, func() Port { p := Declared(); p.Rate = topo.Mbps; return p }()); err != nil {
		t.Fatal(err)
	}
	b.pause(3, 0xffff) // 34 s at 1 Mb/s
	still("paused for long")
	if err := b.e.Declare(toH2, Declared()); err != nil {
		t.Fatal(err)
	}
	b.renew(0)
	goes("nobody looks after it any more")
	stop()
	r := b.until(toH2, "all has gone", func(r Reading) bool { return r.Packets == 0 })
	if r.Queues[3].RxPauses != 4 || r.Queues[3].RxPaused != 3 || r.Queues[4].RxPauses != 1 {
		t.Errorf("pauses were counted as %d frames and %d pauses", r.Queues[3].RxPauses, r.Queues[3].RxPaused)
	}
	kinds := map[EventKind]int{}
	events.SetDeadline(time.Now().Add(time.Second))
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		kinds[e.Kind]++
	}
	if kinds[Obeyed] != 4 || kinds[XOFF] == 0 || kinds[XON] == 0 {
		t.Errorf("events: %v", kinds)
	}
}

// What waits in a lossless group is accounted to the port that it came in by, whichever it leaves by.
func TestALosslessGroupPausesAtItsThresholdAndDropsBeyondItsHeadroom(t *testing.T) {
	b := lay(t, func(p *Port) { p.Stuck = 1 << 3 })
	stop := b.flood(24, 9)
	r := b.until(toH1, "headroom is exceeded", func(r Reading) bool { return r.Groups[3].HeadroomDrops > 10 })
	stop()
	g := r.Groups[3]
	if g.Held < 48_000 || g.Held > 50_000 || g.Headroom < 28_000 || g.Headroom > 30_000 || g.XOFFs != 1 || !g.Pausing {
		t.Errorf("the group is %+v", g)
	}
	m, err := b.e.Memory(0)
	if err != nil || m.Total < 76_000 || m.Used < 48_000 || m.Used > 50_000 {
		t.Errorf("memory: %+v, %v", m, err)
	}
	if err := b.e.Declare(toH2, Declared()); err != nil {
		t.Fatal(err)
	}
	wake := b.flood(0, 9) // the port is not looked at before something comes
	b.until(toH2, "it is served again", func(r Reading) bool { return r.Queues[3].Packets == 0 })
	wake()
	b.until(toH1, "all has gone", func(r Reading) bool { g := r.Groups[3]; return g.Held == 0 && g.Headroom == 0 && !g.Pausing })
	b.until(toH2, "all has gone", func(r Reading) bool { return r.Packets == 0 })
	if m, err := b.e.Memory(0); err != nil || m.Total != 0 || m.Used != 0 {
		t.Errorf("nothing waits and the memory is %+v, %v", m, err)
	}
}

// The marking curve over its range: within the bounds that chance has in one of a thousand such tests.
func TestMarksFollowTheCurve(t *testing.T) {
	const kmin, kmax, pmax, n = 20_000, 80_000, 0.3, 20_000
	b := lay(t, func(p *Port) { p.Queues[3].Marking = &Marking{Kmin: kmin, Kmax: kmax, Pmax: pmax} })
	if err := b.e.maps["departures"].Put(uint32(1), uint32(toH2)); err != nil { // the loopback's index, which test runs have
		t.Fatal(err)
	}
	packet := make([]byte, 200)
	packet[12], packet[13], packet[14], packet[15], packet[17], packet[23] = 8, 0, 0x45, 24<<2|2, 186, 17
	for _, queue := range []uint64{0, kmin, kmin + 1, 30_000, 50_000, 70_000, kmax, kmax + 1, 1 << 30} {
		var s portState
		s.Queue[3].Bytes = queue
		if err := b.e.maps["port_states"].Put(uint32(toH2), &s); err != nil {
			t.Fatal(err)
		}
		before := b.read(toH2).Queues[3]
		if _, err := b.e.Mark().Run(&ebpf.RunOptions{Data: packet, Repeat: n}); err != nil {
			t.Fatal(err)
		}
		// A repeated run sees the packet as the run before it left it: marked packets are not looked at again, so each is given anew.
		for seen := b.read(toH2).Queues[3].ECNFrames - before.ECNFrames; seen < 2000; seen = b.read(toH2).Queues[3].ECNFrames - before.ECNFrames {
			if _, err := b.e.Mark().Run(&ebpf.RunOptions{Data: packet}); err != nil {
				t.Fatal(err)
			}
		}
		after := b.read(toH2).Queues[3]
		seen, marked := float64(after.ECNFrames-before.ECNFrames), float64(after.Marked-before.Marked)
		p := 0.0
		switch {
		case queue > kmax:
			p = 1
		case queue > kmin:
			p = pmax * float64(queue-kmin) / (kmax - kmin)
		}
		if sigma := math.Sqrt(seen * p * (1 - p)); math.Abs(marked-seen*p) > 3.9*sigma+1e-9 {
			t.Errorf("%d bytes: %v of %v marked, not %v ± %.0f", queue, marked, seen, seen*p, 3.9*sigma)
		}
	}
}

// One lot decides what the curve in force and the right one would mark.
func TestPacketsThatAWrongCurveMarksOrDoesNotAreCounted(t *testing.T) {
	right := &Marking{Kmin: 20_000, Kmax: 80_000, Pmax: 0.5}
	b := lay(t, func(*Port) {})
	if err := b.e.maps["departures"].Put(uint32(1), uint32(toH2)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 200)
	packet[12], packet[13], packet[14], packet[15], packet[17], packet[23] = 8, 0, 0x45, 24<<2|2, 186, 17
	for name, c := range map[string]struct {
		now, right *Marking
		queue      uint64
		wrong      float64 // the share of packets
	}{
		"off, below":       {nil, right, 20_000, 0},
		"off, on the way":  {nil, right, 50_000, 0.25},
		"off, above":       {nil, right, 80_001, 1},
		"on, where it was": {&Marking{Kmin: 1, Kmax: 2, Pmax: 1}, nil, 1000, 1},
		"half as steep":    {&Marking{Kmin: 20_000, Kmax: 80_000, Pmax: 0.25}, right, 50_000, 0.125},
	} {
		p := Declared()
		p.Queues[3].Marking, p.Queues[3].Right = c.now, &Right{c.right}
		if err := errors.Join(b.e.Declare(toH2, p), b.e.Verify(toH2, p)); err != nil {
			t.Fatal(err)
		}
		s := portState{}
		s.Queue[3].Bytes = c.queue
		if err := b.e.maps["port_states"].Put(uint32(toH2), &s); err != nil {
			t.Fatal(err)
		}
		const n = 2000
		before := b.read(toH2).Queues[3]
		for range n {
			if _, err := b.e.Mark().Run(&ebpf.RunOptions{Data: packet}); err != nil {
				t.Fatal(err)
			}
		}
		wrong := float64(b.read(toH2).Queues[3].Mismarked - before.Mismarked)
		if sigma := math.Sqrt(n * c.wrong * (1 - c.wrong)); math.Abs(wrong-n*c.wrong) > 3.9*sigma+1e-9 {
			t.Errorf("%s: %v of %d are counted, not %v ± %.0f", name, wrong, n, n*c.wrong, 3.9*sigma)
		}
	}
}

// The port that a packet comes in by says what its priority is; what is sent against a pause that isn't obeyed is counted, and so is
// what has a watched DSCP. A memory that shrinks while frames wait loses none of them.
func TestTheIngressPortSaysThePriorityAndWhatIsWrongIsCounted(t *testing.T) {
	b := lay(t, func(*Port) {})
	stop := b.flood(24, 9)
	defer stop()
	b.until(toH2, "priority 3 goes", func(r Reading) bool { return r.Queues[3].TxFrames > 20 })
	p := Declared()
	p.Priority[24], p.Watched = 5, 1<<24
	if err := errors.Join(b.e.Declare(toH1, p), b.e.Verify(toH1, p)); err != nil {
		t.Fatal(err)
	}
	b.until(toH2, "it goes by priority 5", func(r Reading) bool { return r.Queues[5].TxFrames > 20 })
	if r := b.read(toH1).Groups; r[5].Watched == 0 || r[5].Watched != r[5].Frames || r[3].Watched != 0 || r[3].Frames == 0 {
		t.Errorf("%d of %d in priority 5, %d of %d in 3 are watched", r[5].Watched, r[5].Frames, r[3].Watched, r[3].Frames)
	}
	if n := b.read(toH2).Queues[5].Against; n != 0 {
		t.Errorf("nobody pauses, and %d frames went against it", n)
	}
	b.pause(5, 0xffff) // which isn't obeyed
	b.until(toH2, "priority 5 is sent against its pause", func(r Reading) bool { return r.Queues[5].Against > 20 })
	if err := b.e.Declare(toH1, Declared()); err != nil {
		t.Fatal(err)
	}
	b.until(toH2, "priority 3 goes again", func(r Reading) bool { return r.Queues[5].Packets == 0 && r.Queues[3].Packets > 0 })
	if err := b.e.SetMemory(0, 10_000); err != nil {
		t.Fatal(err)
	}
	stopped := b.until(toH1, "the smaller memory takes no more", func(r Reading) bool { return r.Groups[3].Headroom > 0 })
	if m, err := b.e.Memory(0); err != nil || m.Shared != 10_000 || m.Total == 0 {
		t.Errorf("memory: %+v, %v; the group is %+v", m, err, stopped.Groups[3])
	}
}

// A flow with a rate of its own keeps it while others use the rest of the line, begins behind what of it waits in the queue, and
// leaves without overtaking itself.
func TestAFlowIsPacedAndStaysInOrder(t *testing.T) {
	b := lay(t, func(p *Port) { p.Paced = true; p.Groups[3].Lossless = false })
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	var got net.PacketConn
	if err := b.w.Node("h2").Do(func() (err error) {
		got, err = net.ListenPacket("udp", net.JoinHostPort(h2.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if err := got.(*net.UDPConn).SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	var sent net.Conn
	if err := b.w.Node("h1").Do(func() (err error) { sent, err = net.Dial("udp", got.LocalAddr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	number := byte(0)
	send := func(n int) {
		for range n { // RC WRITE only, to QP 0x123456
			number++
			packet := make([]byte, 1000)
			packet[0], packet[5], packet[6], packet[7], packet[11] = 10, 0x12, 0x34, 0x56, number
			if _, err := sent.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer b.flood(8, 9)()
	b.until(toH2, "the line is full", func(r Reading) bool { return r.Queues[1].Bytes > 50_000 })
	send(40) // into the queue
	opened := Now()
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2.Addr.Addr(), QPN: 0x123456}, topo.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	send(60)
	read := func() FlowReading {
		r, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for deadline := time.Now().Add(20 * time.Second); read().TxFrames < 10; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the flow doesn't move: %+v", read())
		}
	}
	a, at := read(), Now()
	for read().TxFrames < 50 {
		time.Sleep(time.Millisecond)
	}
	// What the machine was late is made up for, so that never more has gone than the rate allows since the flow began.
	gone, now := read().TxBytes, Now()
	least, most := float64(gone-a.TxBytes)*8/(now-at).Seconds(), float64(gone)*8/(now-opened).Seconds()
	if least < 0.8e6 || most > 1.02e6 {
		t.Errorf("a flow of 1 Mb/s was given %.3f Mb/s, and altogether %.3f", least/1e6, most/1e6)
	}
	closed := false
	for deadline := time.Now().Add(20 * time.Second); !closed && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if closed, err = f.Close(); err != nil {
			t.Fatal(err)
		}
		if number < 130 {
			send(1)
		}
	}
	if !closed {
		t.Fatal("the flow never closed")
	}
	send(10)
	for want := byte(1); want <= number; want++ {
		buf := make([]byte, 2000)
		_ = got.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, _, err := got.ReadFrom(buf); err != nil {
			t.Fatalf("packet %d of %d: %v", want, number, err)
		}
		if buf[11] != want {
			t.Fatalf("packet %d came where %d was due", buf[11], want)
		}
	}
}

// A port that loses its carrier loses what waits, its accounts and flows with it, and carries on when it is back.
func TestAPortThatGoesDownForgetsWhatWaited(t *testing.T) {
	b := lay(t, func(p *Port) { p.Paced = true })
	defer b.flood(24, 9)()
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2.Addr.Addr(), QPN: 1}, 100*topo.Kbps)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		b.until(toH2, "the queue fills", func(r Reading) bool { return r.Queues[3].Bytes > 40_000 })
		l, _ := b.w.Node("leaf1").Link("eth1")
		set := func(up uint32) {
			err := b.w.Node("leaf1").Do(func() error {
				c, err := nl.Open(unix.NETLINK_ROUTE)
				if err != nil {
					return err
				}
				defer c.Close()
				var batch nl.Batch
				batch.Begin(unix.RTM_SETLINK, 0, "set link")
				batch.U8(unix.AF_UNSPEC)
				batch.Zero(3)
				batch.U32(uint32(l.Index))
				batch.U32(up)
				batch.U32(unix.IFF_UP)
				batch.End()
				return c.Send(&batch)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(0)
		b.until(toH1, "the accounts are empty", func(r Reading) bool { return r.Groups[3].Held == 0 && r.Groups[3].Headroom == 0 && !r.Groups[3].Pausing })
		if r := b.read(toH2); r.Packets != 0 || r.Queues[3].Packets != 0 || r.Queues[3].Bytes != 0 {
			t.Errorf("round %d: down, and what waits is %+v", round, r.Queues[3])
		}
		if r, err := f.Read(); err != nil || r.Packets != 0 {
			t.Errorf("round %d: of the flow waits %+v, %v", round, r, err)
		}
		set(unix.IFF_UP)
		if err := b.w.Restore("leaf1"); err != nil {
			t.Fatal(err)
		}
		before := b.read(toH2).Queues[3].TxFrames
		b.until(toH2, "it carries on", func(r Reading) bool { return r.Queues[3].TxFrames > before+50 })
	}
}
