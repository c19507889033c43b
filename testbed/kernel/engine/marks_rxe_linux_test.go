//go:build linux

package engine

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/cilium/ebpf"
)

// departs has a frame that was in a queue of toH2 depart, which leaves so many bytes behind, and says whether it is marked. The queue is in its control
// buffer, as the discipline leaves it.
func (b *bed) departs(packet []byte, queue uint32, left uint64, times uint32) (marked bool) {
	b.t.Helper()
	var s portState
	s.Queue[queue].Bytes = left
	if err := b.e.maps["port_states"].Put(uint32(toH2), &s); err != nil {
		b.t.Fatal(err)
	}
	ctx, out := make([]byte, 68), make([]byte, len(packet)) // struct __sk_buff
	binary.NativeEndian.PutUint32(ctx[48:], 0x726f6280|queue)
	if _, err := b.e.Mark().Run(&ebpf.RunOptions{Data: packet, Context: ctx, DataOut: out, Repeat: times}); err != nil {
		b.t.Fatal(err)
	}
	return out[15]&3 == 3
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
		before := b.read(toH2).Queues[3]
		b.departs(packet, 3, queue, n)
		// A repeated run sees the packet as the run before it left it: marked packets are not looked at again, so each is given anew.
		for seen := b.read(toH2).Queues[3].ECNFrames - before.ECNFrames; seen < 2000; seen = b.read(toH2).Queues[3].ECNFrames - before.ECNFrames {
			b.departs(packet, 3, queue, 1)
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
		left       uint64
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
		const n = 2000
		before := b.read(toH2).Queues[3]
		for range n {
			b.departs(packet, 3, c.left, 1)
		}
		wrong := float64(b.read(toH2).Queues[3].Mismarked - before.Mismarked)
		if sigma := math.Sqrt(n * c.wrong * (1 - c.wrong)); math.Abs(wrong-n*c.wrong) > 3.9*sigma+1e-9 {
			t.Errorf("%s: %v of %d are counted, not %v ± %.0f", name, wrong, n, n*c.wrong, 3.9*sigma)
		}
	}
}

// What is marked, and by which curve, is the queue's that the frame was in, whatever its DSCP: a switch's marking profile is its queue's. What isn't
// ECN-capable is not marked.
func TestAFrameIsMarkedByTheQueueThatItWasIn(t *testing.T) {
	b := lay(t, func(p *Port) { p.Queues[5].Marking = &Marking{Kmin: 1, Kmax: 2, Pmax: 1} })
	if err := b.e.maps["departures"].Put(uint32(1), uint32(toH2)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		queue uint32
		ecn   byte
		marks bool
	}{
		{"in the queue that marks", 5, 2, true},
		{"ECT(1) in the queue that marks", 5, 1, true},
		{"not ECN-capable", 5, 0, false},
		{"in the queue of its own DSCP, which doesn't mark", 3, 2, false},
	} {
		packet := make([]byte, 200)
		packet[12], packet[13], packet[14], packet[15], packet[17], packet[23] = 8, 0, 0x45, 24<<2|c.ecn, 186, 17
		before := b.read(toH2).Queues[5].Marked
		marked := b.departs(packet, c.queue, 1000, 1)
		if r := b.read(toH2); marked != c.marks || r.Queues[5].Marked-before != b2u(c.marks) || r.Queues[3].Marked != 0 {
			t.Errorf("%s: marked %v, %d counted", c.name, marked, r.Queues[5].Marked-before)
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
