package asic

import (
	"math"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// flow makes a frame of a flow over the set of ports 1 to n−1.
func (b *bench) flow(i int) *link.Frame {
	f := b.frame(spread0, 26, 1000)
	f.Flow = link.FlowHash(roce.Addr4([4]byte{10, 0, 0, 1}), roce.Addr4([4]byte{10, 0, 1, byte(i >> 8)}), 17, 49152+uint16(i), 4791)
	return f
}

func spreadBy(m Mode, n int) func(*Config) {
	return func(c *Config) { lossy(c); c.Settings.Balance.Mode = m; c.Settings.Balance.FlowletGap = 10 * us }
}

// Each of n ports gets its share of flows within 4.4 standard deviations of the binomial.
func TestECMPSpreadsFlowsEvenly(t *testing.T) {
	for _, n := range []int{2, 3, 4, 8, 16, 31} {
		b := newBench(t, n+1, 100*gig, lossy)
		const flows = 20000
		count := make([]int, n)
		b.quiet = true
		b.onSend = func(port int, _ *link.Frame, _ loop.Time) { count[port-1]++ }
		for i := range flows {
			b.give(0, b.flow(i))
		}
		b.run(10 * ms)
		p := 1 / float64(n)
		for i, got := range count {
			if sigma := math.Sqrt(flows * p * (1 - p)); math.Abs(float64(got)-flows*p) > 4.4*sigma {
				t.Errorf("%d ports: port %d got %d of %d flows, %.0f ± %.0f would do", n, i, got, flows, flows*p, 4.4*sigma)
			}
		}
	}
}

func TestAFlowKeepsItsPortAndItsOrderUnderECMP(t *testing.T) {
	b := newBench(t, 9, 100*gig, lossy)
	of := map[uint32]int{}
	next := map[uint32]roce.PSN{}
	b.quiet = true
	b.onSend = func(port int, f *link.Frame, _ loop.Time) {
		if was, ok := of[f.Flow]; ok && was != port {
			t.Fatalf("a flow went by ports %d and %d", was, port)
		}
		if of[f.Flow] = port; f.Packet.BTH.PSN != next[f.Flow] {
			t.Fatalf("PSN %d, want %d", f.Packet.BTH.PSN, next[f.Flow])
		}
		next[f.Flow]++
	}
	for psn := range roce.PSN(50) {
		for i := range 40 {
			f := b.flow(i)
			f.Packet.BTH.PSN = psn
			f.Len = 64 + int32((int(psn)*31+i*17)%8000)
			b.give(0, f)
		}
	}
	b.run(20 * ms)
	b.accounts()
}

// Flows that one switch sent over one of its four ports come to a second one: with the same seed it sends them all
// over one port, with another over all.
func TestSwitchesOfEqualSeedsPolarise(t *testing.T) {
	used := func(first, second uint64) int {
		seeded := func(seed uint64) func(*Config) {
			return func(c *Config) { lossy(c); c.Settings.Balance.HashSeed = &seed }
		}
		a, b := newBench(t, 5, 100*gig, seeded(first)), newBench(t, 5, 100*gig, seeded(second))
		ports := map[int]bool{}
		b.onSend = func(port int, _ *link.Frame, _ loop.Time) { ports[port] = true }
		i := 0
		a.onSend = func(port int, _ *link.Frame, _ loop.Time) {
			if port == 2 {
				b.give(0, b.flow(i))
			}
		}
		for i = range 200 {
			a.give(0, a.flow(i))
			a.run(loop.Duration(i) * us)
			b.run(loop.Duration(i) * us)
		}
		return len(ports)
	}
	if n := used(5, 5); n != 1 {
		t.Errorf("equal seeds: %d ports used", n)
	}
	if n := used(5, 6); n != 4 {
		t.Errorf("different seeds: %d of 4 ports used", n)
	}
}

func TestEverySwitchHasAHashOfItsOwnUnlessOneIsGiven(t *testing.T) {
	ports := func(seed uint64) (got [64]int) {
		b := newBench(t, 5, 100*gig, func(c *Config) { c.Seed = seed })
		for i := range got {
			b.give(0, b.flow(i))
			b.run(loop.Duration(i+1) * us)
			got[i] = b.sent[i].port
		}
		return got
	}
	if one := ports(1); one != ports(1) || one == ports(2) {
		t.Error("the hash doesn't follow the switch's seed")
	}
}

func TestSprayUsesAllPortsForOneFlow(t *testing.T) {
	for _, m := range []Mode{SprayRound, SprayRandom} {
		b := newBench(t, 5, 100*gig, spreadBy(m, 4))
		count := map[int]int{}
		b.onSend = func(port int, _ *link.Frame, _ loop.Time) { count[port]++ }
		for range 4000 {
			b.give(0, b.flow(1))
		}
		b.run(10 * ms)
		for port := 1; port <= 4; port++ {
			dev := math.Abs(float64(count[port] - 1000))
			if m == SprayRound && dev != 0 || dev > 4.4*math.Sqrt(4000*0.25*0.75) {
				t.Errorf("%s: %v", m, count)
			}
		}
	}
}

func TestSprayIsForThePrioritiesThatItIsSetFor(t *testing.T) {
	b := newBench(t, 5, 100*gig, func(c *Config) { spreadBy(SprayRound, 4)(c); c.Settings.Balance.Priorities = 1 << 0 })
	ports := map[int]bool{}
	b.onSend = func(port int, _ *link.Frame, _ loop.Time) { ports[port] = true }
	for range 100 {
		b.give(0, b.flow(1)) // priority 3
	}
	b.run(ms)
	if len(ports) != 1 {
		t.Errorf("a flow of another priority went over ports %v", ports)
	}
}

func TestAdaptiveRoutingTakesThePortWhereLeastWaits(t *testing.T) {
	b := newBench(t, 5, 100*gig, func(c *Config) {
		spreadBy(Adaptive, 4)(c)
		c.Settings.Port.PFC.Obey = 0xff
	})
	for _, port := range []uint32{1, 2, 4} {
		for range 20 {
			b.give(0, b.frame(port, 0, 1000))
		}
	}
	count := map[int]int{}
	b.onSend = func(port int, f *link.Frame, _ loop.Time) {
		if f.Dst == spread0 {
			count[port]++
		}
	}
	for range 10 {
		b.give(0, b.flow(1))
	}
	b.run(ms)
	if count[3] != 10 {
		t.Errorf("frames by port %v, all should go by 3", count)
	}
	b.give(3, b.pfc(3, 0xffff))
	for range 10 {
		b.give(0, b.flow(1))
	}
	b.run(2 * ms)
	if count[3] != 10 {
		t.Errorf("frames by port %v, none should go to one that is paused", count)
	}
}

func TestAFlowletStaysWhereItIsAndAFlowMovesAfterAGap(t *testing.T) {
	b := newBench(t, 5, 100*gig, spreadBy(Flowlet, 4))
	var ports []int
	b.onSend = func(port int, f *link.Frame, _ loop.Time) {
		if f.Dst == spread0 {
			ports = append(ports, port)
		}
	}
	b.give(0, b.flow(1))
	first := ports[0]
	for range 300 { // 24 µs of other traffic there
		b.give(0, b.frame(uint32(first), 26, 1000))
	}
	b.at(9*us, func() { b.give(0, b.flow(1)) })
	b.at(9*us, func() { b.give(0, b.flow(1)) })
	b.at(19*us+2, func() { b.give(0, b.flow(1)) })
	b.run(ms)
	if len(ports) != 4 {
		t.Fatalf("ports %v", ports)
	}
	last := ports[1] // it overtook what waits behind the others
	if last == first || ports[2] != first || ports[3] != first {
		t.Errorf("a flow went by %d, then in time by %v, after a gap by %d", first, ports[2:], last)
	}
}
