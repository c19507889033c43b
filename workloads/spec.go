package workloads

import (
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Kind is what a workload does.
type Kind string

// The workload kinds. The first four run between NICs that From and To name: From is the
// requester, To the responder.
const (
	Write  Kind = "write"  // RDMA WRITE: From writes into To's memory
	Read   Kind = "read"   // RDMA READ: From reads To's memory
	Send   Kind = "send"   // SEND into receives that To has posted
	Atomic Kind = "atomic" // FETCH_ADD or CMP_SWAP on To's memory

	// Incast moves data from every NIC of From to the one NIC of To at once; with op read, To
	// reads from all of them.
	Incast Kind = "incast"
	// AllPairs runs a flow from every NIC of From to every other host's NICs of From.
	AllPairs Kind = "all-pairs"

	// AllReduce and AllToAll run over GPU ranks.
	AllReduce Kind = "all-reduce"
	AllToAll  Kind = "all-to-all"
)

// Op is the verbs operation of an incast or an all-pairs workload.
type Op string

// The operations.
const (
	OpWrite  Op = "write"
	OpRead   Op = "read"
	OpSend   Op = "send"
	OpAtomic Op = "atomic"
)

// Mode says what a workload is after.
type Mode string

// The modes. Bandwidth keeps Depth messages outstanding; Latency one, and measures each from
// its post to its completion.
const (
	Bandwidth Mode = "bandwidth"
	Latency   Mode = "latency"
)

// Transport is the service of a workload's queue pairs.
type Transport string

// The transports. READ and atomics need rc; ud carries SENDs of at most one MTU.
const (
	RC Transport = "rc"
	UC Transport = "uc"
	UD Transport = "ud"
)

// Pairing says how From and To are joined.
type Pairing string

// The pairings.
const (
	Zip   Pairing = "zip"   // the i-th of From with the i-th of To
	Cross Pairing = "cross" // each of From with each of To on another host
)

// AtomicOp is the atomic operation.
type AtomicOp string

// The atomic operations.
const (
	FetchAdd AtomicOp = "fetch_add"
	CmpSwap  AtomicOp = "cmp_swap"
)

// DataType is the element type of an all-reduce. Both are summed exactly: int32 wraps around,
// and the float32 values are whole numbers whose sums stay below 2^24.
type DataType string

// The data types.
const (
	Int32   DataType = "int32"
	Float32 DataType = "float32"
)

// Signaling says which send work requests ask for a completion.
type Signaling string

// The signaling choices.
const (
	SignalAll       Signaling = "all"
	SignalSelective Signaling = "selective" // one in depth/2: completions are implied for those before
)

// Spec is one workload of a scenario. Keys that its kind doesn't use must be absent; Check
// says so. Exactly one of Bytes, Messages and Duration says how much. Times are fabric time.
type Spec struct {
	Name string `yaml:"name"`
	Kind Kind   `yaml:"kind"`
	Mode Mode   `yaml:"mode"` // default bandwidth
	// Op of incast and all-pairs; default write.
	Op        Op        `yaml:"op"`
	Transport Transport `yaml:"transport"` // default rc

	// From and To select NICs: "h1" (all of a host), "h1:eth0", globs "h*:eth0". An all-pairs
	// workload uses From alone; empty is every NIC of the topology.
	From    []string `yaml:"from"`
	To      []string `yaml:"to"`
	Pairing Pairing  `yaml:"pairing"` // default zip for equal numbers, cross where one side is one NIC
	// Ranks selects the GPUs of a collective in ring order: "h1" (all of a host), "h1:gpu0", "h*". Empty
	// is every GPU of the topology, by host and number.
	Ranks []string `yaml:"ranks"`

	// Size is the message size; of a collective, the buffer of one rank. Default 64KiB
	// (bandwidth), 8 (atomics: always), 1MiB (collectives), the MTU at most (ud).
	Size topo.Bytes `yaml:"size,nonzero"`
	// Slice is the message a collective's chunk is cut into (default 64KiB).
	Slice topo.Bytes `yaml:"slice,nonzero"`
	QPs   int        `yaml:"qps,nonzero"`   // queue pairs a pair of NICs (default 1)
	Depth int        `yaml:"depth,nonzero"` // messages outstanding a QP (default: 512KiB worth, 2 to 16)

	Bytes    topo.Bytes    `yaml:"bytes"`    // a QP, rounded up to whole messages
	Messages int           `yaml:"messages"` // a QP; of a collective, its iterations
	Duration time.Duration `yaml:"duration"`
	// WarmUp is a part of Duration, from its start, that goodputs and Jain's index leave out: they are over the rest.
	WarmUp time.Duration `yaml:"warm_up"`

	Start time.Duration `yaml:"start"` // since the workloads started, or since After finished
	After string        `yaml:"after"` // the workload that must have finished first

	Signaling Signaling `yaml:"signaling"` // default all
	Atomic    AtomicOp  `yaml:"atomic"`    // default fetch_add
	DataType  DataType  `yaml:"data_type"` // default int32
	// ReceiveDelay posts a send workload's receives this long after the start, without credits:
	// until then the responder answers RNR NAK.
	ReceiveDelay time.Duration `yaml:"receive_delay"`
	// Verify may be false to measure what checking costs; then nothing is claimed about bytes.
	Verify *bool `yaml:"verify"`

	QP QPSpec `yaml:"qp"`
	// ExpectError is the completion status that at least one QP must end with, such as
	// "retry-exceeded"; then it, and work flushed behind it, doesn't fail the run. Statuses lists the names.
	ExpectError string `yaml:"expect_error"`
	// StallTimeout is how long a flow may stand still before it is given up (default: a multiple of
	// what the QP's retries can take).
	StallTimeout time.Duration `yaml:"stall_timeout"`
}

// QPSpec are the queue pair attributes a workload may choose. A nil pointer is the default.
type QPSpec struct {
	Timeout      *int `yaml:"timeout"`               // 0…31: local ACK timeout 4.096 µs × 2^n, 0 = none; default 9 (2.1 ms)
	RetryCnt     *int `yaml:"retry_cnt"`             // 0…7; default 6 (7 means for ever on some devices)
	RNRRetry     *int `yaml:"rnr_retry"`             // 0…7, 7 = for ever; default 7
	MinRNRTimer  *int `yaml:"min_rnr_timer"`         // 0…31, index into the specification's table; default 12 (0.64 ms)
	MTU          int  `yaml:"mtu,nonzero"`           // 256 … 4096; default what both ports have
	MaxRDAtomic  int  `yaml:"max_rd_atomic,nonzero"` // READs and atomics outstanding; default 16, or what the device has
	TrafficClass *int `yaml:"traffic_class"`         // 0…255: 106 = DSCP 26 + ECT(0), the default
	FlowLabel    int  `yaml:"flow_label"`            // 20 bits; QP i of a workload gets FlowLabel + i
}

// Verified says whether the workload checks payloads.
func (s *Spec) Verified() bool { return s.Verify == nil || *s.Verify }

// Collective says whether the workload runs over GPU ranks.
func (s *Spec) Collective() bool { return s.Kind == AllReduce || s.Kind == AllToAll }
