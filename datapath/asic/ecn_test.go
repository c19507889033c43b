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

// A switch's marking profile is its queue's: a frame that the map of its ingress port put into another queue than its DSCP's is marked by that one, and
// only if it is ECN-capable.
func TestAFrameIsMarkedByTheQueueThatItWasIn(t *testing.T) {
	for marking, want := range map[uint8]map[uint8]int{3: {24: 3}, 5: {26: 2}} { // the first is on the line at once
		b := newBench(t, 2, 100*gig, func(c *Config) {
			lossy(c)
			c.Settings.Port.Queues[marking].ECN = &dcqcn.Marking{}
			in := c.Settings.Port
			in.DSCP[26] = 5 // a wrong map, of what comes in by port 0 alone
			c.Settings.Ports = map[int]PortSettings{0: in}
		})
		for range 3 {
			for _, dscp := range []uint8{26, 24} {
				b.give(0, b.frame(1, dscp, 1000))
				plain := b.frame(1, dscp, 1000)
				plain.TrafficClass &^= 3
				b.give(0, plain)
			}
		}
		b.run(ms)
		marks, plain := map[uint8]int{}, 0
		for _, s := range b.sent {
			switch s.tc & 3 {
			case uint8(roce.CE):
				marks[s.tc>>2]++
			case uint8(roce.NotECT):
				plain++
			}
		}
		if marks[26] != want[26] || marks[24] != want[24] || plain != 6 || b.Stats(1).Queues[marking].Marked != uint64(want[24]+want[26]) {
			t.Errorf("queue %d marks, of DSCP 26 in queue 5 and 24 in 3: %v; %d of 6 that aren't ECN-capable stayed so", marking, marks, plain)
		}
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
