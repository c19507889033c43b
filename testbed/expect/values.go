package expect

import (
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
)

// Workload is a workload's result as expressions see it. Rates are payload bits per second
// and durations are of fabric time.
type Workload struct {
	Bytes         int64         `cel:"bytes"`          // payload bytes of completed work requests
	GoodputBps    int64         `cel:"goodput_bps"`    // Bytes × 8 ÷ Duration
	VerifiedBytes int64         `cel:"verified_bytes"` // payload bytes found right at their destination
	WrongBytes    int64         `cel:"wrong_bytes"`    // payload bytes found wrong
	Messages      int64         `cel:"messages"`       // completed work requests
	Errors        int64         `cel:"errors"`         // work requests that completed with an error
	Retries       int64         `cel:"retries"`        // times that requesters went back and sent again
	Lost          int64         `cel:"lost"`           // messages that never arrived; UC and UD allow it
	Duplicates    int64         `cel:"duplicates"`     // messages that arrived twice
	OutOfOrder    int64         `cel:"out_of_order"`   // messages that others overtook
	Violations    int64         `cel:"violations"`     // byte outcomes that verbs semantics forbid
	Jain          float64       `cel:"jain"`           // Jain's fairness index over the flows' goodputs
	AlgBwBps      int64         `cel:"algbw_bps"`      // collectives: size × 8 ÷ time of an iteration
	BusBwBps      int64         `cel:"busbw_bps"`      // collectives: what that is on the busiest link
	Duration      time.Duration `cel:"duration"`       // from the first post to the last completion
	Passed        bool          `cel:"passed"`         // it completed, and its data is right
	Latency       Latency       `cel:"latency"`
	Flows         []Flow        `cel:"flows"`
	Statuses      []string      `cel:"statuses"` // the distinct failures, as libibverbs names them
}

// Latency are percentiles of a workload's messages, from post to completion.
type Latency struct {
	Min  time.Duration `cel:"min"`
	Mean time.Duration `cel:"mean"`
	P50  time.Duration `cel:"p50"`
	P90  time.Duration `cel:"p90"`
	P99  time.Duration `cel:"p99"`
	P999 time.Duration `cel:"p999"`
	Max  time.Duration `cel:"max"`
}

// Flow is one source and destination of a workload.
type Flow struct {
	Src        string `cel:"src"`
	Dst        string `cel:"dst"`
	Bytes      int64  `cel:"bytes"`
	GoodputBps int64  `cel:"goodput_bps"`
	Messages   int64  `cel:"messages"`
	Errors     int64  `cel:"errors"`
}

// Fault is what a fault did, as expressions see it.
type Fault struct {
	Kind     string `cel:"kind"`
	Hits     int64  `cel:"hits"`     // packets or events that it touched
	Strikes  int64  `cel:"strikes"`  // times that its schedule put it in force
	Verified bool   `cel:"verified"` // read back while in force
	Healed   bool   `cel:"healed"`   // undone, and nothing of it left
}

// Values are what a run produced.
type Values struct {
	Workloads map[string]Workload
	Faults    map[string]Fault
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
