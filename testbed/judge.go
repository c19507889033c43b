package testbed

import (
	"math"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed/expect"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/workloads"
)

// judge turns what happened into the verdict. t is nil when the fabric never came up.
func (r *run) judge(t *traffic) record.Summary {
	sum := emptySummary(r.s, r.choice, r.opt.Out)
	sum.Guest, sum.Dilation, sum.Warnings = r.opt.InGuest, r.manifest.Dilation, append(sum.Warnings, r.warnings...)
	sum.VirtualTime = r.manifest.VirtualTime
	if t != nil {
		if t.engineErr != nil {
			r.problem("workloads: %v", t.engineErr)
		}
		sum.Faults = append(sum.Faults, t.faultResults...)
		for _, w := range t.results {
			sum.Workloads = append(sum.Workloads, summarise(w, t.spans[w.Name]))
		}
		r.addOwn(t)
		sum.Counters = keyCounters(r.table)
		sum.Expectations = append(sum.Expectations, r.s.Judge(&sum, r.table)...)
	}
	for _, w := range sum.Workloads {
		if !w.Passed {
			r.problem("workload %s: %s", w.Name, strings.Join(w.Problems, "; "))
		}
	}
	for _, f := range sum.Faults {
		for _, p := range f.Problems {
			r.problem("fault %s: %s", f.Name, p)
		}
	}
	sum.Problems = append([]string{}, r.problems...)
	sum.Verdict = record.Pass
	if len(sum.Problems) > 0 {
		sum.Verdict = record.Fail
	}
	for _, x := range sum.Expectations {
		if !x.Passed {
			sum.Verdict = record.Fail
		}
	}
	return sum
}

// addOwn adds what the harness measured itself to the readings after the run.
func (r *run) addOwn(t *traffic) {
	m := metrics.Reading{Phase: metrics.After, At: t.last.At}
	add := func(name, label string, v float64) {
		m.Samples = append(m.Samples, metrics.Sample{Name: name, Labels: []string{label}, Value: v})
	}
	for _, w := range t.results {
		add("workload_bytes", w.Name, float64(w.Bytes))
		add("workload_messages", w.Name, float64(w.Messages))
		add("workload_verified_bytes", w.Name, float64(w.VerifiedBytes))
		add("workload_errors", w.Name, float64(w.Errors))
	}
	for _, f := range t.faultResults {
		add("fault_hits", f.Name, float64(f.Hits))
	}
	r.reading(m)
}

func summarise(w *workloads.Result, sp *span) record.Workload {
	out := record.Workload{
		Name: w.Name, Kind: string(w.Kind), Passed: w.Passed,
		Bytes: int64(w.Bytes), GoodputBps: whole(w.GoodputBps), VerifiedBytes: int64(w.VerifiedBytes), WrongBytes: int64(w.WrongBytes),
		Messages: int64(w.Messages), Errors: int64(w.Errors), Duration: w.Duration, Latency: latency(w.Latency),
		Lost: int64(w.Lost), Duplicates: int64(w.Duplicates), OutOfOrder: int64(w.OutOfOrder), Violations: int64(w.Violations),
		Jain: w.Jain, AlgBwBps: whole(w.AlgBwBps), BusBwBps: whole(w.BusBwBps),
		Statuses: append([]string{}, w.Statuses...), Problems: []string{},
	}
	if w.Failure != "" {
		out.Problems = append(out.Problems, w.Failure)
	}
	for i := range w.Examples {
		out.Problems = append(out.Problems, w.Examples[i].String())
	}
	if sp != nil {
		out.Retries = int64(sp.after - sp.before)
	}
	for _, f := range w.Flows {
		out.Flows = append(out.Flows, record.Flow{
			Src: f.Src, Dst: f.Dst, Bytes: int64(f.Bytes), VerifiedBytes: int64(f.VerifiedBytes), GoodputBps: whole(f.GoodputBps),
			Messages: int64(f.Messages), Errors: int64(f.Errors), Duration: f.Duration,
		})
	}
	return out
}

func whole(f float64) int64 { return int64(math.Round(f)) }

func latency(l workloads.Percentiles) record.Latency {
	return record.Latency{
		Count: int64(l.Count), Min: time.Duration(l.Min), Mean: time.Duration(l.Mean), P50: time.Duration(l.P50), P90: time.Duration(l.P90),
		P99: time.Duration(l.P99), P999: time.Duration(l.P999), Max: time.Duration(l.Max),
	}
}

// Judge says which of the scenario's expectations hold of what a run came to: a run of this scenario, or of another one with
// the same names.
func (s *Scenario) Judge(sum *record.Summary, table *metrics.Table) []record.Expectation {
	v := valuesOf(sum, table)
	var out []record.Expectation
	for _, p := range s.programs {
		out = append(out, p.Eval(v))
	}
	return out
}

// Figure is what an expression in the language of expectations comes to for such a run: a number, or a duration in
// nanoseconds.
func (s *Scenario) Figure(expr string, sum *record.Summary, table *metrics.Table) (float64, error) {
	return s.env.Number(expr, valuesOf(sum, table))
}

func valuesOf(sum *record.Summary, table *metrics.Table) expect.Values {
	v := expect.Values{Workloads: map[string]record.Workload{}, Faults: map[string]record.Fault{}, Metrics: table}
	for _, w := range sum.Workloads {
		v.Workloads[w.Name] = w
	}
	for _, f := range sum.Faults {
		v.Faults[f.Name] = f
	}
	return v
}

// keyNames are the counters that a result table shows when they moved, in order.
var keyNames = []string{
	"sent_pkts", "out_of_seq_request", "duplicate_request", "rcvd_seq_err", "completer_retry_err", "retry_exceeded_err",
	"local_ack_timeout_err", "retransmitted_packets",
	"rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err", "send_err", "link_downed",
	"qdisc_drops", "queue_drops", "port_drops", "headroom_drops", "ecn_marked", "np_cnp_sent", "rp_cnp_handled", "tx_prio_pause",
	"if_rx_dropped", "if_tx_dropped", "socket_dropped", "softnet_dropped",
}

func keyCounters(table *metrics.Table) []record.Counter {
	out := []record.Counter{}
	for _, name := range keyNames {
		all, err := table.Select(name, nil)
		if err != nil {
			continue
		}
		c := record.Counter{Name: name}
		for _, s := range all {
			if !s.Complete() {
				continue
			}
			d := s.Delta()
			c.Total += d
			if d > c.TopTotal {
				c.TopTotal, c.Top = d, strings.Join(s.Labels, ":")
			}
		}
		if c.Total != 0 {
			out = append(out, c)
		}
	}
	return out
}
