package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

func guarded(action Action) func(*Config) {
	return func(c *Config) {
		c.Settings.Watchdog = Watchdog{Detect: ms, Restore: 2 * ms, Action: action}
	}
}

// storms notes what the observer is told.
type storms struct {
	begins, ends []loop.Time
	drops        int
}

func (s *storms) Dropped(_ loop.Time, _ int, why Reason, _ *link.Frame) {
	if why == DropStorm {
		s.drops++
	}
}
func (s *storms) Paused(loop.Time, int, *roce.PFC) {}
func (s *storms) Storm(now loop.Time, _ int, _ uint8, begins bool) {
	if begins {
		s.begins = append(s.begins, now)
	} else {
		s.ends = append(s.ends, now)
	}
}

// stormed plays a peer that pauses priority 3 again and again from 0 to 5 ms, with a frame for it every
// 100 µs.
func stormed(t *testing.T, action Action) (*bench, *storms) {
	seen := new(storms)
	b := newBench(t, 2, 100*gig, func(c *Config) { guarded(action)(c); c.Observer = seen })
	for at := loop.Duration(0); at <= 5*ms; at += 100 * us {
		b.at(at, func() { b.give(1, b.pfc(3, 0xffff)) }) // 335 µs
	}
	for at := 50 * us; at <= 12*ms; at += 100 * us {
		b.at(at, func() { b.give(0, b.frame(1, 26, 1000)) })
	}
	b.run(20 * ms)
	b.accounts()
	return b, seen
}

func TestTheWatchdogDropsWhatAStormHoldsBackAndRestoresTheQueueAfterIt(t *testing.T) {
	b, seen := stormed(t, StormDrop)
	if len(seen.begins) != 1 || seen.begins[0] != loop.Time(ms) {
		t.Fatalf("storms %v, want one at 1ms", seen.begins)
	}
	over := loop.Time(5*ms) + 65535*512/100 + 2*loop.Time(ms)
	if len(seen.ends) != 1 || seen.ends[0] < over-2 || seen.ends[0] > over+2 {
		t.Errorf("storms ended at %v, want %v", seen.ends, over)
	}
	if seen.drops == 0 || len(b.sent)+seen.drops != 120 {
		t.Errorf("%d dropped, %d sent of 120", seen.drops, len(b.sent))
	}
	for _, s := range b.sent {
		if s.at < over {
			t.Errorf("a frame left at %v, in the storm", s.at)
		}
	}
	if s := b.Stats(1); s.Storms[3] != 1 || s.Restored[3] != 1 || s.Stormed != 0 || s.Drops[DropStorm] != uint64(seen.drops) {
		t.Errorf("%+v", s)
	}
}

func TestAStormThatIsEndedByAnXONIsOverThatMuchEarlier(t *testing.T) {
	seen := new(storms)
	b := newBench(t, 2, gig, func(c *Config) { guarded(StormForward)(c); c.Observer = seen })
	b.give(1, b.pfc(3, 0xffff)) // 33.6 ms
	for range 2 {
		b.give(0, b.frame(1, 26, 1000))
	}
	b.at(5*ms, func() { b.give(1, b.pfc(3, 0)) })
	b.run(40 * ms)
	if len(seen.begins) != 1 || len(seen.ends) != 1 || seen.ends[0] != loop.Time(7*ms) {
		t.Errorf("storms from %v to %v, want from 1ms to 7ms", seen.begins, seen.ends)
	}
}

func TestTheWatchdogCanForwardInSpiteOfAStorm(t *testing.T) {
	b, seen := stormed(t, StormForward)
	if len(seen.begins) != 1 || seen.drops != 0 || len(b.sent) != 120 {
		t.Fatalf("storms %v, %d dropped, %d of 120 sent", seen.begins, seen.drops, len(b.sent))
	}
	for i, s := range b.sent {
		if s.at < loop.Time(ms) {
			t.Errorf("frame %d left at %v, before the storm was found", i, s.at)
		}
	}
	if at := b.sent[15].at; at > loop.Time(2*ms) {
		t.Errorf("in the storm a frame of 1.55ms left at %v", at)
	}
}

func TestTheWatchdogCanOnlyTell(t *testing.T) {
	b, seen := stormed(t, StormAlert)
	if len(seen.begins) != 1 || len(seen.ends) != 1 || len(b.sent) != 120 {
		t.Fatalf("%+v, %d sent", seen, len(b.sent))
	}
	if b.sent[0].at < loop.Time(5*ms) {
		t.Errorf("a frame left at %v", b.sent[0].at)
	}
}

func TestAPauseWithBreaksOrWithoutWaitingFramesIsNoStorm(t *testing.T) {
	seen := new(storms)
	b := newBench(t, 3, 100*gig, func(c *Config) { guarded(StormDrop)(c); c.Observer = seen })
	for at := loop.Duration(0); at <= 20*ms; at += 400 * us {
		b.at(at, func() { b.give(1, b.pfc(3, 0xffff)); b.give(0, b.frame(1, 26, 1000)) }) // a break of 65 µs
		b.at(at, func() { b.give(2, b.pfc(3, 0xffff)) })
		b.at(at+200*us, func() { b.give(2, b.pfc(3, 0xffff)) }) // no break, and no frames
	}
	b.run(30 * ms)
	if len(seen.begins) != 0 {
		t.Errorf("storms at %v", seen.begins)
	}
}

func TestTurningTheWatchdogOffGivesAStormedQueueBackToPFC(t *testing.T) {
	b := newBench(t, 2, 100*gig, guarded(StormForward))
	for at := loop.Duration(0); at <= 20*ms; at += 100 * us {
		b.at(at, func() { b.give(1, b.pfc(3, 0xffff)); b.give(0, b.frame(1, 26, 1000)) })
	}
	b.run(3 * ms)
	if b.Stats(1).Stormed != 8 || b.Depth(1, 3) != 0 {
		t.Fatalf("stormed %08b, %d bytes wait", b.Stats(1).Stormed, b.Depth(1, 3))
	}
	n := b.Settings()
	n.Watchdog.Detect = 0
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.run(4 * ms)
	if b.Stats(1).Stormed != 0 || b.Depth(1, 3) < 9000 {
		t.Errorf("stormed %08b, %d bytes wait", b.Stats(1).Stormed, b.Depth(1, 3))
	}
	n.Watchdog.Detect = ms
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.run(6 * ms)
	if b.Stats(1).Stormed != 8 {
		t.Error("turned on again, it doesn't see the storm")
	}
}

func TestSettingsAppliedInAPauseDoNotMakeItYounger(t *testing.T) {
	seen := new(storms)
	b := newBench(t, 2, gig, func(c *Config) { guarded(StormForward)(c); c.Observer = seen })
	b.give(1, b.pfc(3, 0xffff)) // 33.6 ms
	b.give(0, b.frame(1, 26, 1000))
	b.at(ms/2, func() {
		if err := b.Apply(b.Settings()); err != nil {
			t.Error(err)
		}
	})
	b.run(3 * ms)
	if len(seen.begins) != 1 || seen.begins[0] != loop.Time(ms) {
		t.Errorf("storms found at %v, want after 1ms of pause", seen.begins)
	}
}
