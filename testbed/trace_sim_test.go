package testbed

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

// A trace in the record shows the stages, and whoever is traced does the same things at the same times.
func TestTracesShowTheStagesInTheRecordAndChangeNothingElse(t *testing.T) {
	const source = `apiVersion: rocebed/v1
name: traced
topology: {star: {hosts: 3}, rate: 100Gbps}
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, messages: 10}
  - {name: r, kind: read, from: [h3], to: [h2], size: 16KiB, messages: 10}
`
	_, plain := runInSim(t, t.Context(), source, RunOptions{})
	out, traced := runInSim(t, t.Context(), source+"nics: {override: [{node: \"h[12]\", trace: 2}]}\n", RunOptions{})
	if !out.Passed() {
		t.Fatalf("problems %q", out.Summary.Problems)
	}
	for port, want := range map[string][]string{
		"h1-eth0": {"QP 0x", "message 0 sent", "message 1 sent", "post", "WQE fetch", "DMA read", "wire", "CQE"},
		"h2-eth0": {"received", "arrive", "DMA"},
	} {
		b, err := traced.File("traces/" + port + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("the trace of %s has no %q:\n%s", port, w, b)
			}
		}
		if n := strings.Count(string(b), "began at"); n != 2 {
			t.Errorf("the trace of %s has %d messages, want 2", port, n)
		}
	}
	if _, err := traced.File("traces/h3-eth0.txt"); err == nil {
		t.Error("a host that nobody asked of has a trace")
	}
	if _, err := plain.File("traces/h1-eth0.txt"); err == nil {
		t.Error("a run without traces has one")
	}
	for _, name := range []string{record.WorkloadsFile, record.EventsFile, record.MetricsFile} {
		a, aerr := plain.File(name)
		b, berr := traced.File(name)
		if aerr != nil || berr != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs with tracing on (%v, %v)", name, aerr, berr)
		}
	}
}
