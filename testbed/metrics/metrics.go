// Package metrics is the one registry of what rocebed measures: name, labels, unit, kind
// and meaning. Expectations, reports, Prometheus and JUnit all read from it.
//
// It imports no other room: drivers produce samples of registered metrics, records keep them.
package metrics

// Kind says how a metric moves.
type Kind string

// The metric kinds.
const (
	Counter Kind = "counter" // only grows
	Gauge   Kind = "gauge"
)

// Desc is what a metric is.
type Desc struct {
	Name   string   // snake_case, the field's own name where there is one: out_of_seq_request
	Labels []string // in order: node, port, …
	Unit   string   // "packets", "bytes", "ns", "1"
	Kind   Kind
	Help   string // what it means, in a sentence
	Source string // where it is read: hw_counters, qdisc, interface, workload…
}

// Sample is one reading. Labels are values in the order of Desc.Labels.
type Sample struct {
	Name   string
	Labels []string
	Value  float64
}
