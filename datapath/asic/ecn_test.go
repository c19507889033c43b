package asic

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// markAll marks whatever leaves a frame behind.
func markAll(c *Config) {
	for i := range c.Settings.Port.Queues {
		c.Settings.Port.Queues[i].ECN = &dcqcn.Marking{}
	}
}

// The queue is held at a depth, a frame joining it for every one that leaves: the share of marks at each depth lies within
// 4.4 standard deviations of the curve, which one depth in 100,000 doesn't by chance.
func TestMarksFollowTheCurveOnTheBytesThatADepartingFrameLeavesBehind(t *testing.T) {
	curve := dcqcn.Marking{Kmin: 40 * dcqcn.KB, Kmax: 200 * dcqcn.KB, Pmax: 0.2}
	for _, depth := range []int{0, 20, 40, 41, 60, 100, 140, 199, 200, 201, 300} {
		b := newBench(t, 2, 100*gig, func(c *Config) {
			lossy(c)
			c.Seed = uint64(depth)
			c.Settings.Port.Queues[3].ECN = &curve
		})
		n, marked := 0, 0
		b.quiet = true
		b.onSend = func(_ int, f *link.Frame, _ loop.Time) {
			if n++; f.ECN() == roce.CE {
				marked++
			}
		}
		b.give(0, b.frame(1, 26, 1000)) // on the line
		for range depth + 1 {
			b.give(0, b.frame(1, 26, 1000))
		}
		n, marked = 0, 0
		for n < 20000 {
			b.clock.Step() // one leaves, depth frames stay
			b.give(0, b.frame(1, 26, 1000))
		}
		p := float64(curve.Probability(dcqcn.Bytes(depth) * dcqcn.KB))
		if got, sigma := float64(marked)/float64(n), math.Sqrt(p*(1-p)/float64(n)); math.Abs(got-p) > 4.4*sigma {
			t.Errorf("%d KB left behind: %.4f marked, the curve says %.4f ± %.4f", depth, got, p, 4.4*sigma)
		}
		if q := b.Stats(1).Queues[3]; q.Marked != uint64(marked) {
			t.Errorf("%d marks counted, %d seen", q.Marked, marked)
		}
		b.accounts()
	}
}

func TestEachQueueHasItsOwnCurve(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		lossy(c)
		c.Settings.Port.Queues[3].ECN = &dcqcn.Marking{}
	})
	for range 3 {
		b.give(0, b.frame(1, 26, 1000))
		b.give(0, b.frame(1, 0, 1000))
	}
	b.run(ms)
	marks := map[uint8]int{}
	for _, s := range b.sent {
		if s.tc&3 == uint8(roce.CE) {
			marks[s.tc>>2]++
		}
	}
	if marks[26] != 1 || marks[0] != 0 { // the first left an empty queue, the last too
		t.Errorf("marks by DSCP %v", marks)
	}
}

func TestMarksComeFromTheSeed(t *testing.T) {
	play := func(seed uint64) (marks []bool) {
		b := newBench(t, 2, 100*gig, func(c *Config) {
			lossy(c)
			c.Seed = seed
			c.Settings.Port.Queues[3].ECN = &dcqcn.Marking{Kmax: 1000 * dcqcn.KB, Pmax: 1}
		})
		rng := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			b.give(0, b.frame(1, 26, 64+rng.Int32N(1000)))
		}
		b.run(ms)
		for _, s := range b.sent {
			marks = append(marks, s.tc&3 == 3)
		}
		return marks
	}
	same := func(a, b []bool) bool {
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return len(a) == len(b)
	}
	if !same(play(1), play(1)) {
		t.Error("one seed, two results")
	}
	if same(play(1), play(2)) {
		t.Error("two seeds, one result")
	}
}
