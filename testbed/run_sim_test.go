package testbed

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

func runInSim(t *testing.T, ctx context.Context, source string, opt RunOptions) (*Outcome, *record.Reader) {
	t.Helper()
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	opt.Backend, opt.Out = Sim, filepath.Join(t.TempDir(), "r")
	out, err := Run(ctx, s, opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	return out, r
}

func quickstart(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../scenarios/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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
		var life []string
		compared := 0
		for _, e := range events {
			if e.Source == "fault" {
				life = append(life, e.What)
			}
			if e.What == "compared" {
				compared++
			}
		}
		if want := []string{"planned", "applied", "verified", "healed", "verified clean"}; !slices.Equal(life, want) {
			t.Errorf("the fault was %q, want %q", life, want)
		}
		if compared != 1 {
			t.Errorf("%d NICs' counters were compared with captures, want 1", compared)
		}
		if err := r.Readings(func(m metrics.Reading) error { return metrics.Standard.Check(m.Samples) }); err != nil {
			t.Error(err)
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

// stopWhen ends the run when a note contains a text.
type stopWhen struct {
	Silent
	text string
	stop func()
}

func (s stopWhen) Note(text string) {
	if strings.Contains(text, s.text) {
		s.stop()
	}
}
