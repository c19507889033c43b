package record

import (
	"fmt"
	"strings"
	"time"
)

// The verdicts of a run.
const (
	Pass = "pass"
	Fail = "fail"
)

// Summary is what a run comes to: the object that `run --json` prints, and what reports are
// made of. Rates are payload bits per second of fabric time, durations nanoseconds of it.
type Summary struct {
	Name     string `json:"name"`
	Verdict  string `json:"verdict"` // pass or fail
	Backend  string `json:"backend"`
	Guest    bool   `json:"guest"`
	Seed     uint64 `json:"seed"`
	Dilation uint32 `json:"dilation"` // wall time ÷ fabric time; 0 in virtual time, which has none
	// VirtualTime says that nothing waited for a clock.
	VirtualTime bool `json:"virtual_time"`
	// DilationNamed is what the scenario or the command line said: auto, or a power of two; see Manifest.
	DilationNamed string `json:"dilation_named"`
	Record        string `json:"record"` // path of the record
	Hash          string `json:"hash"`   // of its data/

	Workloads    []Workload    `json:"workloads"`
	Faults       []Fault       `json:"faults"`
	Expectations []Expectation `json:"expectations"`
	Counters     []Counter     `json:"counters"`

	// Problems are why the run failed apart from expectations: a workload that lost data, a
	// fault that hit nothing or would not heal, a machine that did not keep up.
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`

	Wall time.Duration `json:"wall_ns"` // of the whole run, wall time
}

// JSON is the summary as an object for people and programs, a key a line.
func (s *Summary) JSON() ([]byte, error) { return encode(s, "  ") }

// Slowed is the run's dilation in words.
func (s *Summary) Slowed() string {
	if s.VirtualTime {
		return "none"
	}
	return fmt.Sprint(s.Dilation)
}

// Clock says in a few words what time the run lived in.
func (s *Summary) Clock() string {
	if s.Backend == "sim" {
		return "virtual time"
	}
	return fmt.Sprintf("dilation %d", s.Dilation)
}

// Workload is a workload's result. Expectations see it, and what is in it, by the names in the tags "cel".
type Workload struct {
	Name          string `json:"name" cel:"name"`
	Kind          string `json:"kind" cel:"kind"`
	Passed        bool   `json:"passed" cel:"passed"`
	Bytes         int64  `json:"bytes" cel:"bytes"`                   // payload bytes of completed work requests
	GoodputBps    int64  `json:"goodput_bps" cel:"goodput_bps"`       // Bytes × 8 ÷ Duration
	VerifiedBytes int64  `json:"verified_bytes" cel:"verified_bytes"` // found right at their destination
	WrongBytes    int64  `json:"wrong_bytes" cel:"wrong_bytes"`       // found wrong there
	Messages      int64  `json:"messages" cel:"messages"`             // completed work requests
	Errors        int64  `json:"errors" cel:"errors"`                 // work requests that completed with an error
	// Retries is how often requesters went back and sent again while the workload ran, those of
	// workloads that ran at the same time included.
	Retries    int64         `json:"retries" cel:"retries"`
	Lost       int64         `json:"lost" cel:"lost"` // messages; UC and UD allow it
	Duplicates int64         `json:"duplicates" cel:"duplicates"`
	OutOfOrder int64         `json:"out_of_order" cel:"out_of_order"`
	Violations int64         `json:"violations" cel:"violations"`         // byte outcomes that verbs semantics forbid
	Jain       float64       `json:"jain" cel:"jain"`                     // fairness over the flows' goodputs
	AlgBwBps   int64         `json:"algbw_bps,omitempty" cel:"algbw_bps"` // of a collective: size × 8 ÷ time of an iteration
	BusBwBps   int64         `json:"busbw_bps,omitempty" cel:"busbw_bps"` // what that is on the busiest link
	Duration   time.Duration `json:"duration_ns" cel:"duration"`          // from the first post to the last completion
	Latency    Latency       `json:"latency" cel:"latency"`
	Statuses   []string      `json:"statuses" cel:"statuses"`
	Problems   []string      `json:"problems" cel:"problems"`
	Flows      []Flow        `json:"flows,omitempty" cel:"flows"`
}

// Latency are percentiles of messages, from post to completion.
type Latency struct {
	Count int64         `json:"count" cel:"count"`
	Min   time.Duration `json:"min_ns" cel:"min"`
	Mean  time.Duration `json:"mean_ns" cel:"mean"`
	P50   time.Duration `json:"p50_ns" cel:"p50"`
	P90   time.Duration `json:"p90_ns" cel:"p90"`
	P99   time.Duration `json:"p99_ns" cel:"p99"`
	P999  time.Duration `json:"p999_ns" cel:"p999"`
	Max   time.Duration `json:"max_ns" cel:"max"`
}

// Flow is one source and destination of a workload.
type Flow struct {
	Src           string        `json:"src" cel:"src"`
	Dst           string        `json:"dst" cel:"dst"`
	Bytes         int64         `json:"bytes" cel:"bytes"`
	VerifiedBytes int64         `json:"verified_bytes" cel:"verified_bytes"`
	GoodputBps    int64         `json:"goodput_bps" cel:"goodput_bps"`
	Messages      int64         `json:"messages" cel:"messages"`
	Errors        int64         `json:"errors" cel:"errors"`
	Duration      time.Duration `json:"duration_ns" cel:"duration"`
}

// Fault is what became of a planned fault, for expectations too.
type Fault struct {
	Name     string   `json:"name" cel:"name"`
	Kind     string   `json:"kind" cel:"kind"`
	At       []string `json:"at" cel:"at"`
	Hits     int64    `json:"hits" cel:"hits"`       // packets (or events) that it touched, over all strikes
	Strikes  int      `json:"strikes" cel:"strikes"` // times that its schedule put it in force
	Verified bool     `json:"verified" cel:"verified"`
	Healed   bool     `json:"healed" cel:"healed"` // undone and nothing of it left, every time
	MayMiss  bool     `json:"may_miss,omitempty" cel:"may_miss"`
	Problems []string `json:"problems" cel:"problems"`
	// Recoveries are how packets that it dropped by name were made good: of packet events, the first hundred (RecoveriesFile has all).
	Recoveries []Recovery `json:"recoveries,omitempty" cel:"recoveries"`
}

// Counter is a metric's growth over the run, summed over its series.
type Counter struct {
	Name  string  `json:"name"`
	Total float64 `json:"total"`
	// Top is the series that grew most.
	Top      string  `json:"top,omitempty"`
	TopTotal float64 `json:"top_total,omitempty"`
}

// Expectation is what became of one expectation.
type Expectation struct {
	Expr   string `json:"expr"`
	Passed bool   `json:"passed"`
	// Values are the parts of the expression and what they came to, in order of appearance.
	Values []Value `json:"values,omitempty"`
	// Err is why the expression has no value: a division by zero, a metric nobody measured.
	Err string `json:"error,omitempty"`
}

// Value is a part of an expression and what it came to.
type Value struct {
	Expr  string `json:"expr"`
	Value string `json:"value"`
}

// String is the expectation with its mark; below a failed one stands every value it saw.
func (x Expectation) String() string {
	var b strings.Builder
	mark := "✓ "
	if !x.Passed {
		mark = "✗ "
	}
	b.WriteString(mark + x.Expr)
	if x.Err != "" {
		b.WriteString("\n    " + x.Err)
	}
	if !x.Passed {
		for _, v := range x.Values {
			fmt.Fprintf(&b, "\n    %s = %s", v.Expr, v.Value)
		}
	}
	return b.String()
}
