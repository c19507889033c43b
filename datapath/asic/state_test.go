package asic

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

func TestWhatWaitsAtALinkThatGoesDownIsDroppedAndRoutesGoOverTheOthers(t *testing.T) {
	b := newBench(t, 4, 100*gig, lossy)
	for range 5 {
		b.give(0, b.frame(1, 26, 1000))
	}
	b.SetLink(1, false)
	if s := b.Stats(1); s.Up || s.Drops[DropDown] != 4 || s.Queues[3].Frames != 0 {
		t.Errorf("%+v", s)
	}
	b.give(0, b.frame(1, 26, 1000)) // the only route is down
	b.give(1, b.frame(2, 26, 1000)) // nothing can come from there
	if b.Stats(0).Drops[DropNoRoute] != 1 || b.Stats(1).Drops[DropDown] != 5 {
		t.Errorf("drops %v, %v", b.Stats(0).Drops, b.Stats(1).Drops)
	}
	for i := range 50 {
		b.give(0, b.flow(i))
	}
	b.run(ms)
	b.accounts()
	if n := len(b.sent); n != 51 {
		t.Errorf("%d frames left, want the one on the line and 50 over the other ports", n)
	}
	b.SetLink(1, true)
	b.give(0, b.frame(1, 26, 1000))
	if s := b.sent[len(b.sent)-1]; s.port != 1 {
		t.Error("up again, it sends nothing")
	}
	b.SetLink(1, false)
	b.SetLink(2, false)
	b.SetLink(3, false)
	b.give(0, b.flow(1))
	if b.Stats(0).Drops[DropNoRoute] != 2 {
		t.Error("a set without a live member leads somewhere")
	}
	b.accounts()
}

func TestALinkThatGoesDownTakesItsPausesAlong(t *testing.T) {
	b := newBench(t, 3, 100*gig, func(c *Config) { static(1000, 0)(c); c.Settings.Port.Stuck = 1 << 3 })
	b.give(0, b.frame(1, 26, 2000)) // port 0 pauses its peer
	b.give(2, b.pfc(3, 0xffff))     // port 2 is paused
	b.SetLink(0, false)
	b.SetLink(2, false)
	b.sent = nil
	b.run(10 * ms)
	if len(b.sent) != 0 {
		t.Fatalf("a link that is down repeats its pause: %+v", b.sent)
	}
	b.SetLink(0, true)
	b.SetLink(2, true)
	n := b.Settings()
	n.Port.Stuck = 0
	if err := b.Apply(n); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(2, 26, 500))
	b.run(11 * ms)
	for _, s := range b.sent {
		if s.kind != roce.KindRoCE {
			t.Errorf("sent %+v", b.sent)
		}
	}
	if len(b.sent) != 2 {
		t.Errorf("sent %+v, want what was stuck, and a frame by the port that was paused", b.sent)
	}
	b.accounts()
}

func TestASwitchThatIsOffDropsAllAndForgetsAll(t *testing.T) {
	b := newBench(t, 3, 100*gig, func(c *Config) { static(2000, 0)(c) })
	for range 5 {
		b.give(0, b.frame(1, 26, 1000))
	}
	b.sent = nil
	b.SetPower(false)
	b.give(0, b.frame(1, 26, 1000))
	b.give(1, b.pfc(3, 0xffff))
	b.run(ms)
	if len(b.sent) != 0 || b.Memory().Total != 0 {
		t.Fatalf("off, it sent %+v and holds %+v", b.sent, b.Memory())
	}
	b.SetPower(true)
	b.give(0, b.frame(1, 26, 1000))
	if len(b.sent) != 1 {
		t.Error("on again, it doesn't forward")
	}
	b.accounts()
}

func TestRoutesAreReplacedBetweenTwoFrames(t *testing.T) {
	b := newBench(t, 4, 100*gig, lossy)
	b.give(0, b.frame(1, 26, 1000))
	var r Routes
	r.To(1, r.AddSet(3))
	if err := b.SetRoutes(r); err != nil {
		t.Fatal(err)
	}
	b.give(0, b.frame(1, 26, 1000))
	b.give(0, b.frame(2, 26, 1000))
	if len(b.sent) != 2 || b.sent[0].port != 1 || b.sent[1].port != 3 || b.Stats(0).Drops[DropNoRoute] != 1 {
		t.Errorf("sent %+v, drops %v", b.sent, b.Stats(0).Drops)
	}
	r.To(1, r.AddSet(7))
	if err := b.SetRoutes(r); err == nil || !strings.Contains(err.Error(), "sw: a route leads to port 7 of 4") {
		t.Errorf("%v", err)
	}
	b.give(0, b.frame(1, 26, 1000))
	b.run(ms)
	if b.sent[len(b.sent)-1].port != 3 {
		t.Error("refused routes changed something")
	}
}

func TestFramesLongerThanTheMTUOfTheirWayAreDropped(t *testing.T) {
	b := newBench(t, 3, 100*gig, func(c *Config) {
		small := c.Settings.Port
		small.MTU = 1500
		c.Settings.Ports = map[int]PortSettings{1: small}
	})
	b.give(0, b.frame(1, 26, 1500+14))
	b.give(0, b.frame(1, 26, 1500+14+5))
	b.give(0, b.frame(2, 26, 1500+14+5))
	if b.Stats(1).Drops[DropMTU] != 1 || len(b.sent) != 2 {
		t.Errorf("sent %+v", b.sent)
	}
}

func TestATTLThatRunsOutEndsALoop(t *testing.T) {
	b := newBench(t, 2, 100*gig, nil)
	f := b.frame(1, 26, 1000)
	f.TTL = 1
	b.give(0, f)
	if b.Stats(0).Drops[DropTTL] != 1 || len(b.sent) != 0 {
		t.Error("it went on")
	}
}

// Settings change at random under load, links and the switch go down and up: nothing may be lost uncounted.
func TestAccountsHoldWhileEverythingChanges(t *testing.T) {
	for seed := range uint64(40) {
		w := randomWorld(t, seed)
		rng := rand.New(rand.NewPCG(seed, 5))
		w.loose, w.onSend = true, nil // hosts hear of no pause: what is lossless may be dropped
		for at := 5 * us; at < 300*us; at += 5 * us {
			w.at(at, func() { w.disturb(rng) })
		}
		w.play(300 * us)
		w.stop = true
		w.SetPower(true)
		n := w.Settings()
		n.Port.Stuck, n.Ports, n.Buffer = 0, nil, 1<<30
		n.Watchdog.Detect = 0
		if err := w.Apply(n); err != nil {
			t.Fatal(err)
		}
		for i := range w.hosts {
			w.SetLink(i, true)
			for prio := range uint8(8) {
				w.give(i, w.pfc(prio, 0))
			}
		}
		w.run(100 * ms)
		w.accounts()
		if m := w.Memory(); m.Total != 0 || m.Used != 0 || len(w.memory.paused) != 0 {
			t.Fatalf("seed %d: after draining %+v, %d groups pause", seed, m, len(w.memory.paused))
		}
	}
}

// disturb changes something.
func (w *world) disturb(rng *rand.Rand) {
	port := rng.IntN(len(w.hosts))
	n := w.Settings()
	p := n.PortSettings(port)
	switch rng.IntN(9) {
	case 0:
		w.SetLink(port, !w.ports[port].up)
		return
	case 1:
		w.SetPower(!w.on)
		return
	case 2:
		p.Stuck = uint8(rng.Uint32())
	case 3:
		p.PFC.Send, p.PFC.Obey = uint8(rng.Uint32()), uint8(rng.Uint32())
	case 4:
		for i := range p.Groups {
			g := &p.Groups[i]
			g.Lossless, g.Alpha, g.XOFF, g.Reserved = rng.IntN(2) == 0, AlphaUnit>>rng.IntN(8), 5000, dcqcn.Bytes(rng.IntN(20000))
		}
	case 5:
		for i := range p.QueueOf {
			p.QueueOf[i], p.GroupOf[i] = uint8(rng.IntN(8)), uint8(rng.IntN(8))
		}
	case 6:
		n.Watchdog = Watchdog{Detect: us * loop.Duration(1+rng.IntN(50)), Restore: 10 * us, Action: []Action{StormDrop, StormForward, StormAlert}[rng.IntN(3)]}
	case 7:
		n.Buffer = dcqcn.Bytes(n.setAside(w.config)) + dcqcn.Bytes(rng.IntN(100_000))
	case 8:
		n.Balance.Mode = []Mode{ECMP, SprayRound, SprayRandom, Adaptive, Flowlet}[rng.IntN(5)]
	}
	ports := map[int]PortSettings{port: p}
	for i, old := range n.Ports {
		if i != port {
			ports[i] = old
		}
	}
	n.Ports = ports
	var wrong *SettingError
	if err := w.Apply(n); err != nil && (!errors.As(err, &wrong) || wrong.Field != "buffer") {
		w.t.Fatal(err)
	}
}
