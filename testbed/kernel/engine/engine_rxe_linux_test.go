//go:build linux

package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

func TestAPortKeepsItsRateAndSharesItByWeight(t *testing.T) {
	b := lay(t, func(p *Port) { p.Queues[2].Weight = 3 })
	defer b.flood(8, 9)()  // priority 1
	defer b.flood(16, 9)() // priority 2
	full := func(r Reading) bool { return r.Queues[1].Bytes > 20_000 && r.Queues[2].Bytes > 20_000 }
	first := b.until(toH2, "both queues fill", full)
	at := Now()
	last := b.until(toH2, "a megabyte and a half is sent", func(r Reading) bool {
		return r.Queues[1].TxBytes+r.Queues[2].TxBytes-first.Queues[1].TxBytes-first.Queues[2].TxBytes > 15e5
	})
	took := Now() - at
	one, two := last.Queues[1].TxBytes-first.Queues[1].TxBytes, last.Queues[2].TxBytes-first.Queues[2].TxBytes
	frames := float64(last.Queues[1].TxFrames + last.Queues[2].TxFrames - first.Queues[1].TxFrames - first.Queues[2].TxFrames)
	// What the machine was late with is known, and makes up for the rest.
	carried := time.Duration((float64(one+two) + frames*frameOverhead) * 8 / float64(lineRate) * 1e9)
	if share := float64(carried+last.Late-first.Late) / float64(took); share < 0.95 || share > 1.05 {
		t.Errorf("the port carried %v of frames in %v, and lost %v", carried, took, last.Late-first.Late)
	}
	if ratio := float64(two) / float64(one); ratio < 2.7 || ratio > 3.3 {
		t.Errorf("weights 3 and 1 shared %.2f to 1", ratio)
	}
}

func TestWhatIsStrictGoesFirstAndLossyQueuesDropBeyondTheirReserve(t *testing.T) {
	b := lay(t, func(*Port) {})
	defer b.flood(8, 9)()
	b.until(toH2, "the lossy queue drops", func(r Reading) bool { return r.Queues[1].Drops > 100 && r.Queues[1].HighWater <= 200_000 })
	defer b.flood(48, 9)() // priority 6, faster than the line
	first := b.until(toH2, "the strict queue fills", func(r Reading) bool { return r.Queues[6].Bytes > 20_000 })
	// Between two readings the strict queue was never empty if less has gone than waited at the first.
	strict, weighted := uint64(0), uint64(0)
	b.until(toH2, "500 strict frames are sent while others of them wait", func(r Reading) bool {
		if r.Queues[6].TxBytes-first.Queues[6].TxBytes < first.Queues[6].Bytes {
			strict += r.Queues[6].TxFrames - first.Queues[6].TxFrames
			weighted += r.Queues[1].TxFrames - first.Queues[1].TxFrames
		}
		first = r
		return strict > 500
	})
	if weighted > 5 {
		t.Errorf("%d frames of the weighted queue went while strict ones waited", weighted)
	}
}

func TestAPauseHoldsItsPriorityUntilItEndsOrNobodyLooksAfterIt(t *testing.T) {
	b := lay(t, func(*Port) {})
	events, err := b.e.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	stop := b.flood(24, 9) // priority 3
	still := func(what string) {
		t.Helper()
		a := b.until(toH2, what, func(r Reading) bool { return r.Queues[3].Paused })
		b.until(toH2, what+": the queue grows", func(r Reading) bool { return r.Queues[3].Bytes >= 50_000 })
		if z := b.read(toH2); z.Queues[3].TxFrames > a.Queues[3].TxFrames+1 {
			t.Errorf("%s: %d frames went", what, z.Queues[3].TxFrames-a.Queues[3].TxFrames)
		}
	}
	goes := func(what string) {
		t.Helper()
		a := b.read(toH2)
		b.until(toH2, what, func(r Reading) bool { return r.Queues[3].TxFrames > a.Queues[3].TxFrames+5 })
	}
	goes("before any pause")
	b.pause(3, 0xffff)
	still("paused")
	b.pause(3, 0)
	goes("after XON")
	b.pause(4, 0xffff)
	goes("another priority's pause")
	b.pause(3, 0xffff) // 65,535 quanta at 10 Mb/s: 3.4 s
	goes("after the quanta have run out")
	if err := b.e.Declare(toH2, func() Port { p := Declared(); p.Rate = topo.Mbps; return p }()); err != nil {
		t.Fatal(err)
	}
	b.pause(3, 0xffff) // 34 s at 1 Mb/s
	still("paused for long")
	if err := b.e.Declare(toH2, Declared()); err != nil {
		t.Fatal(err)
	}
	b.renew(0)
	goes("nobody looks after it any more")
	stop()
	r := b.until(toH2, "all has gone", func(r Reading) bool { return r.Packets == 0 })
	if r.Queues[3].RxPauses != 4 || r.Queues[3].RxPaused != 3 || r.Queues[4].RxPauses != 1 {
		t.Errorf("pauses were counted as %d frames and %d pauses", r.Queues[3].RxPauses, r.Queues[3].RxPaused)
	}
	kinds := map[EventKind]int{}
	events.SetDeadline(time.Now().Add(time.Second))
	for {
		e, err := events.Next()
		if err != nil {
			break
		}
		kinds[e.Kind]++
	}
	if kinds[Obeyed] != 4 || kinds[XOFF] == 0 || kinds[XON] == 0 {
		t.Errorf("events: %v", kinds)
	}
}

// What waits in a lossless group is accounted to the port that it came in by, whichever it leaves by.
func TestALosslessGroupPausesAtItsThresholdAndDropsBeyondItsHeadroom(t *testing.T) {
	b := lay(t, func(p *Port) { p.Stuck = 1 << 3 })
	stop := b.flood(24, 9)
	r := b.until(toH1, "headroom is exceeded", func(r Reading) bool { return r.Groups[3].HeadroomDrops > 10 })
	stop()
	g := r.Groups[3]
	if g.Held < 48_000 || g.Held > 50_000 || g.Headroom < 28_000 || g.Headroom > 30_000 || g.XOFFs != 1 || !g.Pausing {
		t.Errorf("the group is %+v", g)
	}
	m, err := b.e.Memory(0)
	if err != nil || m.Total < 76_000 || m.Used < 48_000 || m.Used > 50_000 {
		t.Errorf("memory: %+v, %v", m, err)
	}
	if err := b.e.Declare(toH2, Declared()); err != nil {
		t.Fatal(err)
	}
	wake := b.flood(0, 9) // the port is not looked at before something comes
	b.until(toH2, "it is served again", func(r Reading) bool { return r.Queues[3].Packets == 0 })
	wake()
	b.until(toH1, "all has gone", func(r Reading) bool { g := r.Groups[3]; return g.Held == 0 && g.Headroom == 0 && !g.Pausing })
	b.until(toH2, "all has gone", func(r Reading) bool { return r.Packets == 0 })
	if m, err := b.e.Memory(0); err != nil || m.Total != 0 || m.Used != 0 {
		t.Errorf("nothing waits and the memory is %+v, %v", m, err)
	}
}

// The port that a packet comes in by says what its priority is; what is sent against a pause that isn't obeyed is counted, and so is
// what has a watched DSCP. A memory that shrinks while frames wait loses none of them.
func TestTheIngressPortSaysThePriorityAndWhatIsWrongIsCounted(t *testing.T) {
	b := lay(t, func(*Port) {})
	stop := b.flood(24, 9)
	defer stop()
	b.until(toH2, "priority 3 goes", func(r Reading) bool { return r.Queues[3].TxFrames > 20 })
	p := Declared()
	p.Priority[24], p.Watched = 5, 1<<24
	if err := errors.Join(b.e.Declare(toH1, p), b.e.Verify(toH1, p)); err != nil {
		t.Fatal(err)
	}
	b.until(toH2, "it goes by priority 5", func(r Reading) bool { return r.Queues[5].TxFrames > 20 })
	if r := b.read(toH1).Groups; r[5].Watched == 0 || r[5].Watched != r[5].Frames || r[3].Watched != 0 || r[3].Frames == 0 {
		t.Errorf("%d of %d in priority 5, %d of %d in 3 are watched", r[5].Watched, r[5].Frames, r[3].Watched, r[3].Frames)
	}
	if n := b.read(toH2).Queues[5].Against; n != 0 {
		t.Errorf("nobody pauses, and %d frames went against it", n)
	}
	b.pause(5, 0xffff) // which isn't obeyed
	b.until(toH2, "priority 5 is sent against its pause", func(r Reading) bool { return r.Queues[5].Against > 20 })
	if err := b.e.Declare(toH1, Declared()); err != nil {
		t.Fatal(err)
	}
	b.until(toH2, "priority 3 goes again", func(r Reading) bool { return r.Queues[5].Packets == 0 && r.Queues[3].Packets > 0 })
	if err := b.e.SetMemory(0, 10_000); err != nil {
		t.Fatal(err)
	}
	stopped := b.until(toH1, "the smaller memory takes no more", func(r Reading) bool { return r.Groups[3].Headroom > 0 })
	if m, err := b.e.Memory(0); err != nil || m.Shared != 10_000 || m.Total == 0 {
		t.Errorf("memory: %+v, %v; the group is %+v", m, err, stopped.Groups[3])
	}
}
