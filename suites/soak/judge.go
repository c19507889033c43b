package soak

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/workloads"
)

// Judge says what of a run nothing in its scenario excuses.
//
//   - No byte is wrong, and no outcome is one that verbs forbid.
//   - A workload fails for want of retries alone, or, on UC and UD, because nothing arrived; and only where packets were lost
//     or late: dropped in a queue, hit by a fault, waiting longer than its timer. Where pause can close a circle (topo.Plan.BufferCycle)
//     it may also stand still for ever.
//   - Faults strike, are verified, heal, and are gone.
//   - Packets come from somewhere and go somewhere, to the last one (account).
//   - Where every hop pauses and nothing goes wrong, no queue drops anything.
func Judge(s *testbed.Scenario, r *Result) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	excused := map[string]bool{}
	for i := range r.Summary.Workloads {
		w := &r.Summary.Workloads[i]
		if w.WrongBytes > 0 || w.Violations > 0 {
			add("workload %s: %d bytes are wrong, %d outcomes are none that verbs allow: %q", w.Name, w.WrongBytes, w.Violations, w.Problems)
		}
		if !w.Passed && mayFail(s, r, w) {
			excused[w.Name] = true
		}
	}
	for _, p := range r.Summary.Problems {
		name, _, _ := strings.Cut(strings.TrimPrefix(p, "workload "), ":")
		if !strings.HasPrefix(p, "workload ") || !excused[name] {
			add("problem: %s", p)
		}
	}
	for _, f := range r.Summary.Faults {
		if f.Strikes > 0 && !(f.Verified && f.Healed) {
			add("fault %s struck %d times, verified %v, healed %v", f.Name, f.Strikes, f.Verified, f.Healed)
		}
	}
	if len(r.Summary.Workloads) != len(s.Workloads) {
		add("%d workloads have results, the scenario has %d", len(r.Summary.Workloads), len(s.Workloads))
	}
	errs = append(errs, account(s, r), lossless(s, r))
	return errors.Join(errs...)
}

// mayFail says whether a workload that failed is excused.
func mayFail(s *testbed.Scenario, r *Result, w *record.Workload) bool {
	if deadlocks(s) {
		return true
	}
	lost := drops(r) > 0 || len(s.Faults) > 0 || r.Count("rx_prio_buf_discard", nil) > 0 || r.Count("local_ack_timeout_err", nil) > 0
	i := slices.IndexFunc(s.Workloads, func(x workloads.Spec) bool { return x.Name == w.Name })
	if i < 0 || !lost {
		return false
	}
	if t := s.Workloads[i].Transport; t == workloads.UC || t == workloads.UD {
		return len(w.Statuses) == 0
	}
	for _, status := range w.Statuses {
		if !slices.Contains([]string{"RETRY_EXC_ERR", "WR_FLUSH_ERR"}, status) {
			return false
		}
	}
	// One that came after another that failed has not run.
	return slices.Contains(w.Statuses, "RETRY_EXC_ERR") || s.Workloads[i].After != ""
}

// deadlocks says that pause may close a circle of buffers.
func deadlocks(s *testbed.Scenario) bool {
	return s.Switches.PFC != nil && len(s.Plan.BufferCycle()) > 0
}

// drops are the frames that switches had no room or no way for.
func drops(r *Result) int64 {
	return r.Count("port_drops", nil)
}

// account holds packets of NICs against each other: each that was sent, or doubled, arrived, was dropped by a switch or for want of room in a NIC, lost
// by a fault, or damaged by one and thrown away; or it is still on its way when the run ends. That can be where faults hold packets back,
// where a requester's timer ran out, so that copies of what had long arrived stand in queues, and in a deadlock. Of a cut link nobody counts what was on it, and with
// pauses a loss hits pause frames too.
func account(s *testbed.Scenario, r *Result) error {
	sent := r.Count("sent_pkts", nil)
	came := r.Count("rcvd_pkts", nil) + drops(r) + r.Count("rx_prio_buf_discard", nil) + r.Count("rx_icrc_encapsulated", nil)
	underway := r.Count("local_ack_timeout_err", nil) > 0 || deadlocks(s)
	for _, f := range s.Faults {
		hits := r.Count("fault_hits", map[string]string{"fault": f.Name})
		switch f.Kind {
		case faults.Corrupt:
		case faults.Duplicate:
			sent += hits
		case faults.Loss:
			if came += hits; s.Switches.PFC != nil {
				return nil
			}
		case faults.LinkDown, faults.LinkFlap:
			return nil
		default:
			underway = true
		}
	}
	if came > sent || came < sent && !underway {
		return fmt.Errorf("%d packets were sent or doubled, of %d something is known", sent, came)
	}
	return nil
}

// lossless says what was dropped where nothing may be.
func lossless(s *testbed.Scenario, r *Result) error {
	if s.Switches.PFC == nil || s.Switches.Watchdog != nil || len(s.Faults) > 0 {
		return nil
	}
	if n := r.Count("queue_drops", nil) + r.Count("headroom_drops", nil); n > 0 {
		return fmt.Errorf("every hop pauses, and %d frames were dropped", n)
	}
	return nil
}
