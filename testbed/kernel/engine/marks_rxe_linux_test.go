//go:build linux

package engine

import (
	"errors"
	"math"
	"testing"

	"github.com/cilium/ebpf"
)

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
