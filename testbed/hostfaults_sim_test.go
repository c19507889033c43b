package testbed

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// suffering is SENDs, WRITEs and a collective on h1 ── leaf1 ── leaf2 ── h3 (and h2, h4), and a fault in a host for a while.
const suffering = `apiVersion: rocebed/v1
name: suffering
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: a, kind: send, from: [h1], to: [h3], size: 16KiB, messages: 200, depth: 4, qps: 2, qp: {min_rnr_timer: 1}}
  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, messages: 80, depth: 4}
faults:
  - {name: it, schedule: {at: 1ms, for: 2ms}, %s}
`

func TestWhereNoReceivesArePostedSendsAreAnsweredByRNRNAKsUntilItHeals(t *testing.T) {
	h3 := topo.PortRef{Node: "h3", Port: "eth0"}
	for fault, flows := range map[string]int{
		"at: ['h3:eth0'], kind: rnr":                        2,
		"at: ['h3:eth0'], kind: rnr, workload: a, flows: 1": 1,
	} {
		seen := observe(t, strings.Replace(suffering, "%s", fault, 1), h3, h3)
		while, outside, to := 0, 0, map[string]bool{}
		for _, p := range seen.left {
			if roce.Opcode(p.bytes[42]).Info().Operation != roce.OpAcknowledge || roce.Syndrome(p.bytes[54]).Kind() != roce.SyndromeRNRNAK {
				continue
			}
			to[p.bytes[47:50]] = true
			if p.at > seen.zero+seen.applied-15*time.Microsecond && p.at < seen.zero+seen.healed+5*time.Microsecond {
				while++
			} else {
				outside++
			}
		}
		// A flow's receives run out one by one: each of the eight (twice the depth) is due once more.
		if n := int(seen.fault.Hits); n != 8*flows || len(to) != flows || while == 0 || outside > 0 {
			t.Errorf("%s: %d hits, RNR NAKs to %d queue pairs: %d while it lasts, %d outside", fault, n, len(to), while, outside)
		}
	}
}

// ring is an all-reduce over four GPUs, which take turns.
const ring = `apiVersion: rocebed/v1
name: ring
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
workloads:
  - {name: r, kind: all-reduce, size: 1MiB, slice: 64KiB, messages: %d}
faults:
  - {name: it, at: [h1], kind: gpu-straggler, %s, may_miss: true}
`

func TestAStragglersStepsTakeLongerAndHoldUpTheWholeCollective(t *testing.T) {
	took := func(fault string) (time.Duration, int) {
		out, _ := runInSim(t, t.Context(), strings.NewReplacer("%d", "3", "%s", fault).Replace(ring), RunOptions{})
		if !out.Passed() {
			t.Fatalf("%s: problems %q", fault, out.Summary.Problems)
		}
		return out.Summary.Workloads[0].Duration, int(out.Summary.Faults[0].Hits)
	}
	// A ring of 4 in slices of 64 KiB: 6 steps of 4 slices come in at each GPU in each of 3 iterations, and each iteration begins once.
	const steps = 3 * (6*4 + 1)
	none, hits := took("delay: 1us, schedule: {at: 1h}")
	if hits != 0 {
		t.Errorf("it hit %d steps before it was in force", hits)
	}
	slow, hits := took("delay: 500us")
	if want := none + steps*500*time.Microsecond; hits != steps || slow > want || slow < steps*500*time.Microsecond {
		t.Errorf("with 500 µs a step %d steps took %v, without it %v", hits, slow, none)
	}
	// At a tenth of the line's speed a slice of 64 KiB takes 9 × 52 µs longer.
	slow, hits = took("speed: 10%")
	if least := 3 * (6*4 + 4) * 9 * 52 * time.Microsecond; hits != steps || slow < least || slow > none+least*11/10 {
		t.Errorf("at a tenth of the speed %d steps took %v, want from %v on", hits, slow, least)
	}
	if slow, hits = took("delay: 500us, gpus: [0]"); hits != steps {
		t.Errorf("the one GPU's steps: %d in %v", hits, slow)
	}
}

func TestAResetNICLosesItsQueuePairsAndItsPortForAsLongAsItSays(t *testing.T) {
	h4 := topo.PortRef{Node: "h4", Port: "eth0"}
	source := strings.NewReplacer("messages: 80, depth: 4}", "messages: 80, depth: 4, expect_error: retry-exceeded, qp: {timeout: 7, retry_cnt: 5}}",
		"%s", "at: ['h4:eth0'], kind: nic-reset, down: 1ms").Replace(suffering)
	seen := observe(t, source, h4, h4)
	down, up := seen.zero+seen.applied, seen.zero+seen.applied+time.Millisecond
	before, while, after := 0, 0, 0
	for _, p := range seen.left {
		switch {
		case p.at < down-10*time.Microsecond:
			before++
		case p.at > down && p.at < up-10*time.Microsecond:
			while++
		case p.at > up:
			after++
		}
	}
	if seen.fault.Hits != 1 || before == 0 || while > 0 || after == 0 {
		t.Errorf("%d queue pairs lost; packets at its port: %d before, %d while it was down, %d after", seen.fault.Hits, before, while, after)
	}
}

func TestAPausedProcessIsSilentWithItsNICAndThenGoesOn(t *testing.T) {
	h4 := topo.PortRef{Node: "h4", Port: "eth0"}
	seen := observe(t, strings.Replace(suffering, "%s", "at: [h4], kind: process-pause", 1), h4, h4)
	h4addr := addrOf(t, suffering, h4)
	before, while, after := 0, 0, 0
	for _, p := range seen.left {
		switch {
		case p.from != h4addr:
		case p.at < seen.zero+seen.applied-4*time.Microsecond:
			before++
		case p.at < seen.zero+3*time.Millisecond:
			while++
		default:
			after++
		}
	}
	if seen.fault.Hits != 1 || before == 0 || while > 0 || after == 0 {
		t.Errorf("hits %d; h4 sent %d packets before, %d while it stood still, %d after", seen.fault.Hits, before, while, after)
	}
}

func addrOf(t *testing.T, source string, port topo.PortRef) netip.Addr {
	t.Helper()
	s, err := Parse("test.yaml", []byte(strings.Replace(source, "%s", "at: [h1], kind: process-pause", 1)))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := s.Plan.Port(port)
	return p.Addr.Addr()
}

func TestAKilledProcessLosesItsQueuePairsAndItsPeersRunIntoRetryExceeded(t *testing.T) {
	const quick = "messages: 400, depth: 4, qp: {timeout: 5, retry_cnt: 2}}"
	source := strings.NewReplacer("messages: 80, depth: 4}", quick,
		"%s", "at: [h4], kind: process-kill",
		"faults:", "  - {name: back, kind: read, from: [h4], to: [h1], size: 16KiB, messages: 1000}\n  - {name: ring, kind: all-reduce, size: 256KiB, messages: 100, qp: {timeout: 5, retry_cnt: 2}}\nfaults:").Replace(suffering)
	for range 2 {
		out, _ := runInSim(t, t.Context(), source, RunOptions{})
		f := out.Summary.Faults[0]
		if !out.Passed() || f.Hits != 1 || !f.Verified || !f.Healed {
			t.Fatalf("passed %v, %+v, problems %q", out.Passed(), f, out.Summary.Problems)
		}
		got := map[string]string{}
		for _, w := range out.Summary.Workloads {
			got[w.Name] = strings.Join(w.Statuses, " ")
		}
		if want := map[string]string{"a": "", "b": "RETRY_EXC_ERR", "back": "", "ring": "RETRY_EXC_ERR"}; !maps.Equal(got, want) {
			t.Errorf("statuses %q", got)
		}
	}
}

func TestAHostWithASlowClockTimesOutLateAndMeasuresTooLittle(t *testing.T) {
	s, err := Parse("test.yaml", []byte(strings.Replace(suffering, "%s", "at: [h1], kind: process-pause", 1)))
	if err != nil {
		t.Fatal(err)
	}
	// At the switch across its link: what is captured at h1 has h1's times.
	h1, _ := s.Plan.Port(topo.PortRef{Node: "h1", Port: "eth0"})
	// Half of what h1 sends is lost for good behind it, and it sends again after a timeout of 131 µs (timeout 5) or more by its clock.
	waits := func(clock string) (least time.Duration, hits int64) {
		source := strings.NewReplacer("kind: send, from: [h1], to: [h3], size: 16KiB, messages: 200, depth: 4, qps: 2, qp: {min_rnr_timer: 1}}", "kind: write, from: [h1], to: [h3], size: 1KiB, messages: 20, depth: 1, qp: {timeout: 5}}",
			"name: it, schedule: {at: 1ms, for: 2ms}, %s}", "name: it, at: [h1], kind: slow-clock, speed: "+clock+", may_miss: true}\n  - {name: lossy, kind: loss, at: ['h1:eth0'], direction: ingress, every_nth: 2}").Replace(suffering)
		seen := observe(t, source, h1.Peer, h1.Peer)
		sent := map[string]time.Duration{}
		for _, p := range seen.left {
			if roce.Opcode(p.bytes[42]).Info().Operation != roce.OpRDMAWrite {
				continue
			}
			psn := p.bytes[50:54]
			if before, again := sent[psn]; again && (least == 0 || p.at-before < least) {
				least = p.at - before
			}
			sent[psn] = p.at
		}
		return least, seen.fault.Hits
	}
	right, _ := waits("99.9999999%")
	slow, hits := waits("50%")
	if right < 131*time.Microsecond || slow < 2*right-2*time.Microsecond || slow > 2*right+2*time.Microsecond || hits < 10 {
		t.Errorf("it sends again after %v, with a clock of half the speed after %v; %d timers ended late", right, slow, hits)
	}
}

// everythingInHosts is every fault in hosts on three tiers, most of them at once.
const everythingInHosts = `apiVersion: rocebed/v1
name: hosts
seed: 3
topology:
  fat-tree: {k: 4}
  rate: 25Gbps
nics: {dcqcn: mlx5}
switches: {ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%}}
workloads:
  - {name: sends, kind: all-pairs, op: send, from: ["h[1-5]"], size: 4KiB, messages: 100, qp: {timeout: 6, retry_cnt: 3, min_rnr_timer: 1}}
  - {name: ring, kind: all-reduce, ranks: ["h[6-9]"], size: 128KiB, messages: 20}
  - {name: incast, kind: incast, from: ["h1[0-4]"], to: [h15], bytes: 256KiB, qp: {timeout: 6, retry_cnt: 3}}
  - {name: astray, kind: write, from: [h16], to: [h9], messages: 50, expect_error: retry-exceeded, qp: {timeout: 5, retry_cnt: 2}}
faults:
  - {name: unready, kind: rnr, at: ["h1:eth0"], schedule: {at: 20us, for: 100us}}
  - {name: still, kind: process-pause, at: [h2], schedule: {at: 30us, for: 60us}}
  - {name: dead, kind: process-kill, at: [h5], schedule: {at: 50us}}
  - {name: behind, kind: gpu-straggler, at: [h6], delay: 3us}
  - {name: slow, kind: slow-clock, at: [h7, h10], speed: 70%, schedule: {at: 10us, for: 200us}}
  - {name: knobs, kind: dcqcn-params, at: ["h11:eth0"], dcqcn: {rpg_ai_rate: 1Gbps}, may_miss: true}
  - {name: wrong, kind: wrong-gid, at: ["h16:eth0"], schedule: {at: 40us}}
  - {name: reset, kind: nic-reset, at: ["h14:eth0"], down: 20us, schedule: {at: 1h}, may_miss: true}
`

func TestFaultsInHostsAreTheSameHoweverManyCoresHandleEvents(t *testing.T) {
	var hash string
	for _, workers := range []int{1, 2, 5} {
		onCores(t, workers)
		out, _ := runInSim(t, t.Context(), everythingInHosts, RunOptions{})
		if !out.Passed() {
			t.Fatalf("%d cores: problems %q", workers, out.Summary.Problems)
		}
		if hash == "" {
			hash = out.Summary.Hash
		}
		if out.Summary.Hash != hash {
			t.Errorf("on %d cores the record's hash is %s, before it was %s", workers, out.Summary.Hash, hash)
		}
	}
}
