package workloads

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Result is what a workload did. All times are fabric time.
type Result struct {
	Name   string `json:"name"`
	Kind   Kind   `json:"kind"`
	Passed bool   `json:"passed"`
	// Failure says why it didn't pass; empty when it did.
	Failure string `json:"failure,omitempty"`
	Stopped bool   `json:"stopped,omitempty"` // wound down early by Stop
	// TearDown says what could not be destroyed; it is in Failure, too, unless something else failed before.
	TearDown error `json:"-"`

	Start    loop.Time     `json:"start_ns"`    // the first post
	End      loop.Time     `json:"end_ns"`      // the last completion
	Duration time.Duration `json:"duration_ns"` // End − Start; of a collective, the iterations without the pauses between them

	Bytes         uint64      `json:"bytes"`          // payload of successful work requests (UC, UD: of messages that arrived)
	VerifiedBytes uint64      `json:"verified_bytes"` // found right at their destination
	WrongBytes    uint64      `json:"wrong_bytes"`
	Messages      uint64      `json:"messages"`    // completed work requests
	GoodputBps    float64     `json:"goodput_bps"` // Bytes × 8 ÷ Duration; with Spec.WarmUp, of what was over between that and Spec.Duration
	Latency       Percentiles `json:"latency"`     // from post to completion, as the requester saw it: on RC a full round trip

	Errors   uint64   `json:"errors"`             // work requests that completed with an error, flushed ones included
	Statuses []string `json:"statuses,omitempty"` // the distinct errors, as libibverbs names them

	// UC and UD: the specification allows all three.
	Lost       uint64 `json:"lost"`
	Duplicates uint64 `json:"duplicates"`
	OutOfOrder uint64 `json:"out_of_order"`

	Violations uint64      `json:"violations"`
	Examples   []Violation `json:"examples,omitempty"` // the first violations

	// Jain is Jain's fairness index over the flows' goodputs: 1 all equal, 1/n one has all
	// (Jain, Chiu and Hawe, DEC TR-301, 1984).
	Jain float64 `json:"jain"`

	// Collectives only. AlgBwBps is Size × 8 ÷ time of an iteration, BusBwBps that times
	// 2(n−1)/n (all-reduce) or (n−1)/n (all-to-all), as NCCL's tests report.
	Ranks      int     `json:"ranks,omitempty"`
	Iterations uint64  `json:"iterations,omitempty"`
	AlgBwBps   float64 `json:"algbw_bps,omitempty"`
	BusBwBps   float64 `json:"busbw_bps,omitempty"`
	// SetupTime is how long queue pairs and memory took, from the first call to the last QP in RTS.
	SetupTime time.Duration `json:"setup_ns"`

	Flows []FlowResult `json:"flows"`
}

// FlowResult is one queue pair's part of a workload.
type FlowResult struct {
	Src           string        `json:"src"` // the NIC that data comes from, "h1:eth0"
	Dst           string        `json:"dst"`
	Index         int           `json:"index"` // in the workload, from 0
	SrcQPN        uint32        `json:"src_qpn"`
	DstQPN        uint32        `json:"dst_qpn"`
	Start         loop.Time     `json:"start_ns"`
	End           loop.Time     `json:"end_ns"`
	Duration      time.Duration `json:"duration_ns"`
	Bytes         uint64        `json:"bytes"`
	VerifiedBytes uint64        `json:"verified_bytes"`
	WrongBytes    uint64        `json:"wrong_bytes"`
	Messages      uint64        `json:"messages"`
	GoodputBps    float64       `json:"goodput_bps"`
	Share         float64       `json:"share"` // of the workload's bytes
	Latency       Percentiles   `json:"latency"`
	Errors        uint64        `json:"errors"`
	Status        string        `json:"status,omitempty"` // the error the flow ended with, as libibverbs names it
	Failure       string        `json:"failure,omitempty"`
	Killed        bool          `json:"killed,omitempty"` // the process of one of its ends was killed, which explains the failure
	Lost          uint64        `json:"lost"`
	Duplicates    uint64        `json:"duplicates"`
	OutOfOrder    uint64        `json:"out_of_order"`
}

// Percentiles are those of an HDR histogram with three significant digits, in ns of fabric time.
type Percentiles struct {
	Count uint64  `json:"count"`
	Min   int64   `json:"min_ns"`
	Mean  float64 `json:"mean_ns"`
	P50   int64   `json:"p50_ns"`
	P90   int64   `json:"p90_ns"`
	P99   int64   `json:"p99_ns"`
	P999  int64   `json:"p999_ns"`
	Max   int64   `json:"max_ns"`
}

// newHistogram counts latencies from 1 ns to 1000 s.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(1000*time.Second), 3)
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	if h.TotalCount() == 0 {
		return Percentiles{}
	}
	return Percentiles{
		Count: uint64(h.TotalCount()),
		Min:   h.Min(), Mean: h.Mean(),
		P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90), P99: h.ValueAtQuantile(99), P999: h.ValueAtQuantile(99.9),
		Max: h.Max(),
	}
}

// Jain is Jain's fairness index of some shares: (Σx)² ÷ (n·Σx²). It is 1 when all are equal,
// and when there are none.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

func goodput(bytes uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) * 8 / d.Seconds()
}
