package testbed

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/sim"
	"github.com/rocebed/rocebed/topo"
)

func runInSim(t *testing.T, ctx context.Context, source string, opt RunOptions) (*Outcome, *record.Reader) {
	t.Helper()
	return runOn(t, ctx, Sim, source, opt)
}

func quickstart(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../scenarios/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestARecordOfVirtualTimeSaysWhichDilationWasNamedAndThatItHasNone(t *testing.T) {
	source := `apiVersion: rocebed/v1
name: named
dilation: 4096
topology: {dumbbell: {left: 1, right: 1}, rate: 10Gbps, mtu: 4200}
nics: {dcqcn: paper}
workloads: [{name: w, kind: write, from: [h1], to: [h2], messages: 2}]
`
	auto, least := Dilation(0), map[string]bool{}
	for named, opt := range map[string]RunOptions{"4096": {}, "auto": {Dilation: &auto}} {
		out, r := runInSim(t, t.Context(), source, opt)
		m, s := r.Manifest(), out.Summary
		if m.Dilation != 0 || !m.VirtualTime || m.DilationNamed != named || s.Dilation != 0 || !s.VirtualTime || s.DilationNamed != named || s.Slowed() != "none" {
			t.Errorf("named %s: manifest %d %v %q, summary %d %v %q", named, m.Dilation, m.VirtualTime, m.DilationNamed, s.Dilation, s.VirtualTime, s.DilationNamed)
		}
		said, err := r.File(record.RunFile)
		if err != nil || !strings.Contains(string(said), `"dilation": "`+named+`"`) {
			t.Errorf("named %s: %s, %v", named, said, err)
		}
		least[named] = slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "at a dilation of 4096") })
	}
	if !least["4096"] || least["auto"] { // what it is named for
		t.Errorf("warnings of the least rate: %v", least)
	}
}

func TestQuickstartPassesInVirtualTimeWithTheSameRecordEachTime(t *testing.T) {
	source := quickstart(t)
	var hash string
	for _, cores := range []int{1, 2, 4} {
		before := runtime.GOMAXPROCS(cores)
		out, r := runInSim(t, t.Context(), source, RunOptions{Captures: []topo.PortRef{{Node: "h1", Port: "eth0"}, {Node: "leaf1", Port: "eth4"}}})
		runtime.GOMAXPROCS(before)
		if !out.Passed() {
			t.Fatalf("problems %q, expectations %v", out.Summary.Problems, out.Summary.Expectations)
		}
		if err := r.Verify(); err != nil {
			t.Error(err)
		}
		if hash == "" {
			hash = out.Summary.Hash
		}
		if out.Summary.Hash != hash {
			t.Errorf("on %d cores the record's hash is %s, before it was %s", cores, out.Summary.Hash, hash)
		}
		events, err := r.Events()
		if err != nil {
			t.Fatal(err)
		}
		oneLife(t, events)
		compared := 0
		for _, e := range events {
			if e.What == "compared" {
				compared++
			}
		}
		if compared != 1 {
			t.Errorf("%d NICs' counters were compared with captures, want 1", compared)
		}
		if err := r.Readings(func(m metrics.Reading) error { return metrics.Standard.Check(m.Samples) }); err != nil {
			t.Error(err)
		}
	}
}

// onCores makes sim fabrics use so many cores, whatever their size.
func onCores(t *testing.T, workers int) {
	t.Helper()
	buildSim(t, func(ctx context.Context, c sim.Config) (fabric.Fabric, error) {
		c.Workers = workers
		return sim.Build(ctx, c)
	})
}

// buildSim has sim fabrics built by another function while the test runs.
func buildSim(t *testing.T, build func(context.Context, sim.Config) (fabric.Fabric, error)) {
	t.Helper()
	before := builders[Sim]
	t.Cleanup(func() { builders[Sim] = before })
	b := *before
	b.Build = func(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
		return build(ctx, simConfig(cfg.Scenario))
	}
	builders[Sim] = &b
}

// mixedInSim is a bit of everything at once on three tiers.
const mixedInSim = `apiVersion: rocebed/v1
name: mixed
seed: 5
topology:
  fat-tree: {k: 4}
  rate: 25Gbps
switches:
  ecn: {kmin: 20KB, kmax: 100KB, pmax: 10%, priorities: [3]}
  pfc: {priorities: [3]}
nics: {dcqcn: paper}
workloads:
  - {name: incast, kind: incast, from: ["h[2-8]"], to: [h1], bytes: 256KiB}
  - {name: pairs, kind: all-pairs, op: send, from: ["h9", "h1?"], size: 4KiB, messages: 4}
  - {name: reads, kind: read, mode: latency, from: [h1], to: [h16], size: 8KiB, messages: 20}
  - {name: ring, kind: all-reduce, size: 128KiB, messages: 2, after: reads}
  - {name: loose, kind: send, transport: ud, from: [h2], to: [h16], messages: 50}
faults:
  - {name: lossy, kind: loss, at: ["pod*spine*:*"], probability: 0.5%, schedule: {at: 50us}}
  - {name: jitter, kind: delay, at: ["core1:*"], delay: 3us, jitter: 2us, distribution: normal}
  - {name: loose-cable, kind: flap, at: ["core2:eth0"], period: 200us, down: 50us, may_miss: true}
`

func TestHowManyCoresHandleEventsChangesNothing(t *testing.T) {
	var hash string
	for _, workers := range []int{1, 2, 3, 5} {
		onCores(t, workers)
		out, _ := runInSim(t, t.Context(), mixedInSim, RunOptions{Captures: []topo.PortRef{{Node: "core1", Port: "eth1"}}})
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

func TestAnotherSeedMakesOtherData(t *testing.T) {
	var readings []string
	for _, seed := range []uint64{1, 2} {
		_, r := runInSim(t, t.Context(), quickstart(t), RunOptions{Seed: &seed})
		b, err := r.File(record.MetricsFile)
		if err != nil {
			t.Fatal(err)
		}
		readings = append(readings, string(b))
	}
	if readings[0] == readings[1] {
		t.Error("two seeds lost the same packets")
	}
}

const pairInSim = `apiVersion: rocebed/v1
name: pair
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, %s}
faults:
  - {name: it, at: [leaf1-leaf2], %s}
`

func pair(workload, fault string) string {
	return strings.Replace(strings.Replace(pairInSim, "%s", workload, 1), "%s", fault, 1)
}

func TestAnInterruptedRunInVirtualTimeHealsAndEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	source := pair("duration: 1h", "kind: loss, probability: 1%")
	out, r := runInSim(t, ctx, source, RunOptions{Progress: stopWhen{text: "it: verified", stop: func() { cancel(ErrInterrupted) }}})
	f := out.Summary.Faults[0]
	if out.Passed() || !f.Healed || !strings.Contains(strings.Join(out.Summary.Problems, "\n"), "interrupted") {
		t.Errorf("fault %+v, problems %q", f, out.Summary.Problems)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

// stillOnce is a fabric that has nothing left to happen, once.
type stillOnce struct {
	*sim.Fabric
	said bool
}

func (s *stillOnce) Next() (loop.Time, bool) {
	at, ok := s.Fabric.Next()
	if !s.said && at > loop.Time(time.Millisecond) {
		s.said, ok = true, false
	}
	return at, ok
}

func TestARunThatWaitsForWhatNeverHappensFailsAndSaysForWhat(t *testing.T) {
	buildSim(t, func(ctx context.Context, c sim.Config) (fabric.Fabric, error) {
		f, err := sim.Build(ctx, c)
		return &stillOnce{Fabric: f}, err
	})
	out, r := runInSim(t, t.Context(), pair("duration: 1h", "kind: loss, probability: 1%"), RunOptions{})
	said := strings.Join(out.Summary.Problems, "\n")
	if out.Passed() || !strings.Contains(said, "nothing was left to happen, and still unfinished: workload w") {
		t.Errorf("problems %q", said)
	}
	if f := out.Summary.Faults[0]; !f.Healed || len(out.Summary.Workloads) != 1 {
		t.Errorf("fault %+v, workloads %+v", f, out.Summary.Workloads)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}
