package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// static makes priority 3's XOFF static, without a reserve.
func static(xoff, offset dcqcn.Bytes) func(*Config) {
	return func(c *Config) {
		g := &c.Settings.Port.Groups[3]
		g.Reserved, g.Alpha, g.XOFF, g.XONOffset = 0, 0, xoff, offset
	}
}

// pauses are the pause frames that a port sent, as quanta of priority 3.
func (b *bench) pauses(port int) (q []uint16) {
	for _, s := range b.sent {
		if s.port == port && s.kind == roce.KindPFC && s.pfc.Enabled&8 != 0 {
			q = append(q, s.pfc.Quanta[3])
		}
	}
	return q
}

func TestAGroupAtItsThresholdPausesItsPeerAndEndsThePauseTheOffsetBelow(t *testing.T) {
	b := newBench(t, 2, 100*gig, static(10_000, 4_000))
	b.give(0, b.frame(1, 26, 9000)) // takes the line for 722 ns
	for range 9 {
		b.give(0, b.frame(1, 26, 1000))
	}
	if q := b.pauses(0); len(q) != 0 {
		t.Fatalf("9 KB wait, and there is a pause: %v", q)
	}
	b.give(0, b.frame(1, 26, 1000))
	if q := b.pauses(0); len(q) != 1 || q[0] != 0xffff {
		t.Fatalf("10 KB wait, pauses %v", q)
	}
	for b.Depth(1, 3) > 7000 {
		b.clock.Step()
	}
	if q := b.pauses(0); len(q) != 1 {
		t.Fatalf("7 KB wait, pauses %v", q)
	}
	b.clock.Step()
	if q := b.pauses(0); len(q) != 2 || q[1] != 0 {
		t.Fatalf("6 KB wait, pauses %v", q)
	}
	b.run(ms)
	if s := b.Stats(0); s.XOFFs[3] != 1 || s.TxPause[3] != 2 || s.TxPaused[3] <= 0 || s.Groups[3].XOFFs != 1 || s.Groups[3].HighWater != 10_000 {
		t.Errorf("%+v", s)
	}
	b.accounts()
}

func TestADynamicThresholdIsAShareOfWhatIsLeft(t *testing.T) {
	b := newBench(t, 4, 100*gig, func(c *Config) {
		static(0, 1)(c)
		c.Settings.Port.Groups[3].Alpha = AlphaUnit / 4
		for i := range c.Settings.Port.Queues {
			c.Settings.Port.Queues[i].Reserved = 0
		}
		c.Settings.Buffer = dcqcn.Bytes(c.Settings.setAside(c.Ports)) + 100_000
		c.Settings.Port.Stuck = 1 << 3
	})
	var held int64
	for len(b.pauses(0)) == 0 {
		b.give(0, b.frame(1, 26, 500))
		held += 500
	}
	// held ≥ (100,000 − held)/4 at 20,000
	if held != 20_000 {
		t.Errorf("paused with %d bytes held, want 20000", held)
	}
	held = 0
	for len(b.pauses(2)) == 0 {
		b.give(2, b.frame(1, 26, 500))
		held += 500
	}
	if held != 16_000 { // held ≥ (80,000 − held)/4
		t.Errorf("a second group was paused with %d bytes held, want 16000", held)
	}
}

// One group's pause ends because others let go of the shared buffer, while its own frames can't leave.
func TestAPauseEndsWhenOthersMakeRoom(t *testing.T) {
	b := newBench(t, 4, 100*gig, func(c *Config) {
		static(0, 1)(c)
		c.Settings.Port.Groups[3].Alpha = AlphaUnit
		c.Settings.Port.Queues[0].Alpha = 8 * AlphaUnit
		for i := range c.Settings.Port.Queues {
			c.Settings.Port.Queues[i].Reserved = 0
		}
		c.Settings.Buffer = dcqcn.Bytes(c.Settings.setAside(c.Ports)) + 100_000
		c.Settings.Ports = map[int]PortSettings{1: c.Settings.Port}
		stuck := c.Settings.Port
		stuck.Stuck = 1 << 3
		c.Settings.Ports[1] = stuck
	})
	for range 81 { // one takes the line
		b.give(2, b.frame(3, 0, 1000))
	}
	for len(b.pauses(0)) == 0 {
		b.give(0, b.frame(1, 26, 1000))
	}
	if got := b.ports[0].groups[3].held; got != 10_000 {
		t.Fatalf("paused at %d, want 10000 of 20000 left", got)
	}
	for q := b.pauses(0); len(q) == 1; q = b.pauses(0) {
		if !b.clock.Step() {
			t.Fatal("the pause never ended")
		}
		b.accounts()
	}
	if got := b.ports[0].groups[3].held; got != 10_000 || b.Depth(3, 0) != 80_000-1000 {
		t.Errorf("the pause ended with %d bytes held and %d of the others waiting", got, b.Depth(3, 0))
	}
}

func TestAPauseIsRepeatedBeforeItIsOver(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) {
		static(1000, 0)(c)
		c.Settings.Port.PFC.Quanta = 1000 // 5.12 µs
		c.Settings.Port.Stuck = 1 << 3
	})
	b.give(0, b.frame(1, 26, 1500))
	b.run(100 * us)
	var last loop.Time
	for i, s := range b.sent {
		if s.pfc.Quanta[3] != 1000 {
			t.Fatalf("%+v", s)
		}
		if gap := s.at - last; i > 0 && gap > 5120*9/10 || gap < 2000 && i > 0 {
			t.Errorf("repeated after %v of a pause of 5.12µs", gap)
		}
		last = s.at
	}
	if len(b.sent) < 30 {
		t.Errorf("only %d pause frames", len(b.sent))
	}
}

func TestAPauseFrameGoesBehindTheFrameOnTheLineAndBeforeAllThatWait(t *testing.T) {
	b := newBench(t, 3, 100*gig, static(1000, 0))
	for range 3 {
		b.give(2, b.frame(0, 26, 9000)) // port 0's line is busy until 722 ns, two wait
	}
	b.give(1, b.frame(0, 48, 9000)) // of higher priority
	b.give(0, b.pfc(3, 0xffff))     // nor does a pause that the peer sent hold it
	b.give(0, b.frame(1, 26, 1000))
	b.give(0, b.frame(1, 26, 2000)) // waits behind it
	b.run(us)
	var at []loop.Time
	for _, s := range b.sent {
		if s.port == 0 && s.kind == roce.KindPFC {
			at = append(at, s.at)
		}
	}
	first := loop.Time((9000 + link.Overhead) * 8 / 100)
	if len(at) == 0 || at[0] < first || at[0] > first+8 {
		t.Errorf("pause frames left at %v, the frame on the line at %v", at, first)
	}
}

func TestAPauseHoldsItsPriorityUntilItRunsOutOrIsEnded(t *testing.T) {
	for _, early := range []bool{false, true} {
		b := newBench(t, 2, 100*gig, func(c *Config) { c.Settings.Port.PFC.Obey = 1 << 3 })
		b.give(1, b.pfc(3, 2000)) // 10.24 µs
		b.give(1, b.pfc(0, 2000)) // not obeyed
		b.give(0, b.frame(1, 26, 1000))
		b.give(0, b.frame(1, 0, 1000))
		if early {
			b.at(4*us, func() { b.give(1, b.pfc(3, 0)) })
		}
		b.run(100 * us)
		want := loop.Time(10240)
		if early {
			want = 4000
		}
		if len(b.sent) != 2 || b.sent[0].tc>>2 != 0 || b.sent[0].at > 100 {
			t.Fatalf("sent %+v", b.sent)
		}
		if got := b.sent[1].at - 82; got < want-1 || got > want+1 {
			t.Errorf("ended early %v: the paused frame began at %v, want %v", early, got, want)
		}
		if s := b.Stats(1); s.RxPaused[3] != loop.Duration(want) || s.RxPause[3] == 0 || s.RxPause[0] != 1 || s.RxPaused[0] != 0 {
			t.Errorf("ended early %v: paused for %v, want %v; frames %v", early, s.RxPaused[3], want, s.RxPause)
		}
	}
}

func Test8023xPausesAllPriorities(t *testing.T) {
	b := newBench(t, 2, 100*gig, nil)
	f := b.pfc(0, 0)
	f.Kind = roce.KindPause
	for i := range uint8(8) {
		f.PFC.Set(i, 1000)
	}
	b.give(1, f)
	for _, dscp := range dscpOf {
		b.give(0, b.frame(1, dscp, 1000))
	}
	if len(b.sent) != 0 {
		t.Fatalf("sent %+v", b.sent)
	}
	b.run(100 * us)
	if len(b.sent) != 8 || b.sent[0].at < 5120 {
		t.Errorf("sent %+v", b.sent)
	}
}

// A port may be told by settings to pause its whole link, and not at all.
func TestHowAPortPausesIsSettable(t *testing.T) {
	for _, mode := range []string{"pfc", "802.3x", "off"} {
		b := newBench(t, 2, 100*gig, func(c *Config) {
			static(1000, 0)(c)
			c.Settings.Port.PFC.SendPause = mode == "802.3x"
			if mode == "off" {
				c.Settings.Port.PFC.Send = 0
			}
			c.Settings.Port.Stuck = 1 << 3
		})
		b.give(0, b.frame(1, 26, 2000))
		want := map[string]roce.Kind{"pfc": roce.KindPFC, "802.3x": roce.KindPause}[mode]
		if mode == "off" {
			if len(b.sent) != 0 {
				t.Errorf("off: sent %+v", b.sent)
			}
			continue
		}
		if n := b.Stats(0).TxPause; n[3] != 1 || n[0] != b2i(mode == "802.3x") {
			t.Errorf("%s: priorities that were spoken of: %v", mode, n)
		}
		if len(b.sent) != 1 || b.sent[0].kind != want || mode == "802.3x" && b.sent[0].pfc.Enabled != 0xff {
			t.Errorf("%s: sent %+v", mode, b.sent)
		}
	}
}

func TestTurningPFCOffAndOnTellsThePeer(t *testing.T) {
	b := newBench(t, 2, 100*gig, func(c *Config) { static(1000, 0)(c); c.Settings.Port.Stuck = 1 << 3 })
	b.give(0, b.frame(1, 26, 2000))
	n := b.Settings()
	for _, send := range []uint8{0, 1 << 3} {
		n.Port.PFC.Send = send
		if err := b.Apply(n); err != nil {
			t.Fatal(err)
		}
	}
	if q := b.pauses(0); len(q) != 3 || q[0] == 0 || q[1] != 0 || q[2] == 0 {
		t.Errorf("pauses %v, want one, its end as PFC is turned off, and one as it is turned on", q)
	}
	b.accounts()
}

func b2i(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Quanta are times of the link's speed, whatever a fault leaves of what one end sends: else a slowed port would repeat its
// pauses after its peer has gone on.
func TestASlowedPortPausesAndObeysInTheLinksBitTimes(t *testing.T) {
	const quanta = 1000 // 5.12 µs at 100 Gb/s
	b := newBench(t, 3, 100*gig, func(c *Config) {
		static(10_000, 4_000)(c)
		c.Settings.Port.PFC.Quanta = quanta
	})
	b.SetRate(0, gig)
	b.SetRate(1, gig)
	if b.Rate(0) != gig || b.Rate(2) != 100*gig {
		t.Fatalf("rates %d and %d", b.Rate(0), b.Rate(2))
	}
	for range 30 {
		b.give(0, b.frame(1, 26, 1000)) // 8.2 µs each on port 1
	}
	b.run(40 * us)
	var at []loop.Time
	for _, s := range b.sent {
		if s.port == 0 && s.kind == roce.KindPFC {
			at = append(at, s.at)
		}
	}
	if len(at) < 10 {
		t.Fatalf("%d pause frames", len(at))
	}
	for i := range at[1:] {
		if gap := at[i+1].Sub(at[i]); gap > 5120*ns {
			t.Errorf("pause frames %v apart: the peer's pause is over after 5.12µs", gap)
		}
	}
	b.sent = nil
	b.give(2, b.frame(0, 26, 1000))
	b.give(0, b.pfc(3, quanta))
	b.run(45 * us)
	b.give(2, b.frame(0, 26, 1000))
	b.run(80 * us)
	if s := b.Stats(0); s.RxPaused[3] != 5120*ns {
		t.Errorf("a pause of %d quanta at 100 Gb/s lasted %v", quanta, s.RxPaused[3])
	}
}
