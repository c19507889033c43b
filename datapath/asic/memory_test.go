package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
)

// room leaves so much of the buffer to share, and nothing waits for a line.
func room(shared dcqcn.Bytes, tune func(*PortSettings)) func(*Config) {
	return func(c *Config) {
		p := &c.Settings.Port
		p.Groups = [8]Group{}
		for i := range p.Queues {
			p.Queues[i] = Queue{Weight: 1, Alpha: AlphaUnit}
		}
		p.Stuck = 0xff
		if tune != nil {
			tune(p)
		}
		c.Settings.Buffer = dcqcn.Bytes(c.Settings.setAside(c.Ports)) + shared
	}
}

// fill sends frames of 500 bytes to a port's queue until one is dropped, and says how many bytes wait.
func (b *bench) fill(port uint32, prio int) int64 {
	drops := func() (n uint64) {
		for i := range b.ports {
			n += b.ports[i].drops[DropEgress] + b.ports[i].drops[DropIngress]
		}
		return n
	}
	for before := drops(); drops() == before; {
		b.give(0, b.frame(port, dscpOf[prio], 500))
	}
	b.accounts()
	return b.Depth(int(port), prio)
}

// With k queues that want all they can get and equal alphas, each gets α·S/(1+kα) (Choudhury and Hahne, equation 5).
func TestQueuesShareTheBufferByTheirDynamicThresholds(t *testing.T) {
	for _, c := range []struct {
		alpha Alpha
		k     int
		each  int64
	}{{AlphaUnit, 1, 50_000}, {AlphaUnit, 3, 25_000}, {8 * AlphaUnit, 1, 88_889}, {AlphaUnit / 4, 4, 12_500}} {
		b := newBench(t, 6, 100*gig, room(100_000, func(p *PortSettings) {
			for i := range p.Queues {
				p.Queues[i].Alpha = c.alpha
			}
		}))
		// Filled in turns, so that none comes first.
		for range 400 {
			for k := range c.k {
				b.give(0, b.frame(uint32(k+1), 0, 500))
			}
		}
		for k := range c.k {
			if got := b.Depth(k+1, 0); got < c.each-1000 || got > c.each+500 {
				t.Errorf("alpha %v, %d queues: one holds %d, want %d", c.alpha, c.k, got, c.each)
			}
		}
		b.accounts()
	}
}

func TestAReserveIsTheQueuesOwnWhateverTheOthersHold(t *testing.T) {
	b := newBench(t, 4, 100*gig, room(50_000, func(p *PortSettings) {
		p.Queues[1].Reserved = 3000
		p.Queues[0].Alpha = 1000 * AlphaUnit
	}))
	if got := b.fill(1, 0); got < 49_500 {
		t.Fatalf("a greedy queue got %d of 50000", got)
	}
	if got := b.fill(2, 1); got != 3000 {
		t.Errorf("a queue with a reserve of 3000 got %d", got)
	}
	if got := b.fill(2, 2); got != 0 {
		t.Errorf("a queue without one got %d", got)
	}
	if m := b.Memory(); m.Used > m.Shared || m.HighWater != m.Total {
		t.Errorf("%+v", m)
	}
}

func TestNoFrameTakesMoreThanIsLeftWhateverItsThreshold(t *testing.T) {
	b := newBench(t, 4, 100*gig, room(1600, func(p *PortSettings) { p.Queues[0].Alpha = 8 * AlphaUnit }))
	b.give(0, b.frame(1, 0, 1000))
	b.give(0, b.frame(2, 0, 1000)) // 8 × 600 would allow it
	b.give(0, b.frame(2, 0, 600))
	if m := b.Memory(); m.Used != 1600 || b.Depth(2, 0) != 600 {
		t.Errorf("%+v, %d bytes wait", m, b.Depth(2, 0))
	}
}

func TestALossyGroupMayHaveAThresholdToo(t *testing.T) {
	b := newBench(t, 4, 100*gig, room(90_000, func(p *PortSettings) {
		p.Groups[0].Alpha = AlphaUnit / 8
		p.Queues[0].Alpha = 8 * AlphaUnit
	}))
	if got := b.fill(1, 0); got != 10_000 || b.Stats(0).Drops[DropIngress] != 1 || b.Stats(0).Groups[0].Bytes != 10_000 {
		t.Errorf("%d bytes wait, %+v", got, b.Stats(0))
	}
}

func TestAPortMayLimitWhatItsLossyQueuesHoldTogether(t *testing.T) {
	b := newBench(t, 4, 100*gig, room(1_000_000, func(p *PortSettings) { p.Limit = 20_000 }))
	first := b.fill(1, 0)
	if second := b.fill(1, 1); first != 20_000 || second != 0 {
		t.Errorf("%d and %d bytes wait", first, second)
	}
	if got := b.fill(2, 0); got != 20_000 {
		t.Errorf("another port holds %d", got)
	}
}

// A threshold on a lossless queue is a mistake that drops what PFC should have saved.
func TestAnEgressThresholdDropsLosslessTraffic(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		c.Settings.Port.Stuck = 1 << 3
		c.Settings.Port.Queues[3].LosslessAlpha = AlphaUnit / 64
	})
	for range 2000 {
		b.give(0, b.frame(1, 26, 1000))
	}
	if s := b.Stats(1); s.Queues[3].Drops == 0 || s.Drops[DropEgress] != s.Queues[3].Drops || len(b.pauses(0)) != 0 {
		t.Errorf("%+v", s.Queues[3])
	}
	b.accounts()
}

func TestABufferThatShrinksUnderItsContentTakesNothingMore(t *testing.T) {
	b := newBench(t, 4, 100*gig, room(100_000, nil))
	b.fill(1, 0)
	n := b.Settings()
	n.Buffer -= 80_000
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(2, 0, 500))
	if b.Depth(2, 0) != 0 || b.Depth(1, 0) < 49_000 {
		t.Errorf("%d and %d bytes wait", b.Depth(1, 0), b.Depth(2, 0))
	}
	b.accounts()
	n.Port.Stuck = 0
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.run(ms)
	if m := b.Memory(); m.Total != 0 || m.Used != 0 {
		t.Errorf("%+v", m)
	}
}

func TestHighWaterMarksStayUntilTheyAreReset(t *testing.T) {
	b := newBench(t, 2, 100*gig, nil)
	for range 11 {
		b.give(0, b.frame(1, 26, 1000))
	}
	b.run(ms)
	if s := b.Stats(1).Queues[3]; s.HighWater != 10_000 || s.Bytes != 0 || b.Memory().HighWater != 10_000 || b.Stats(0).Groups[3].HighWater != 10_000 {
		t.Errorf("%+v, %+v", s, b.Memory())
	}
	b.ResetHighWater()
	if s := b.Stats(1).Queues[3]; s.HighWater != 0 || b.Memory().HighWater != 0 || b.Stats(0).Groups[3].HighWater != 0 {
		t.Errorf("after a reset %+v, %+v", s, b.Memory())
	}
}

func TestDepthsAreSampledIntoAHistogram(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) { lossy(c); c.Settings.Sample = us })
	for range 101 {
		b.give(0, b.frame(1, 0, 1226)) // 100 ns each
	}
	b.run(100 * us)
	d := b.Depths(1, 0)
	// At 1, 2, … 9 µs 90, 80, … 10 frames wait, or one less or more; then none.
	if d.Samples != 100 || d.Max < 89*1226 || d.Max > 91*1226 {
		t.Errorf("%d samples, most %d", d.Samples, d.Max)
	}
	if want := 450 * 1226 / 100.0; d.Mean() < want*0.97 || d.Mean() > want*1.03 {
		t.Errorf("mean %v, want about %v", d.Mean(), want)
	}
	for q, frames := range map[float64]int64{0.5: 0, 0.89: 0, 0.915: 10, 0.95: 40, 1: 90} {
		if got, want := d.Quantile(q), frames*1226; got < want*95/100-1226 || got > want*113/100+1226 {
			t.Errorf("quantile %v is %d, want about %d", q, got, want)
		}
	}
	b.ResetDepths()
	if d := b.Depths(1, 0); d.Samples != 0 || d.Mean() != 0 || d.Quantile(0.99) != 0 {
		t.Errorf("after a reset %+v", d)
	}
}

func TestEveryDepthIsInItsBucketAndNoBucketIsWide(t *testing.T) {
	for n := int64(0); n < 1<<40; n += 1 + n/37 {
		i := bucketOf(n)
		end, before := bucketEnd(i), int64(-1)
		if i > 0 {
			before = bucketEnd(i - 1)
		}
		if i >= depthBuckets || n > end || n <= before {
			t.Fatalf("%d is in bucket %d of %d, which holds %d to %d", n, i, depthBuckets, before+1, end)
		}
		if width := end - before; width > 1 && width > (before+1)/8 {
			t.Fatalf("bucket %d holds %d to %d", i, before+1, end)
		}
	}
}
