package testbed

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// h1 ── leaf1 ── leaf2 ── h2, with 39 Mb/s of wall time.
const onRxe = `apiVersion: rocebed/v1
name: harness
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 60}
faults:
  - {name: lossy, kind: loss, at: [leaf1-leaf2], probability: 2%}
expect:
  - 'faults["lossy"].hits > 0 && faults["lossy"].healed'
  - 'workloads["w"].verified_bytes == 60 * bytesize("64KiB")'
`

func runOnRxe(t *testing.T, ctx context.Context, source string, opt RunOptions) (*Outcome, *record.Reader) {
	opt.AllowSlow = true // these are about bytes, faults and verdicts; a busy machine is keep-up's own tests' business
	t.Helper()
	testneed.Rxe(t)
	if opt.Progress == nil {
		opt.Progress = NewLines(t.Output(), 0)
	}
	return runOn(t, ctx, Kernel, source, opt)
}

func TestARunOnRxeLeavesAWholeRecord(t *testing.T) {
	out, r := runOnRxe(t, t.Context(), onRxe, RunOptions{Captures: []topo.PortRef{{Node: "h1", Port: "eth0"}}})
	if !out.Passed() {
		t.Fatalf("problems %q, expectations %v", out.Summary.Problems, out.Summary.Expectations)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
	if m := r.Manifest(); m.Hash != out.Summary.Hash || m.Verdict != record.Pass || m.Backend != "kernel" {
		t.Errorf("manifest %+v", m)
	}
	var phases []metrics.Phase
	if err := r.Readings(func(m metrics.Reading) error {
		phases = append(phases, m.Phase)
		return metrics.Standard.Check(m.Samples)
	}); err != nil {
		t.Error(err)
	}
	if phases[0] != metrics.Before || phases[len(phases)-1] != metrics.After {
		t.Errorf("readings %v", phases)
	}
	events, err := r.Events()
	if err != nil {
		t.Fatal(err)
	}
	oneLife(t, events)
	if !slices.ContainsFunc(events, func(e record.Event) bool { return e.What == "compared" }) {
		t.Error("the capture at a NIC was not compared with its counters")
	}
}

func TestAFailedExpectationFailsTheRunAndShowsWhatItSaw(t *testing.T) {
	source := strings.Replace(onRxe, `faults["lossy"].hits > 0`, `faults["lossy"].hits == 0`, 1)
	out, _ := runOnRxe(t, t.Context(), source, RunOptions{})
	x := out.Summary.Expectations[0]
	if out.Passed() || x.Passed || len(out.Summary.Problems) > 0 || !out.Summary.Expectations[1].Passed {
		t.Fatalf("%+v", out.Summary)
	}
	if !strings.Contains(x.String(), `faults["lossy"].hits = `) {
		t.Errorf("it doesn't show the value: %s", x)
	}
}

func TestAnInterruptedRunHealsAndTakesTheFabricDown(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	source := strings.Replace(onRxe, "messages: 60", "duration: 1h", 1)
	out, r := runOnRxe(t, ctx, source, RunOptions{Progress: stopWhen{text: "lossy: verified", stop: func() { cancel(ErrInterrupted) }}})
	f := out.Summary.Faults[0]
	if out.Passed() || !f.Healed || !strings.Contains(strings.Join(out.Summary.Problems, "\n"), "interrupted") {
		t.Errorf("fault %+v, problems %q", f, out.Summary.Problems)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

func TestTheDilationIsMeasuredWhereItIsAuto(t *testing.T) {
	testneed.Rxe(t)
	s, err := Parse("test.yaml", []byte(strings.Replace(onRxe, "dilation: 256", "dilation: auto", 1)))
	if err != nil {
		t.Fatal(err)
	}
	d, why, err := calibrate(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	// 2 NICs of 10 Gb/s over 3 links ask for 60 Gb/s: more than software carries, less than a million times.
	if d.Factor() < 2 || d.Factor() > 1<<20 {
		t.Errorf("dilation %v: %s", d, why)
	}
	t.Log(d, why)
}
