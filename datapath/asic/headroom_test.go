package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
)

// worstCase fills a group whose frames can't leave from a peer that sends the largest frames without a gap, while the largest
// frames go the other way too, so that the pause frame must wait for one. The phase moves the two against
// each other. It says how much headroom was used, and how many frames were dropped.
func worstCase(t *testing.T, rate uint64, delay loop.Duration, phase loop.Duration, headroom func(*Group)) (used int64, drops uint64) {
	w := newWorld(t, 1, 3, delay, func(c *Config) {
		for i := range c.Ports {
			c.Ports[i].Rate = rate
		}
		static(50_001, 0)(c)
		headroom(&c.Settings.Port.Groups[3])
		c.Settings.Buffer = 1 << 30
		stuck := c.Settings.Port
		stuck.Stuck = 1 << 3
		c.Settings.Ports = map[int]PortSettings{1: stuck}
	})
	largest := int32(frameLen(w.settings.Port.MTU))
	for i := range w.hosts {
		w.hosts[i].sizes = [2]int32{largest, largest}
	}
	w.hosts[0].dsts, w.hosts[0].dscps = []uint32{1}, []uint8{26}
	w.hosts[2].dsts, w.hosts[2].dscps = []uint32{0}, []uint8{0}
	w.hosts[2].start()
	w.at(50*us+phase, w.hosts[0].start)
	w.run(50*us + phase + 20*delay + 2*ms)
	w.accounts()
	g := &w.ports[0].groups[3]
	return g.headHigh, g.headroomDrops
}

// The bound holds for the worst phase, it isn't more than two frames too much, and a byte less than what was
// used is too little.
func TestTheHeadroomBoundHoldsAndIsNearlyReached(t *testing.T) {
	for _, c := range []struct {
		rate  uint64
		delay loop.Duration
	}{{10 * gig, us}, {100 * gig, 100 * ns}, {100 * gig, us}, {100 * gig, 10 * us}, {400 * gig, 2 * us}} {
		var most int64
		frame := loop.Duration(frameLen(9216)+24) * 8e9 / loop.Duration(c.rate)
		worst := loop.Duration(0)
		for i := range loop.Duration(16) {
			used, drops := worstCase(t, c.rate, c.delay, i*frame/16, func(g *Group) { g.AutoHeadroom = true })
			if drops != 0 {
				t.Fatalf("%d bit/s, %v: %d drops", c.rate, c.delay, drops)
			}
			if used > most {
				most, worst = used, i*frame/16
			}
		}
		bound := int64(Headroom(c.rate, c.delay, 0, 9216))
		t.Logf("%d bit/s, %v: used %d of %d", c.rate, c.delay, most, bound)
		if most > bound || most < bound-2*9300 {
			t.Errorf("%d bit/s, %v: the worst phase used %d bytes of headroom, the bound is %d", c.rate, c.delay, most, bound)
		}
		if _, drops := worstCase(t, c.rate, c.delay, worst, func(g *Group) { g.AutoHeadroom, g.Headroom = false, dcqcn.Bytes(most-1) }); drops == 0 {
			t.Errorf("%d bit/s, %v: %d bytes of headroom, and no drop", c.rate, c.delay, most-1)
		}
	}
}

// Nothing ever stands above a threshold that no headroom follows: the first frame that doesn't fit is the sign.
func TestAGroupWithoutHeadroomDropsWhatDoesNotFitAndPauses(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		static(1000, 200)(c)
		c.Settings.Port.Groups[3].AutoHeadroom = false
		c.Settings.Port.Stuck = 1 << 3
	})
	b.give(0, b.frame(1, 26, 900))
	if q := b.pauses(0); len(q) != 0 {
		t.Errorf("pauses %v with 900 of 1000 bytes held", q)
	}
	b.give(0, b.frame(1, 26, 500))
	if s := b.Stats(0).Groups[3]; s.HeadroomDrops != 1 || len(b.pauses(0)) != 1 {
		t.Errorf("%+v, pauses %v", s, b.pauses(0))
	}
	b.accounts()
}

func TestHeadroomDropsAreCountedAtTheGroupAndThePort(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		static(1000, 0)(c)
		g := &c.Settings.Port.Groups[3]
		g.AutoHeadroom, g.Headroom = false, 2500
		c.Settings.Port.Stuck = 1 << 3
	})
	for range 5 {
		b.give(0, b.frame(1, 26, 1000))
	}
	s := b.Stats(0)
	if s.Groups[3].Headroom != 2000 || s.Groups[3].HeadroomDrops != 2 || s.Drops[DropHeadroom] != 2 {
		t.Errorf("%+v", s)
	}
	b.accounts()
}
