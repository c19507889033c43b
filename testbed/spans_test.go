package testbed

import (
	"testing"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/workloads"
)

// Readings are asked for when a workload starts or ends, and come later: what was retried meanwhile
// must not be missing.
func TestRetriesBeforeALateReadingCount(t *testing.T) {
	read := func(v float64) metrics.Reading {
		return metrics.Reading{Samples: []metrics.Sample{{Name: "completer_retry_err", Labels: []string{"h1", "eth0"}, Value: v}}}
	}
	tr := &traffic{
		r:     &run{s: &Scenario{Workloads: []workloads.Spec{{Name: "a"}, {Name: "b", After: "a"}, {Name: "c", After: "b", Start: 1}}}},
		first: read(5), last: read(40), lastDone: "c",
		spans: map[string]*span{"a": {before: 8, after: 10, ended: true}, "b": {before: 12, after: 20, ended: true}, "c": {before: 25, after: 30, ended: true}},
	}
	tr.settleSpans()
	for name, want := range map[string]float64{"a": 5, "b": 10, "c": 15} {
		if got := tr.spans[name].after - tr.spans[name].before; got != want {
			t.Errorf("workload %s: %v retries, want %v", name, got, want)
		}
	}
}
