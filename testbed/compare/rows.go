package compare

import (
	"math"

	"github.com/rocebed/rocebed/testbed/record"
)

// quantity is something that is measured of a T.
type quantity[T any] struct {
	name, unit string
	of         func(*T) float64
}

var ofWorkloads = []quantity[record.Workload]{
	{"passed", "bool", func(w *record.Workload) float64 { return truth(w.Passed) }},
	{"bytes", "bytes", func(w *record.Workload) float64 { return float64(w.Bytes) }},
	{"verified_bytes", "bytes", func(w *record.Workload) float64 { return float64(w.VerifiedBytes) }},
	{"wrong_bytes", "bytes", func(w *record.Workload) float64 { return float64(w.WrongBytes) }},
	{"messages", "messages", func(w *record.Workload) float64 { return float64(w.Messages) }},
	{"goodput", "bps", func(w *record.Workload) float64 { return float64(w.GoodputBps) }},
	{"algbw", "bps", func(w *record.Workload) float64 { return float64(w.AlgBwBps) }},
	{"busbw", "bps", func(w *record.Workload) float64 { return float64(w.BusBwBps) }},
	{"jain", "1", func(w *record.Workload) float64 { return w.Jain }},
	{"duration", "ns", func(w *record.Workload) float64 { return float64(w.Duration) }},
	{"p50", "ns", func(w *record.Workload) float64 { return float64(w.Latency.P50) }},
	{"p99", "ns", func(w *record.Workload) float64 { return float64(w.Latency.P99) }},
	{"errors", "messages", func(w *record.Workload) float64 { return float64(w.Errors) }},
	{"retries", "events", func(w *record.Workload) float64 { return float64(w.Retries) }},
	{"lost", "messages", func(w *record.Workload) float64 { return float64(w.Lost) }},
	{"duplicates", "messages", func(w *record.Workload) float64 { return float64(w.Duplicates) }},
	{"out_of_order", "messages", func(w *record.Workload) float64 { return float64(w.OutOfOrder) }},
	{"violations", "events", func(w *record.Workload) float64 { return float64(w.Violations) }},
}

var ofFaults = []quantity[record.Fault]{
	{"hits", "packets", func(f *record.Fault) float64 { return float64(f.Hits) }},
	{"strikes", "events", func(f *record.Fault) float64 { return float64(f.Strikes) }},
	{"verified", "bool", func(f *record.Fault) float64 { return truth(f.Verified) }},
	{"healed", "bool", func(f *record.Fault) float64 { return truth(f.Healed) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func newRows[T any](runs int, all []quantity[T]) []Row {
	rows := make([]Row, len(all))
	for i, q := range all {
		rows[i] = Row{Name: q.name, Unit: q.unit, Values: make([]*float64, runs)}
	}
	return rows
}

func set[T any](rows []Row, run int, all []quantity[T], x *T) {
	for i, q := range all {
		v := q.of(x)
		rows[i].Values[run] = &v
	}
}

// MeasureRatio is how far apart two measured rates or times must be to count as different. Below it lie runs of one backend, on a
// machine that others use too.
const MeasureRatio = 1.25

// chance is how many standard deviations two counts must lie apart, each taken as Poisson's.
const chance = 3

// exact are counts that follow from the scenario: any difference counts.
var exact = map[string]bool{"bytes": true, "verified_bytes": true, "wrong_bytes": true, "messages": true, "errors": true, "strikes": true, "violations": true}

// judge says how far apart a row's values are. Truths and what a scenario fixes differ when they aren't equal; rates,
// times and shares from MeasureRatio on; counts when they lie further apart than chance would put them.
func (r *Row) judge() {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range r.Values {
		if v != nil {
			least, most = min(least, *v), max(most, *v)
		}
	}
	if !(most > least) {
		return // all the same, or none
	}
	if least > 0 {
		r.Ratio = most / least
	}
	switch {
	case r.Unit == "bool" || exact[r.Name]:
		r.Differs = true
	case r.Unit == "bps" || r.Unit == "ns" || r.Unit == "1":
		r.Differs = least <= 0 || r.Ratio >= MeasureRatio
	case r.Unit == "bytes":
		r.Differs = least <= 0 || r.Ratio >= MeasureRatio // of packets, which come in numbers
	default:
		r.Differs = most-least > chance*math.Sqrt(most+least)
	}
}
