package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
)

func testPace(t *testing.T, profile string, line dcqcn.Rate) (*pace, *dcqcn.Reaction) {
	t.Helper()
	p, err := dcqcn.ProfileNamed(profile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dcqcn.NewReaction(p.Params, line)
	if err != nil {
		t.Fatal(err)
	}
	return &pace{rp: r.Flow(), rate: line}, r
}

// What a flow sends between two changes of its rate takes its rate exactly, over any number of
// packets, whatever the packet size and however the rate divides.
func TestALimitedFlowSendsAtItsRateExactly(t *testing.T) {
	for _, n := range []int32{60, 1082, 4166} {
		c, _ := testPace(t, "hpcc", 100*dcqcn.Gbps)
		c.onCNP(0)
		c.onCNP(10_000)
		rate := c.rp.Rate()
		if !c.rp.Limited() {
			t.Fatal("not limited")
		}
		now, packets := c.next(10_000), 0
		from := now
		for end := now.Add(800 * time.Microsecond); now < end; packets++ {
			c.sent(now, now, n)
			now = c.next(now)
		}
		if c.rp.Rate() != rate {
			t.Fatal("the rate changed on the way")
		}
		want := float64(packets) * float64(n+24) * 8e9 / float64(rate)
		if got := float64(now - from); got < want || got > want+1 {
			t.Errorf("%d packets of %d bytes at %v took %v ns, want %.1f", packets, n, rate, got, want)
		}
	}
}

func TestAFlowAtLineRateNeverWaitsAndOneThatIdledCatchesUpOnePacket(t *testing.T) {
	c, _ := testPace(t, "hpcc", 100*dcqcn.Gbps)
	for range 100 {
		c.sent(0, 0, 4166)
	}
	if at := c.next(0); at != 0 {
		t.Errorf("a flow without CNP waits until %v", at)
	}
	c.onCNP(0)
	start := loop.Time(700_000) // it idled
	if at := c.next(start); at > start {
		t.Errorf("after its idle time it waits until %v", at)
	}
	c.sent(start, start, 4166)
	if at := c.next(start); at > start {
		t.Errorf("the second packet waits until %v", at)
	}
	c.sent(start, start, 4166)
	gap := c.next(start) - start
	if want := c.rp.Rate().Time(4190); time.Duration(gap) < want-2 || time.Duration(gap) > want+2 {
		t.Errorf("the third packet comes after %v, want %v", time.Duration(gap), want)
	}
}

// What is owed when the rate changes is paid off at the old rate up to then, at the new one from then on.
func TestAChangeOfTheRateHoldsFromThenOn(t *testing.T) {
	c, _ := testPace(t, "paper", 100*dcqcn.Gbps) // nothing raises the rate for 55 µs
	c.onCNP(0)
	old := c.rp.Rate()
	c.sent(0, 0, 4166)
	half := loop.Time(c.next(0) / 2)
	c.onCNP(half)
	now := c.rp.Rate()
	if now >= old {
		t.Fatalf("the rate went from %v to %v", old, now)
	}
	owed := 4190*8 - float64(old)*float64(half)/1e9 // bits
	want := float64(half) + owed/float64(now)*1e9
	if got := float64(c.next(half)); got < want || got > want+2 {
		t.Errorf("the next packet starts at %v ns, want %.1f", got, want)
	}
}

// The byte counter raises the rate of a flow that sends, without any timer.
func TestWhatAFlowSendsRaisesItsRate(t *testing.T) {
	p, _ := dcqcn.ProfileNamed("paper")
	p.Params.RPGTimeReset, p.Params.RPGByteReset = 0, 20_000
	r, err := dcqcn.NewReaction(p.Params, 100*dcqcn.Gbps)
	if err != nil {
		t.Fatal(err)
	}
	c := &pace{rp: r.Flow(), rate: 100 * dcqcn.Gbps}
	c.onCNP(0)
	c.onCNP(1)
	before := c.rp.Rate()
	now := loop.Time(1)
	for range 6 {
		now = max(now, c.next(now))
		c.sent(now, now, 4166)
	}
	if c.rp.Rate() <= before {
		t.Errorf("after 25 KB the rate is %v, it was %v", c.rp.Rate(), before)
	}
}

// At 1 Mb/s a packet takes 33 ms, in which the rate recovers hundreds of times: the packet behind it must
// not wait for what the rate was.
func TestASlowFlowWakesWhenItsRateRises(t *testing.T) {
	c, r := testPace(t, "paper", 100*dcqcn.Gbps)
	now := loop.Time(0)
	for c.rp.Rate() > r.Params().RPGMinRate {
		c.onCNP(now)
		now = now.Add(5 * time.Microsecond)
	}
	c.sent(now, now, 4166)
	start, wakes := now, 0
	for {
		at := c.next(now)
		if at <= now {
			break
		}
		if w := c.wake(at); w <= now {
			t.Fatalf("wakes at %v, which is not after %v", w, now)
		} else {
			now = w
		}
		wakes++
	}
	// The model: in each interval between increases it pays off at that interval's rate.
	if wakes < 3 || now.Sub(start) > dcqcn.Mbps.Time(4190)*9/10 {
		t.Errorf("it woke %d times and waited %v; at its least rate it would have been %v", wakes, now.Sub(start), dcqcn.Mbps.Time(4190))
	}
}
