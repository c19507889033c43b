package expect

import (
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// Values are what a run produced.
type Values struct {
	Workloads map[string]record.Workload
	Faults    map[string]record.Fault
	Metrics   *metrics.Table
}

// Names are what expressions may name in a scenario. Any workload, fault or node that isn't
// here is an error at load.
type Names struct {
	Workloads []string
	Faults    []string
	Nodes     []string
	Metrics   *metrics.Registry
}
