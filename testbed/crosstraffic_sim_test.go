package testbed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// crowded is a flow between two hosts, and two more hosts whose traffic shares the link between the leaves, or its receiver's.
//
//	h1 ─┐                ┌─ h3
//	h2 ─┴─ leaf1─leaf2 ──┴─ h4
const crowded = `apiVersion: rocebed/v1
name: crowded
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
switches:
  memory: 8MB
  pfc: {}
  ecn: {kmin: 10KB, kmax: 40KB, pmax: 20%%}
nics: {dcqcn: mlx5}
workloads:
  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, messages: %d, depth: 4}
faults:
  - {name: it, %s}
`

// beside runs the crowded fabric with a fault and without, and gives both outcomes.
func beside(t *testing.T, messages int, fault string) (with, without *Outcome, r *record.Reader) {
	t.Helper()
	source := fmt.Sprintf(crowded, messages, fault)
	with, r = runInSim(t, t.Context(), source, RunOptions{})
	if !with.Passed() {
		t.Fatalf("%s: problems %q", fault, with.Summary.Problems)
	}
	quiet, _, _ := strings.Cut(source, "faults:")
	without, _ = runInSim(t, t.Context(), quiet, RunOptions{})
	if !without.Passed() {
		t.Fatalf("without %s: problems %q", fault, without.Summary.Problems)
	}
	return with, without, r
}

// total is how much a counter grew on some node's port in a run; an empty label is every one.
func total(t *testing.T, r *record.Reader, name string, labels map[string]string) int {
	t.Helper()
	table, err := r.Table(metrics.Standard)
	if err != nil {
		t.Fatal(err)
	}
	return int(table.Total(name, labels))
}

func TestABurstOfRoCETakesAVictimsRateAndHeedsNoCNP(t *testing.T) {
	with, without, r := beside(t, 80, "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], bytes: 4MB, schedule: {at: 500us, for: 5ms}")
	f := with.Summary.Faults[0]
	if want := int64(4_000_000 / 4096); f.Hits < want || f.Hits > want+200 || !f.Verified || !f.Healed {
		t.Errorf("%d hits, verified %v, healed %v; want about %d packets of 4 MB", f.Hits, f.Verified, f.Healed, want)
	}
	if a, b := with.Summary.Workloads[0], without.Summary.Workloads[0]; a.GoodputBps*10 > b.GoodputBps*9 || a.WrongBytes != 0 {
		t.Errorf("the victim's goodput is %d beside the burst and %d without: want less", a.GoodputBps, b.GoodputBps)
	}
	h2 := map[string]string{"node": "h2"}
	if ignored, heeded := total(t, r, "rp_cnp_ignored", h2), total(t, r, "rp_cnp_handled", h2); ignored == 0 || heeded != 0 {
		t.Errorf("h2 ignored %d CNPs and heeded %d: want some and none", ignored, heeded)
	}
	if heeded := total(t, r, "rp_cnp_handled", map[string]string{"node": "h1"}); heeded == 0 {
		t.Error("the workload heeded no CNP")
	}
}

// Incident 8. The victim's links have room: what takes its rate are pauses of leaf2, for which the bursts to h3 are to blame.
//
//	h1 ─victim─▶ leaf1 ══40G══ leaf2 ─▶ h4
//	h2 ─burst──▶ leaf1 ══════▶ leaf2 ─▶ h3 ◀─burst─ h4
func TestBurstsTakeAVictimsRateByPausesThatAreNotForIt(t *testing.T) {
	source := `apiVersion: rocebed/v1
name: victim
topology:
  dumbbell: {left: 2, right: 2}
  rate: 10Gbps
  override: [{link: leaf1 -- leaf2, rate: 40Gbps}]
switches: {memory: 1MB, pfc: {}}
workloads:
  - {name: victim, kind: write, from: [h1], to: [h4], size: 64KiB, duration: 4ms}
`
	with, r := runInSim(t, t.Context(), source+"faults: [{name: it, kind: roce-burst, at: ['h2:eth0', 'h4:eth0'], to: ['h3:eth0'], bytes: 8MB, schedule: {at: 200us, for: 5ms}}]\n", RunOptions{})
	without, quiet := runInSim(t, t.Context(), source, RunOptions{})
	if !with.Passed() || !without.Passed() {
		t.Fatalf("problems %q, without the bursts %q", with.Summary.Problems, without.Summary.Problems)
	}
	a, b := with.Summary.Workloads[0], without.Summary.Workloads[0]
	paused := total(t, r, "rx_prio_pause", map[string]string{"node": "h1"})
	if n := total(t, quiet, "rx_prio_pause", nil); n != 0 {
		t.Errorf("%d pauses without the bursts", n)
	}
	if a.GoodputBps*4 > b.GoodputBps*3 || paused == 0 || a.Retries != 0 {
		t.Errorf("the victim carries %d bit/s beside the bursts and %d without, paused %d times, with %d retries: want a quarter less at least, and no loss", a.GoodputBps, b.GoodputBps, paused, a.Retries)
	}
	t.Logf("%d → %d bit/s, %d pauses", b.GoodputBps, a.GoodputBps, paused)
}

func TestABurstByRateSendsWhatTheRateAllows(t *testing.T) {
	with, _, _ := beside(t, 40, "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 4KiB, streams: 2, schedule: {at: 100us, for: 1ms}")
	// 2 streams × 1 Gb/s × 1 ms = 250 kB = 61 messages of a packet each, and one of each stream at once.
	if n := with.Summary.Faults[0].Hits; n < 55 || n > 66 {
		t.Errorf("%d packets were sent in a millisecond at 2 × 1 Gb/s, want about 61", n)
	}
}

func TestAnIncastComesBackEveryPeriodUntilItHeals(t *testing.T) {
	with, without, r := beside(t, 120, "kind: incast-burst, at: [h2, h4], to: ['h3:eth0'], bytes: 100KB, period: 1ms, schedule: {at: 500us, for: 2500us}")
	// Three bursts of 100 kB from each of two, 25 packets each.
	if n := with.Summary.Faults[0].Hits; n < 150 || n > 156 {
		t.Errorf("%d packets, want three bursts of two times 25", n)
	}
	if a, b := with.Summary.Workloads[0], without.Summary.Workloads[0]; a.Duration <= b.Duration {
		t.Errorf("the workload took %v beside the bursts and %v without", a.Duration, b.Duration)
	}
	if marked := total(t, r, "ecn_marked", nil); marked == 0 {
		t.Error("nothing was marked")
	}
}

func TestUDPBesideSharesTheLinkAndLosesNoneOfTheRoCE(t *testing.T) {
	with, without, r := beside(t, 80, "kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 5Gbps, size: 1000, schedule: {at: 500us, for: 2ms}")
	f := with.Summary.Faults[0]
	if want := int64(1250); f.Hits < want-20 || f.Hits > want+20 { // 5 Gb/s × 2 ms ÷ 8000 bits
		t.Errorf("%d datagrams, want about %d", f.Hits, want)
	}
	if a, b := with.Summary.Workloads[0], without.Summary.Workloads[0]; a.Duration <= b.Duration || a.Retries != 0 {
		t.Errorf("the workload took %v with %d retries beside UDP, %v without: want longer and none", a.Duration, a.Retries, b.Duration)
	}
	// RoCE counters leave it out.
	if n := total(t, r, "sent_pkts", map[string]string{"node": "h2"}); n != 0 {
		t.Errorf("h2's NIC says that it sent %d RoCE packets", n)
	}
}

func TestTrafficBesideRunsWhereThereAreNoWorkloads(t *testing.T) {
	source, _, _ := strings.Cut(fmt.Sprintf(crowded, 1, ""), "workloads:")
	out, _ := runInSim(t, t.Context(), source+"faults: [{name: it, kind: incast-burst, at: ['h1', 'h2'], to: ['h4:eth0'], bytes: 1MB, schedule: {at: 10us, for: 3ms}}]\n", RunOptions{})
	// 1 MB is 16 messages of 62500 bytes, 16 packets each.
	if f := out.Summary.Faults[0]; !out.Passed() || f.Hits != 2*16*16 {
		t.Errorf("problems %q, %d hits: want two times 1 MB", out.Summary.Problems, f.Hits)
	}
}

// What a burst has under way when its link goes down is sent again, or given up: it heals in any case.
func TestABurstOverALinkThatIsDownHeals(t *testing.T) {
	source := fmt.Sprintf(crowded, 40, "kind: roce-burst, at: ['h2:eth0'], to: ['h4:eth0'], rate: 2Gbps, schedule: {at: 100us, for: 1ms}")
	out, _ := runInSim(t, t.Context(), source+"  - {name: cut, kind: down, at: ['h2:eth0'], schedule: {at: 300us, for: 100ms}}\n", RunOptions{})
	for _, f := range out.Summary.Faults {
		if len(f.Problems) > 0 || !f.Healed || !f.Verified {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
}

// Virtual time knows nothing of cores.
func TestTrafficBesideIsTheSameEveryTime(t *testing.T) {
	source := fmt.Sprintf(crowded, 40, "kind: incast-burst, at: [h2, h4], to: ['h3:eth0'], bytes: 100KB, period: 500us, schedule: {at: 100us, for: 1ms}") +
		"  - {name: too, kind: udp-traffic, at: ['h1:eth0', 'h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, streams: 2, schedule: {at: 50us, for: 900us}}\n"
	var hashes []string
	for range 3 {
		out, _ := runInSim(t, t.Context(), source, RunOptions{})
		if !out.Passed() {
			t.Fatalf("problems %q", out.Summary.Problems)
		}
		hashes = append(hashes, out.Summary.Hash)
	}
	if hashes[0] != hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("three runs left %q", hashes)
	}
}

func TestTrafficBesideIsRefusedWhereItCannotBe(t *testing.T) {
	for fault, want := range map[string]string{
		"kind: tcp-traffic, at: ['h2:eth0'], to: ['h4:eth0']":                          "no TCP in virtual time",
		"kind: roce-burst, at: ['h2:eth0'], to: ['h5:eth0'], bytes: 1MB":               "h5:eth0",
		"kind: incast-burst, at: ['h1', 'h2'], to: ['h3', 'h4'], bytes: 1MB":           "an incast goes to one NIC",
		"kind: roce-burst, at: ['h2:eth0'], to: ['h2'], bytes: 1MB":                    "of one host",
		"kind: udp-traffic, at: ['h2:eth0'], to: ['h4:eth0'], rate: 1Gbps, size: 9000": "leave in pieces",
		"kind: udp-traffic, at: ['h2:eth0'], to: ['h3', 'h4'], rate: 6Gbps":            "its line carries 10Gbps",
		"kind: roce-burst, at: ['h2:eth0'], to: ['leaf1:*'], bytes: 1MB":               "leaf1",
	} {
		s, err := Parse("test.yaml", []byte(fmt.Sprintf(crowded, 1, fault)))
		if err == nil {
			err = builders[Sim].Check(s, 1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want it refused: %s", fault, err, want)
		}
	}
}
