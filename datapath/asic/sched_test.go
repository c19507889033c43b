package asic

import (
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// lossy makes all priorities lossy, with room for all that a test wants to wait.
func lossy(c *Config) {
	c.Settings.Port.Groups = [8]Group{}
	for i := range c.Settings.Port.Queues {
		c.Settings.Port.Queues[i].Alpha = 8 * AlphaUnit
	}
}

// dscpOf is a DSCP of each priority in the default map.
var dscpOf = [8]uint8{0, 8, 16, 26, 32, 40, 48, 56}

func TestStrictQueuesGoFirstTheHighestOfThemBeforeTheOthers(t *testing.T) {
	b := newBench(t, 2, 100*gig, lossy)
	b.give(0, b.frame(1, 0, 9000)) // takes the line
	for _, prio := range []int{0, 6, 3, 7, 6, 7} {
		b.give(0, b.frame(1, dscpOf[prio], 1000))
	}
	b.run(10 * us)
	var got []uint8
	for _, s := range b.sent[1:] {
		got = append(got, b.settings.Port.DSCP.Of(s.tc))
	}
	if want := []uint8{7, 7, 6, 6}; string(got[:4]) != string(want) {
		t.Errorf("order of priorities %v, want %v and then the weighted ones", got, want)
	}
}

// Queues that always have something to send get their shares within what deficit round robin allows: a quantum
// and two frames (Shreedhar and Varghese, theorem on fairness).
func TestWeightedQueuesShareTheLineWithinATurn(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		weights := [6]int{}
		b := newBench(t, 2, 100*gig, func(c *Config) {
			lossy(c)
			for i := range weights {
				weights[i] = 1 + rng.IntN(20)
				c.Settings.Port.Queues[i].Weight = weights[i]
			}
		})
		most := []int32{9000, 300}[seed%2]
		fill := func() {
			for prio := range weights {
				for b.ports[1].queues[prio].frames.Len() < 3 {
					b.give(0, b.frame(1, dscpOf[prio], 64+rng.Int32N(most-63)))
				}
			}
		}
		var bytes [6]float64
		b.quiet = true
		b.onSend = func(_ int, f *link.Frame, _ loop.Time) { bytes[f.Priority] += float64(f.Len) }
		fill()
		bytes = [6]float64{}
		for range 20000 {
			b.clock.Step()
			fill()
		}
		for i := range weights {
			for k := range weights {
				bound := float64(quantum + 2*most) // of service per weight, between any two
				if d := bytes[i]/float64(weights[i]) - bytes[k]/float64(weights[k]); d > bound {
					t.Errorf("seed %d: weights %v got %v bytes: queues %d and %d differ by %.0f a weight, at most %.0f would do", seed, weights, bytes, i, k, d, bound)
				}
			}
		}
		b.accounts()
	}
}

func TestAQueueThatIsPausedLeavesItsShareToTheOthersAndSavesNoneUp(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		lossy(c)
		c.Settings.Port.PFC.Obey = 0xff
	})
	var order []uint8
	b.quiet = true
	b.onSend = func(_ int, f *link.Frame, _ loop.Time) { order = append(order, f.Priority) }
	fill := func(n int) {
		for prio := range uint8(2) {
			for b.ports[1].queues[prio].frames.Len() < n {
				b.give(0, b.frame(1, dscpOf[prio], 2048))
			}
		}
	}
	b.give(1, b.pfc(0, 0xffff))
	b.give(0, b.frame(1, dscpOf[1], 9000))
	fill(40)
	b.run(5 * us)
	if n := len(order); n < 20 {
		t.Fatalf("only %d frames left", n)
	}
	for _, prio := range order {
		if prio == 0 {
			t.Fatal("a paused frame left")
		}
	}
	fill(40)
	order = nil
	b.give(1, b.pfc(0, 0))
	b.run(9 * us)
	n := [2]int{}
	for _, prio := range order {
		n[prio]++
	}
	if d := n[0] - n[1]; n[0] < 5 || d < -1 || d > 1 {
		t.Errorf("after its pause a queue sent %d frames, its equal %d", n[0], n[1])
	}
}

// A queue whose every turn is cut short by a pause doesn't hoard what it missed.
func TestTurnsThatPausesCutShortDoNotAddUp(t *testing.T) {
	const weight = 50
	b := newBench(t, 2, 100*gig, func(c *Config) {
		lossy(c)
		c.Settings.Port.PFC.Obey = 0xff
		for i := range 3 {
			c.Settings.Port.Queues[i].Weight = weight
		}
	})
	row, longest, cuts := 0, 0, 0
	b.quiet = true
	b.onSend = func(_ int, f *link.Frame, _ loop.Time) {
		if row++; f.Priority != 0 || f.Kind != roce.KindRoCE {
			row = 0
		}
		longest = max(longest, row)
		if row == 1 && cuts < 20 {
			cuts++
			b.soon(func() { b.give(1, b.pfc(0, 200)) }) // 1 µs
		}
	}
	for b.clock.Now() < loop.Time(2*ms) {
		for prio := range uint8(3) {
			for b.ports[1].queues[prio].frames.Len() < 40 {
				b.give(0, b.frame(1, dscpOf[prio], 2048))
			}
		}
		b.clock.Step()
	}
	if most := weight*quantum/2048 + 9234/2048 + 1; cuts != 20 || longest > most || longest < weight {
		t.Errorf("after %d cut turns %d frames in a row, at most %d are a turn", cuts, longest, most)
	}
}

func TestAStuckQueueIsNotServedUntilItIsFreed(t *testing.T) {
	b := newBench(t, 2, 100*gig, lossy)
	n := b.Settings()
	n.Port.Stuck = 1 << 2
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(1, dscpOf[2], 1000))
	b.give(0, b.frame(1, dscpOf[1], 1000))
	b.run(ms)
	if len(b.sent) != 1 || b.settings.Port.DSCP.Of(b.sent[0].tc) != 1 || b.Depth(1, 2) != 1000 {
		t.Fatalf("sent %+v, %d bytes are stuck", b.sent, b.Depth(1, 2))
	}
	n.Port.Stuck = 0
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.run(2 * ms)
	if len(b.sent) != 2 {
		t.Error("what was stuck never left")
	}
	b.accounts()
}

func TestFramesWithoutECNCapabilityAreNeverMarked(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) { lossy(c); markAll(c) })
	for range 3 {
		f := b.frame(1, 0, 1000)
		f.TrafficClass &^= 3
		b.give(0, f)
	}
	b.run(ms)
	for _, s := range b.sent {
		if roce.ECN(s.tc&3) != roce.NotECT {
			t.Errorf("marked: %+v", s)
		}
	}
}
