//go:build linux

package kernel

import (
	"sync"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

// h1 ─┐
// h2 ─┼─ leaf1 ── h3     all links 2 Gb/s; ports are the engine's
func crowded(t *testing.T, cfg Config) *Fabric {
	return build(t, star(3, 2*topo.Gbps, 10*time.Microsecond), cfg)
}

// crowd has h1 and h2 write to h3 until all has arrived.
func crowd(t *testing.T, f *Fabric, timeout uint8) {
	t.Helper()
	var both sync.WaitGroup
	both.Go(func() { write(t, f, "h2", "h3", 1<<16, 4, 12, timeout) })
	write(t, f, "h1", "h3", 1<<16, 4, 12, timeout)
	both.Wait()
}

func readPort(t *testing.T, f *Fabric, node, port string) engine.Reading {
	t.Helper()
	r, err := f.engine.Read(f.numbers[topo.PortRef{Node: node, Port: port}])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// grown is what has been counted at the switch in between: on its port to h3, and of pauses towards its senders.
type grown struct {
	sent                      [8]uint64 // by priority
	marked, dropped, headroom uint64
	pauses                    uint64 // that began
	against                   uint64
	out                       engine.Reading
}

func growth(t *testing.T, f *Fabric) func() grown {
	t.Helper()
	read := func() (g grown) {
		g.out = readPort(t, f, "leaf1", "eth2")
		for i := range g.out.Queues {
			q := &g.out.Queues[i]
			g.sent[i], g.marked, g.dropped, g.against = q.TxFrames, g.marked+q.Marked, g.dropped+q.Drops, g.against+q.Against
		}
		for _, port := range []string{"eth0", "eth1"} {
			in := readPort(t, f, "leaf1", port)
			g.pauses += f.told(t, "leaf1", port).Began[3]
			g.headroom += in.Groups[3].HeadroomDrops
		}
		return g
	}
	a := read()
	return func() grown {
		b := read()
		for i := range b.sent {
			b.sent[i] -= a.sent[i]
		}
		b.marked, b.dropped, b.headroom, b.pauses, b.against = b.marked-a.marked, b.dropped-a.dropped, b.headroom-a.headroom, b.pauses-a.pauses, b.against-a.against
		return b
	}
}

// until waits until a strike has hit something.
func (s *strike) until(what string, is func(hits uint64) bool) {
	s.t.Helper()
	var n uint64
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if n = s.hits(); is(n) {
			return
		}
	}
	s.t.Fatalf("%s: never; last seen: %d hits", what, n)
}

func TestFaultsInPausesMarksAndPrioritiesAreFeltCountedAndHealed(t *testing.T) {
	xoff := topo.Bytes(30_000)
	f := crowded(t, Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{
		PFC: &fabric.PFCSettings{XOFF: 400_000}, ECN: &fabric.ECNSettings{KMin: 40_000, KMax: 400_000, PMax: 0.5}}}})
	g := growth(t, f)
	crowd(t, f, patient)
	sound := g()
	if sound.marked == 0 || sound.sent[3] == 0 || sound.sent[0] > sound.sent[3]/10 {
		t.Fatalf("without a fault: %+v", sound)
	}
	for _, c := range []struct {
		name string
		spec faults.Spec
		as   func(x grown, hits uint64) bool
	}{
		{"no marks", faults.Spec{Kind: faults.ECNOff, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{Priorities: faults.Priorities{3}}},
			func(x grown, hits uint64) bool { return x.marked == 0 && hits > 0 && hits < x.sent[3] }},
		{"marks at once", faults.Spec{Kind: faults.ECNThresholds, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{KMin: 1, KMax: 2, PMax: 1, Priorities: faults.Priorities{3}}},
			func(x grown, hits uint64) bool { return x.marked > sound.marked && hits > 0 && hits <= x.marked }},
		{"marks in another priority", faults.Spec{Kind: faults.ECNOff, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{Priorities: faults.Priorities{4}}},
			func(x grown, hits uint64) bool { return x.marked > 0 && hits == 0 }},
		{"early pauses", faults.Spec{Kind: faults.PFCThresholds, At: []string{"leaf1:eth0", "leaf1:eth1"}, SwitchKeys: faults.SwitchKeys{XOFF: &xoff}},
			func(x grown, hits uint64) bool {
				return x.pauses > sound.pauses && x.dropped+x.headroom == 0 && hits >= x.sent[3]
			}},
		{"no pauses", faults.Spec{Kind: faults.PFCOff, At: []string{"leaf1:eth0", "leaf1:eth1"}, SwitchKeys: faults.SwitchKeys{Half: faults.HalfSend}},
			func(x grown, _ uint64) bool { return x.pauses == 0 && x.sent[3] > 0 }},
		{"another priority", faults.Spec{Kind: faults.DSCPMap, At: []string{"leaf1:eth0", "leaf1:eth1"}, SwitchKeys: faults.SwitchKeys{DSCPMap: map[string]uint8{"26": 2}}},
			func(x grown, hits uint64) bool {
				return x.sent[3] == 0 && x.sent[2] > 0 && hits >= x.sent[2] && x.marked > 0 && x.marked == x.out.Queues[2].Marked
			}},
		{"a slow queue", faults.Spec{Kind: faults.CNPStarved, At: []string{"leaf1:eth2"}, Rate: 500 * topo.Mbps, SwitchKeys: faults.SwitchKeys{Priorities: faults.Priorities{3}}},
			func(x grown, hits uint64) bool { return hits >= x.sent[3] }},
	} {
		c.spec.Name = c.name
		s := inject(t, f, c.spec)
		g := growth(t, f)
		crowd(t, f, patient)
		got, hits := g(), s.hits()
		s.heal()
		t.Logf("%s: sent %v, marked %d, pauses %d, %d hits", c.name, got.sent, got.marked, got.pauses, hits)
		if !c.as(got, hits) {
			t.Errorf("%s: %+v, %d hits; without it %+v", c.name, got, hits, sound)
		}
		g = growth(t, f)
		crowd(t, f, patient)
		if again := g(); again.marked == 0 || again.sent[3] == 0 {
			t.Errorf("%s: healed, and %+v", c.name, again)
		}
	}
}

func TestAQueueThatIsNeverServedHoldsItsPacketsUntilItHeals(t *testing.T) {
	f := crowded(t, Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{XOFF: 400_000}}}})
	s := inject(t, f, faults.Spec{Name: "stuck", Kind: faults.StuckQueue, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{Priorities: faults.Priorities{3}}})
	g := growth(t, f)
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		write(t, f, "h1", "h3", 1<<16, 4, 8, patient)
	}()
	s.until("packets wait", func(n uint64) bool { return n > 20 })
	if x := g(); x.sent[3] > 0 {
		t.Errorf("%d packets were sent", x.sent[3])
	}
	s.heal()
	<-arrived
}

// A storm of pauses: the switch's port is silent, unless it doesn't obey, and a watchdog frees it, unless that is off.
func TestAStormIsObeyedIgnoredOrCutOff(t *testing.T) {
	f := crowded(t, Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{
		PFC: &fabric.PFCSettings{XOFF: 400_000}, Watchdog: &fabric.WatchdogSettings{Detect: 5 * time.Millisecond, Action: "forward"}}}})
	storms := func() (n uint64) {
		for _, k := range f.told(t, "leaf1", "eth2").Storms {
			n += k
		}
		return n
	}
	storm := faults.Spec{Name: "storm", Kind: faults.PFCStorm, At: []string{"h3:eth0"}}
	off := inject(t, f, faults.Spec{Name: "off", Kind: faults.WatchdogOff, At: []string{"leaf1"}})
	s := inject(t, f, storm)
	g := growth(t, f)
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		write(t, f, "h1", "h3", 1<<16, 4, 8, patient)
	}()
	s.until("pause frames", func(n uint64) bool { return n > 1 })
	for end := time.Now().Add(time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) { // three times what a watchdog takes, and the line carries ten times the packets in it
		if x := g(); x.sent[3] > 32 || storms() > 0 { // an agent that stands still for a second lets some go
			t.Fatalf("%d packets were sent, %d storms found", x.sent[3], storms())
		}
	}
	ignored := inject(t, f, faults.Spec{Name: "ignored", Kind: faults.PFCOff, At: []string{"leaf1:eth2"}, SwitchKeys: faults.SwitchKeys{Half: faults.HalfObey}})
	<-arrived
	if n := ignored.hits(); n < 8*16-32 {
		t.Errorf("%d packets were sent against the pause", n)
	}
	// Not in the order in which they came.
	off.heal()
	ignored.heal()
	write(t, f, "h2", "h3", 1<<16, 4, 8, patient)
	if storms() == 0 {
		t.Error("the watchdog is back and has found no storm")
	}
	s.heal()
	write(t, f, "h1", "h3", 1<<16, 4, 8, patient)
}

func TestLessMemoryAndSmallerSharesOfItLosePackets(t *testing.T) {
	f := crowded(t, Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{Memory: 4 << 20, Alpha: 8}}})
	for name, spec := range map[string]faults.Spec{
		"less memory":    {Kind: faults.BufferShrink, At: []string{"leaf1"}, SwitchKeys: faults.SwitchKeys{Buffer: 445_000}},
		"smaller shares": {Kind: faults.BufferAlpha, At: []string{"leaf1"}, SwitchKeys: faults.SwitchKeys{Alpha: 1.0 / 64}},
	} {
		g := growth(t, f)
		crowd(t, f, hasty)
		if x := g(); x.dropped > 0 {
			t.Fatalf("without a fault: %+v", x)
		}
		spec.Name = name
		s := inject(t, f, spec)
		g = growth(t, f)
		crowd(t, f, hasty)
		x, hits := g(), s.hits()
		s.heal()
		t.Logf("%s: %d sent, %d dropped, %d hits", name, x.sent[3], x.dropped, hits)
		if x.dropped == 0 || hits < x.sent[3] {
			t.Errorf("%s: %+v, %d hits", name, x, hits)
		}
	}
}

func TestFaultsOfDCQCNAreFeltCountedAndHealed(t *testing.T) {
	f := crowded(t, Config{
		NICs:     fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}},
		Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{}, ECN: &fabric.ECNSettings{KMin: 5_000, KMax: 100_000, PMax: 0.5}}},
	})
	cnps := func(do func()) (sent uint64) {
		before := f.told(t, "h3", "eth0").NIC
		do()
		after := f.told(t, "h3", "eth0").NIC
		return after.CNPSent - before.CNPSent
	}
	sound := cnps(func() { crowd(t, f, patient) })
	if sound == 0 {
		t.Fatal("without a fault no CNP is sent")
	}
	for _, c := range []struct {
		name string
		spec faults.Spec
		as   func(sent, hits uint64) bool
	}{
		{"none", faults.Spec{Kind: faults.CNPOff, At: []string{"h3:eth0"}}, func(sent, hits uint64) bool { return sent == 0 && hits > 0 }},
		{"one a second", faults.Spec{Kind: faults.CNPCap, At: []string{"h3:eth0"}, NICKeys: faults.NICKeys{Frequency: 1}}, func(sent, hits uint64) bool { return sent == 1 && hits > 0 }},
		{"other rates", faults.Spec{Kind: faults.DCQCNParams, At: []string{"h1:eth0"}, NICKeys: faults.NICKeys{DCQCN: map[string]faults.Knob{"rpg_ai_rate": "400Mbps"}}}, func(sent, hits uint64) bool { return sent > 0 && hits > 0 }},
		{"rare CNPs", faults.Spec{Kind: faults.DCQCNParams, At: []string{"h3:eth0"}, NICKeys: faults.NICKeys{DCQCN: map[string]faults.Knob{"min_time_between_cnps": "1s"}}}, func(sent, hits uint64) bool { return sent == 2 && hits == 2 }},
	} {
		c.spec.Name = c.name
		s := inject(t, f, c.spec)
		var hits uint64
		sent := cnps(func() { crowd(t, f, patient); hits = s.hits() })
		s.heal()
		t.Logf("%s: %d CNPs, %d hits; without it %d CNPs", c.name, sent, hits, sound)
		if !c.as(sent, hits) {
			t.Errorf("%s: %d CNPs, %d hits; without it %d CNPs", c.name, sent, hits, sound)
		}
	}
	if again := cnps(func() { crowd(t, f, patient) }); again == 0 {
		t.Error("healed, and no CNP is sent")
	}
}

// told is what the agent says of a port.
func (f *Fabric) told(t *testing.T, node, port string) agent.PortReading {
	t.Helper()
	r, err := f.agent.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r.Ports[f.numbers[topo.PortRef{Node: node, Port: port}]]
}
