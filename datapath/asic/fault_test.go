package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
)

func TestALimitedQueueIsServedWithItsRateAloneAndTheOthersAreNot(t *testing.T) {
	b := newBench(t, 3, 100*gig, func(c *Config) {
		lossy(c)
		c.Settings.Port.Queues[6].Rate = dcqcn.Rate(gig)
	})
	for range 5 {
		b.give(0, b.frame(1, 48, 976)) // 1,000 bytes with preamble, FCS and gap: 8 µs
	}
	for range 100 {
		b.give(2, b.frame(1, 26, 976))
	}
	b.run(ms)
	b.accounts()
	var limited, others []loop.Time
	for _, s := range b.sent {
		if s.tc>>2 == 48 {
			limited = append(limited, s.at)
		} else {
			others = append(others, s.at)
		}
	}
	if len(limited) != 5 || len(others) != 100 {
		t.Fatalf("%d and %d frames left", len(limited), len(others))
	}
	for i := range limited[1:] {
		// A frame that is on the line when the limit ends, 80 ns, goes on.
		if gap := limited[i+1].Sub(limited[0]) - loop.Duration(i+1)*8*us; gap < 0 || gap > 80*ns {
			t.Errorf("frame %d left %v off its time", i+1, gap)
		}
	}
	if last := others[99]; last > loop.Time(102*80*ns) {
		t.Errorf("the last of the others left at %v", last)
	}
	n := b.Settings()
	n.Port.Queues[6].Rate = 0
	b.give(0, b.frame(1, 48, 976))
	b.give(0, b.frame(1, 48, 976))
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.run(ms + 200*ns)
	if b.accounts(); b.Stats(1).Queues[6].TxFrames != 7 {
		t.Error("without its limit the queue is still limited")
	}
}

func TestWhatIsSentAgainstAnIgnoredPauseIsCounted(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) { c.Settings.Port.PFC.Obey, c.Settings.Port.PFC.Ignore = 0, 1<<3 })
	b.give(0, b.frame(1, 26, 1000))
	b.give(1, b.pfc(3, 1000))
	for range 3 {
		b.give(0, b.frame(1, 26, 1000))
	}
	b.give(0, b.frame(1, 0, 1000))
	b.run(2 * us)
	b.give(1, b.pfc(3, 0))
	b.give(0, b.frame(1, 26, 1000))
	b.run(ms)
	if s := b.Stats(1); s.TxFrames != 6 || s.Against[3] != 3 || s.RxPaused[3] != 0 || s.RxPause[3] != 2 {
		t.Errorf("%+v", s)
	}
	n := b.Settings()
	n.Port.PFC.Obey = 1 << 3
	if b.Apply(n) == nil {
		t.Error("a priority that is obeyed and ignored was taken")
	}
}

func TestWatchedDSCPsAreCountedAsTheyComeIn(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) { c.Settings.Port.Watched = 1<<26 | 1<<63 })
	for _, dscp := range []uint8{26, 0, 63, 26, 27} {
		b.give(0, b.frame(1, dscp, 1000))
	}
	if b.Stats(0).Watched != 3 || b.Stats(1).Watched != 0 {
		t.Errorf("%d and %d frames", b.Stats(0).Watched, b.Stats(1).Watched)
	}
}

func TestRoutesThatFollowLateSendIntoNothingUntilThenAndAreCounted(t *testing.T) {
	b := newBench(t, 4, 100*gig, func(c *Config) { c.Settings.RouteDelay = 10 * us })
	b.SetLink(1, false)
	b.give(0, b.frame(1, 26, 1000))
	if len(b.sent) != 1 || b.Stats(0).Drops[DropNoRoute] != 0 {
		t.Fatalf("%d frames were sent into nothing, drops %v", len(b.sent), b.Stats(0).Drops)
	}
	b.run(11 * us)
	b.give(0, b.frame(1, 26, 1000))
	if b.Stats(0).Drops[DropNoRoute] != 1 || b.Stats(1).LateRoutes != 1 {
		t.Fatalf("drops %v, %d late changes", b.Stats(0).Drops, b.Stats(1).LateRoutes)
	}
	b.SetLink(1, true)
	b.give(0, b.frame(1, 26, 1000))
	if b.Stats(0).Drops[DropNoRoute] != 2 {
		t.Error("the route is back at once")
	}
	n := b.Settings()
	n.RouteDelay = 0
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(1, 26, 1000))
	if b.Stats(0).Drops[DropNoRoute] != 2 || b.Stats(1).LateRoutes != 2 {
		t.Error("without a delay the route is still not back")
	}
	b.SetLink(1, false)
	b.give(0, b.frame(1, 26, 1000))
	if b.Stats(0).Drops[DropNoRoute] != 3 {
		t.Error("without a delay a link that is down still has a route")
	}
	b.run(ms)
	b.accounts()
}
