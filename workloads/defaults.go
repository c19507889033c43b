package workloads

import (
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// What a spec leaves open. See Spec for what users are told.
const (
	defaultSize           = 64 << 10
	defaultCollectiveSize = 1 << 20
	defaultSlice          = 64 << 10
	defaultOutstanding    = 512 << 10
	defaultTimeout        = 9
	defaultRetryCnt       = 6
	defaultRNRRetry       = 7
	defaultMinRNRTimer    = 12
	defaultRDAtomic       = 16
	defaultTrafficClass   = 106
)

// TrafficClass is that of a workload's packets: DSCP × 4 + ECN.
func TrafficClass(s *Spec) uint8 { return uint8(value(s.QP.TrafficClass, defaultTrafficClass)) }

// op is what the workload's queue pairs do.
func (s *Spec) op() Op {
	switch s.Kind {
	case Write, Read, Send, Atomic:
		return Op(s.Kind)
	}
	if s.Op != "" {
		return s.Op
	}
	return OpWrite
}

func (s *Spec) transport() verbs.QPType {
	switch s.Transport {
	case UC:
		return verbs.UC
	case UD:
		return verbs.UD
	}
	return verbs.RC
}

// size is the message size, or a rank's buffer; a UD message is at most the MTU.
func (s *Spec) size(mtu int) int {
	switch {
	case s.op() == OpAtomic && !s.Collective():
		return 8
	case s.Size != 0:
		return int(s.Size)
	case s.Collective():
		return defaultCollectiveSize
	case s.Transport == UD:
		return mtu
	case s.Mode == Latency:
		return 8
	}
	return defaultSize
}

func (s *Spec) depth(mtu int) int {
	if s.Mode == Latency {
		return 1
	}
	if s.Depth != 0 {
		return s.Depth
	}
	size := s.size(mtu)
	if s.Collective() {
		size = s.slice()
	}
	return min(max(defaultOutstanding/size, 2), 16)
}

// slots is how many messages fit the receiving end: one set under way while another is checked.
func (s *Spec) slots(mtu int) int { return 2 * s.depth(mtu) }

func (s *Spec) slice() int {
	if s.Slice != 0 {
		return int(s.Slice)
	}
	return defaultSlice
}

func (s *Spec) qps() int { return max(s.QPs, 1) }

// messages is how many messages a queue pair sends; without a count, more than it ever will.
func (s *Spec) messages(size int) uint64 {
	switch {
	case s.Messages > 0:
		return uint64(s.Messages)
	case s.Bytes > 0:
		return (uint64(s.Bytes) + uint64(size) - 1) / uint64(size)
	}
	return 1 << 62
}

func value(p *int, def int) int {
	if p == nil {
		return def
	}
	return *p
}

// retryBudget is how long a requester may take to give up: a local ACK timeout of up to four
// times its value (InfiniBand specification 9.7.6.1.3) for the first try and each retry, and the
// RNR delays, of which "for ever" counts as a hundred. A retry_cnt of 7 is seven retries, as the
// specification has it: what a device makes of it beyond that is for the stall deadline to end.
func (s *Spec) retryBudget() time.Duration {
	tries := value(s.QP.RetryCnt, defaultRetryCnt) + 1
	rnr := value(s.QP.RNRRetry, defaultRNRRetry)
	if rnr == 7 {
		rnr = 100
	}
	ack := 4 * verbs.AckTimeout(uint8(value(s.QP.Timeout, defaultTimeout)))
	return time.Duration(tries)*ack + time.Duration(rnr)*verbs.RNRDelay[value(s.QP.MinRNRTimer, defaultMinRNRTimer)] + s.ReceiveDelay
}

// attr are the attributes of one of the workload's queue pairs, without what is the peer's.
func (s *Spec) attr(dev verbs.DeviceAttr, mtu, index int) verbs.QPAttr {
	rd := s.QP.MaxRDAtomic
	if rd == 0 {
		rd = defaultRDAtomic
		for _, most := range []int{dev.MaxQPRDAtomic, dev.MaxQPInitRDAtomic} {
			if most > 0 {
				rd = min(rd, most)
			}
		}
	}
	label := 0
	if s.QP.FlowLabel != 0 {
		label = (s.QP.FlowLabel + index) & (1<<20 - 1)
	}
	return verbs.QPAttr{
		PathMTU:         mtu,
		MaxRDAtomic:     rd,
		MaxDestRDAtomic: rd,
		Timeout:         uint8(value(s.QP.Timeout, defaultTimeout)),
		RetryCnt:        uint8(value(s.QP.RetryCnt, defaultRetryCnt)),
		RNRRetry:        uint8(value(s.QP.RNRRetry, defaultRNRRetry)),
		MinRNRTimer:     uint8(value(s.QP.MinRNRTimer, defaultMinRNRTimer)),
		AH:              verbs.AHAttr{HopLimit: 64, TrafficClass: TrafficClass(s), FlowLabel: uint32(label)},
	}
}

// statusNames are the words of expect_error; libibverbs' names are taken too.
var statusNames = []struct {
	name   string
	status verbs.Status
}{
	{"local-length", verbs.LocLenErr},
	{"local-qp-operation", verbs.LocQPOpErr},
	{"local-protection", verbs.LocProtErr},
	{"flushed", verbs.WRFlushErr},
	{"bad-response", verbs.BadRespErr},
	{"local-access", verbs.LocAccessErr},
	{"remote-invalid-request", verbs.RemInvReqErr},
	{"remote-access", verbs.RemAccessErr},
	{"remote-operation", verbs.RemOpErr},
	{"retry-exceeded", verbs.RetryExcErr},
	{"rnr-retry-exceeded", verbs.RNRRetryExcErr},
	{"remote-abort", verbs.RemAbortErr},
	{"fatal", verbs.FatalErr},
	{"response-timeout", verbs.RespTimeoutErr},
	{"general", verbs.GeneralErr},
}

// Statuses lists the names that expect_error takes, besides libibverbs' own (RETRY_EXC_ERR).
func Statuses() []string {
	var out []string
	for _, s := range statusNames {
		out = append(out, s.name)
	}
	return out
}

func statusNamed(name string) (verbs.Status, bool) {
	for _, s := range statusNames {
		if name == s.name || strings.TrimPrefix(name, "IBV_WC_") == s.status.String() {
			return s.status, true
		}
	}
	return 0, false
}

func itoa(i int) string { return strconv.Itoa(i) }

func portName(p topo.PortRef) string { return p.Node + ":" + p.Port }

// AckTimeout is the local ACK timeout of the workload's queue pairs, fabric time; 0: none.
func (s *Spec) AckTimeout() time.Duration {
	return verbs.AckTimeout(uint8(value(s.QP.Timeout, defaultTimeout)))
}

// steady says whether what is over so long after the start counts towards the goodput.
func (s *Spec) steady(since time.Duration) bool {
	return s.WarmUp > 0 && since >= s.WarmUp && since < s.Duration
}
