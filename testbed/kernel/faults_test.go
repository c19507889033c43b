//go:build linux

package kernel

import (
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// towardsH2 is a fault on what the switch sends to the second host.
//
//	h1 ── leaf1 ──(here)── h2
func towardsH2(kind faults.Kind, set func(*faults.Spec)) faults.Spec {
	s := faults.Spec{Name: "test-" + string(kind), Kind: kind, At: []string{"leaf1:eth1"}, Direction: faults.Egress}
	if set != nil {
		set(&s)
	}
	return s
}

// delta is how much a counter of a NIC has grown.
func delta(t *testing.T, before, after readings, name, node string) float64 {
	t.Helper()
	return after.of(t, name, node, "eth0") - before.of(t, name, node, "eth0")
}

// Every fault is applied, read back, felt, counted, healed and gone, on one fabric, so that each
// also shows that the one before left nothing behind.
func TestEveryFaultIsAppliedFeltCountedAndHealed(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{Seed: 7})
	const size, count = 1 << 16, 60
	const packets = size / 4096 * count

	for _, c := range []struct {
		spec faults.Spec
		felt func(t *testing.T, hits uint64, before, after readings)
	}{
		{towardsH2(faults.Loss, func(s *faults.Spec) { s.Probability = 0.03 }), lost},
		{towardsH2(faults.Loss, func(s *faults.Spec) { s.EveryNth = 97 }), func(t *testing.T, hits uint64, before, after readings) {
			lost(t, hits, before, after)
			if sent := uint64(delta(t, before, after, "sent_pkts", "h1")); hits != sent/97 {
				t.Errorf("every 97th of %d packets: %d were hit", sent, hits)
			}
		}},
		{towardsH2(faults.Loss, func(s *faults.Spec) {
			s.GE = &faults.GilbertElliott{P: 0.01, R: 0.3, LossBad: 0.7}
		}), lost},
		{towardsH2(faults.Corrupt, func(s *faults.Spec) { s.Probability = 0.02 }), lost},
		{towardsH2(faults.Duplicate, func(s *faults.Spec) { s.Probability = 0.05 }), func(t *testing.T, hits uint64, before, after readings) {
			sent, got := delta(t, before, after, "sent_pkts", "h1"), delta(t, before, after, "rcvd_pkts", "h2")
			if got != sent+float64(hits) {
				t.Errorf("%v packets were sent, %d doubled, and %v came", sent, hits, got)
			}
			if n := delta(t, before, after, "duplicate_request", "h2"); n < float64(hits) {
				t.Errorf("%d packets were doubled and the responder saw %v duplicates", hits, n)
			}
		}},
		{towardsH2(faults.Reorder, func(s *faults.Spec) { s.Probability, s.Delay = 0.02, 200*time.Microsecond }), func(t *testing.T, hits uint64, before, after readings) {
			if n := delta(t, before, after, "out_of_seq_request", "h2"); n == 0 {
				t.Errorf("%d packets overtook others and the responder noticed nothing", hits)
			}
		}},
		{towardsH2(faults.Delay, func(s *faults.Spec) { s.Delay = 300 * time.Microsecond }), func(t *testing.T, hits uint64, before, after readings) {
			if sent := uint64(delta(t, before, after, "sent_pkts", "h1")); hits != sent {
				t.Errorf("%d packets were sent and %d delayed", sent, hits)
			}
		}},
		{towardsH2(faults.Delay, func(s *faults.Spec) {
			s.Delay, s.Jitter, s.Distribution = 300*time.Microsecond, 100*time.Microsecond, "pareto"
		}), func(t *testing.T, hits uint64, before, after readings) {
			if n := delta(t, before, after, "out_of_seq_request", "h2"); n != 0 {
				t.Errorf("jitter reordered: %v packets came out of sequence", n)
			}
		}},
		{towardsH2(faults.RateLimit, func(s *faults.Spec) { s.Rate = 500 * topo.Mbps }), func(t *testing.T, hits uint64, before, after readings) {
			if sent := uint64(delta(t, before, after, "sent_pkts", "h1")); hits != sent {
				t.Errorf("%d packets were sent and %d went through the slower shaper", sent, hits)
			}
		}},
	} {
		name := string(c.spec.Kind)
		if c.spec.EveryNth > 0 {
			name += "-nth"
		} else if c.spec.GE != nil {
			name += "-bursts"
		} else if c.spec.Jitter > 0 {
			name += "-jitter"
		}
		t.Run(name, func(t *testing.T) {
			s := inject(t, f, c.spec)
			before := collect(t, f)
			took := write(t, f, "h1", "h2", size, 2, count, hasty)
			hits, after := s.hits(), collect(t, f)
			s.heal()
			if hits == 0 {
				t.Fatal("it hit nothing")
			}
			if again := s.hits(); again != hits {
				t.Errorf("%d hits before healing and %d after", hits, again)
			}
			c.felt(t, hits, before, after)
			t.Logf("%d hits, %v, %v packets of %d sent", hits, took.Round(time.Millisecond), delta(t, before, after, "sent_pkts", "h1"), packets)

			before = collect(t, f)
			write(t, f, "h1", "h2", size, 2, 10, patient)
			after = collect(t, f)
			for _, name := range []string{"out_of_seq_request", "duplicate_request"} {
				if n := delta(t, before, after, name, "h2"); n != 0 {
					t.Errorf("healed, and %s still grew by %v", name, n)
				}
			}
		})
	}
}

// lost: what was hit did not arrive, all else did, and the transport noticed.
func lost(t *testing.T, hits uint64, before, after readings) {
	t.Helper()
	sent, got := delta(t, before, after, "sent_pkts", "h1"), delta(t, before, after, "rcvd_pkts", "h2")
	if got != sent-float64(hits) {
		t.Errorf("%v packets were sent, %d hit, and %v arrived", sent, hits, got)
	}
	if n := delta(t, before, after, "out_of_seq_request", "h2"); n == 0 {
		t.Error("the responder noticed no gap")
	}
	if n := delta(t, before, after, "completer_retry_err", "h1"); n == 0 {
		t.Error("the requester never sent again")
	}
}

func TestALinkThatIsDownIsFeltAndComesBack(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{})
	down := faults.Spec{Name: "down", Kind: faults.LinkDown, At: []string{"leaf1:eth1"}}
	s := inject(t, f, down)
	h2 := f.hostNamed(t, "h2")
	if state, err := h2.rdma.PortState(h2.devs[0].device); err != nil || state != 1 {
		t.Errorf("the link is down and h2's RDMA port is in state %d, not 1 (down): %v", state, err)
	}
	if n := s.hits(); n != 2 {
		t.Errorf("%d losses of carrier at two ports", n)
	}
	err := apply(f, faults.Spec{Name: "again", Kind: faults.LinkDown, At: []string{"leaf1:eth1"}})
	if err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("a link that is down was taken down again: %v", err)
	}
	s.heal()
	if state, err := h2.rdma.PortState(h2.devs[0].device); err != nil || state != 4 {
		t.Errorf("the link is up and h2's RDMA port is in state %d, not 4 (active): %v", state, err)
	}
	write(t, f, "h1", "h2", 1<<16, 2, 10, patient)

	// Flapping: of 440 ms of wall time down for 40, and data gets through.
	flap := inject(t, f, faults.Spec{Name: "flap", Kind: faults.LinkFlap, At: []string{"leaf1:eth1"},
		Period: 440 * time.Millisecond / time.Duration(testDilation), Down: 40 * time.Millisecond / time.Duration(testDilation)})
	write(t, f, "h1", "h2", 1<<14, 2, 400, hasty)
	n := flap.hits()
	flap.heal()
	if n < 4 {
		t.Errorf("only %d losses of carrier while the link flapped", n)
	}
	write(t, f, "h1", "h2", 1<<16, 2, 10, patient)
}

// A NIC that has no link for a while sends again, and its queue pairs live on.
func TestAHostWhoseOwnLinkFlapsLosesPacketsAndNoQueuePair(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{})
	before := collect(t, f)
	flap := inject(t, f, faults.Spec{Name: "flap", Kind: faults.LinkFlap, At: []string{"h1:eth0"},
		Period: 440 * time.Millisecond / time.Duration(testDilation), Down: 40 * time.Millisecond / time.Duration(testDilation)})
	write(t, f, "h1", "h2", 1<<14, 4, 400, hasty)
	n := flap.hits()
	flap.heal()
	after := collect(t, f)
	if n < 4 {
		t.Errorf("only %d losses of carrier while the link flapped", n)
	}
	if n := delta(t, before, after, "send_err", "h1"); n != 0 {
		t.Errorf("%v packets were refused by h1's own port", n)
	}
	if n := delta(t, before, after, "completer_retry_err", "h1"); n == 0 {
		t.Error("the requester never sent again")
	}
}

// apply applies a fault that is expected to be refused.
func apply(f *Fabric, s faults.Spec) error {
	got := make(chan error, 1)
	f.Injector().Apply(s, func(_ fabric.Applied, err error) { got <- err })
	return <-got
}

func TestFaultsOnOnePortComposeOrAreRefusedWithTheReason(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{})
	at := func(name string, kind faults.Kind, set func(*faults.Spec)) faults.Spec {
		s := towardsH2(kind, set)
		s.Name = name
		return s
	}
	every := inject(t, f, at("a", faults.Loss, func(s *faults.Spec) { s.EveryNth = 50 }))
	twice := inject(t, f, at("b", faults.Duplicate, func(s *faults.Spec) { s.Probability = 0.1 }))
	late := inject(t, f, at("c", faults.Delay, func(s *faults.Spec) { s.Delay, s.Jitter = 100*time.Microsecond, 10*time.Microsecond }))
	before := collect(t, f)
	write(t, f, "h1", "h2", 1<<16, 2, 20, hasty)
	after := collect(t, f)
	sent, got := delta(t, before, after, "sent_pkts", "h1"), delta(t, before, after, "rcvd_pkts", "h2")
	if want := sent - float64(every.hits()) + float64(twice.hits()); got != want {
		t.Errorf("%v sent, %d lost, %d doubled: %v arrived", sent, every.hits(), twice.hits(), got)
	}

	for reason, s := range map[string]faults.Spec{
		"both have jitter":       at("d", faults.Delay, func(s *faults.Spec) { s.Delay, s.Jitter = 50*time.Microsecond, time.Microsecond }),
		"is on this cable twice": at("a", faults.Corrupt, func(s *faults.Spec) { s.Probability = 0.1 }),
		"no more than the fault": at("e", faults.RateLimit, func(s *faults.Spec) { s.Rate = 4 * topo.Gbps }),
	} {
		for what, err := range map[string]error{"check": f.Injector().Check(s), "apply": apply(f, s)} {
			if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "leaf1:eth1") {
				t.Errorf("%s: expected leaf1:eth1 and %q, got %v", what, reason, err)
			}
		}
	}
	// What was refused has left nothing, and healing in any order leaves the others.
	twice.heal()
	every.must("verify", every.a.Verify)
	late.must("verify", late.a.Verify)
}
