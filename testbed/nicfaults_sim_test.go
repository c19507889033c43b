package testbed

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// ailing is two senders to two receivers over one link that is marked, and a fault in a NIC for a while.
const ailing = `apiVersion: rocebed/v1
name: ailing
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
switches:
  memory: 8MB
  pfc: {}
  ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%}
nics: {dcqcn: mlx5}
workloads:
  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, messages: 80, depth: 4}
  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, messages: 80, depth: 4}
faults:
  - {name: it, at: ['h3:eth0'], schedule: {at: 1ms, for: 2ms}, %s}
`

func TestAFaultInANICIsSeenOnItsLinkWhileItLastsAndCountsWhatItHit(t *testing.T) {
	s, err := Parse("test.yaml", []byte(strings.Replace(ailing, "%s", "kind: cnp-off", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var h3 topo.PortRef
	for _, p := range s.Topology.NICs() {
		if p.Node == "h3" {
			h3 = p
		}
	}
	plan, _ := s.Plan.Port(h3)
	type count struct{ data, acks, cnps int }
	for fault, ok := range map[string]func(in, out count, hits int) bool{
		"kind: cnp-off":                  func(in, out count, hits int) bool { return in.cnps == 0 && out.cnps > 0 && hits > 0 },
		"kind: cnp-cap, frequency: 1/ms": func(in, out count, hits int) bool { return in.cnps > 0 && in.cnps <= 3 && hits > 0 },
		"kind: dcqcn-params, dcqcn: {min_time_between_cnps: 1ms}": func(in, out count, hits int) bool {
			return in.cnps > 0 && in.cnps <= 4 && out.cnps > 8 && hits >= in.cnps
		},
		"kind: ack-delay, delay: 20us":                   func(in, out count, hits int) bool { return in.acks > 0 && hits >= in.acks && hits <= in.acks+8 },
		"kind: ack-coalesce, ack_every: 2, delay: 100us": func(in, out count, hits int) bool { return in.acks > 0 && hits > 0 },
		"kind: pfc-storm":                                func(in, out count, hits int) bool { return in.data == 0 && out.data > 0 && hits >= 2 },
		"kind: slow-dma, rate: 500Mbps":                  func(in, out count, hits int) bool { return in.data > 0 && in.data*3 < out.data && hits >= in.data },
		"kind: pcie-downgrade, pcie: gen1 x1":            func(in, out count, hits int) bool { return in.data > 0 && hits >= in.data },
		"kind: mtt-thrash, entries: 1, delay: 50us":      func(in, out count, hits int) bool { return in.data > 0 && in.data*3 < out.data && hits > 0 },
	} {
		seen := observe(t, strings.Replace(ailing, "%s", fault, 1), h3, h3)
		var in, out count
		for _, p := range seen.left {
			c := &out
			if p.at > seen.zero+seen.applied+15*time.Microsecond && p.at < seen.zero+seen.healed-5*time.Microsecond {
				c = &in
			} else if p.at > seen.zero+seen.applied-5*time.Microsecond && p.at < seen.zero+seen.healed+5*time.Microsecond {
				continue
			}
			switch op := roce.Opcode(p.bytes[42]).Info().Operation; {
			case op == roce.OpRDMAWrite && p.from != plan.Addr.Addr():
				c.data++
			case op == roce.OpAcknowledge && p.from == plan.Addr.Addr():
				c.acks++
			case op == roce.OpCNP && p.from == plan.Addr.Addr():
				c.cnps++
			}
		}
		if !ok(in, out, int(seen.fault.Hits)) {
			t.Errorf("%s: while it lasts %+v, outside %+v, counted %d", fault, in, out, seen.fault.Hits)
		}
	}
}

func TestAPFCStormPausesForTheShareOfTheTimeThatItSays(t *testing.T) {
	source := strings.Replace(ailing, "%s", "kind: pfc-storm, frequency: 10/ms, duty: 50%", 1)
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	h3 := s.Topology.NICs()[slices.IndexFunc(s.Topology.NICs(), func(p topo.PortRef) bool { return p.Node == "h3" })]
	seen := observe(t, source, h3, h3)
	var paused, passing [20]int // data packets in each tenth of a millisecond, in its halves
	begin := seen.zero + seen.applied
	for _, p := range seen.left {
		since := p.at - begin
		k, at := int(since/(100*time.Microsecond)), since%(100*time.Microsecond)
		switch {
		case since < 0 || k >= len(paused) || roce.Opcode(p.bytes[42]).Info().Operation != roce.OpRDMAWrite:
		case at > 10*time.Microsecond && at < 48*time.Microsecond:
			paused[k]++
		case at > 55*time.Microsecond && at < 98*time.Microsecond:
			passing[k]++
		}
	}
	some := 0
	for k := range paused {
		if paused[k] > 0 {
			t.Errorf("%d packets came while frame %d paused them", paused[k], k)
		}
		if passing[k] > 0 {
			some++
		}
	}
	if some < 15 || seen.fault.Hits != 20 {
		t.Errorf("packets came after %d of 20 pauses, of which %d are counted", some, seen.fault.Hits)
	}
}

func TestKilledQueuePairsAreThoseThatAreNamedAndCounted(t *testing.T) {
	source := strings.Replace(strings.ReplaceAll(ailing, "depth: 4}", "depth: 4, qps: 2}"), "%s", "kind: qp-kill, workload: a, flows: 1", 1)
	out, _ := runInSim(t, t.Context(), source, RunOptions{})
	var failed []string
	for _, w := range out.Summary.Workloads {
		for i := range w.Flows {
			if w.Flows[i].Errors > 0 {
				failed = append(failed, w.Name)
			}
		}
	}
	if f := out.Summary.Faults[0]; f.Hits != 1 || !f.Healed || !slices.Equal(failed, []string{"a"}) {
		t.Errorf("hits %d, flows of %v failed", f.Hits, failed)
	}
}

func TestAFlowWithOtherDCQCNParametersTakesAnotherShareWhileTheyLast(t *testing.T) {
	source := strings.NewReplacer("at: ['h3:eth0']", "at: ['h1:eth0']", "%s", "kind: dcqcn-params, dcqcn: {rpg_min_dec_fac: 100, rpg_ai_rate: 5Gbps, rpg_time_reset: 20us}").Replace(ailing)
	h1, h2 := topo.PortRef{Node: "h1", Port: "eth0"}, topo.PortRef{Node: "h2", Port: "eth0"}
	seen := observe(t, source, h1, h2)
	sent := func(of []passed) (in, before float64) {
		for _, p := range of {
			if roce.Opcode(p.bytes[42]).Info().Operation != roce.OpRDMAWrite {
				continue
			}
			switch at := p.at - seen.zero; {
			case at > seen.applied+500*time.Microsecond && at < seen.healed:
				in++
			case at > 200*time.Microsecond && at < seen.applied:
				before++
			}
		}
		return in, before
	}
	in1, before1 := sent(seen.left)
	in2, before2 := sent(seen.arrived)
	t.Log(in1, in2, before1, before2, seen.fault.Hits)
	if seen.fault.Hits < 10 || in1 < 2*in2 || before1 > 2*before2 || before2 > 2*before1 {
		t.Errorf("%d hits; it sends %v packets and its neighbour %v; before they were %v and %v", seen.fault.Hits, in1, in2, before1, before2)
	}
}

func TestANICWithAWrongGIDIsHeardByNobodyAndRunsIntoRetryExceeded(t *testing.T) {
	source := strings.NewReplacer("at: ['h3:eth0']", "at: ['h1:eth0']", "%s", "kind: wrong-gid",
		"to: [h3], size: 64KiB, messages: 80, depth: 4}", "to: [h3], size: 64KiB, messages: 80, depth: 4, expect_error: retry-exceeded, qp: {timeout: 4, retry_cnt: 2}}").Replace(ailing)
	h1 := topo.PortRef{Node: "h1", Port: "eth0"}
	seen := observe(t, source, h1, h1)
	wrong := 0
	for _, p := range seen.left {
		if p.from == netip.MustParseAddr("192.0.2.1") {
			if wrong++; !p.sound {
				t.Error("a packet's ICRC is not that of its source")
			}
		}
	}
	if n := int(seen.fault.Hits); wrong == 0 || n != wrong {
		t.Errorf("%d packets left with a wrong source, %d were counted", wrong, n)
	}
}
