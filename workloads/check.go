package workloads

import (
	"errors"
	"slices"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// maxMessage is the largest message: InfiniBand's 2^31 bytes.
const maxMessage topo.Bytes = 1 << 31

// maxMemory bounds what one workload may ask of one end of a queue pair.
const maxMemory = 1 << 30

// maxQueuePairs bounds what one workload may make; that many take tens of gigabytes.
const maxQueuePairs = 1 << 16

// Check says what is wrong with a workload on a topology, before anything is created. Every
// problem is a strict.PathError whose path is the key that is wrong; several are joined.
func Check(s Spec, t *topo.Topology) error {
	c := &checker{s: &s, t: t}
	if s.Name == "" {
		c.wrong("name", "a workload needs a name")
	}
	if !slices.Contains(kinds, s.Kind) {
		c.wrong("kind", "%q is no kind of workload%s", s.Kind, strict.DidYouMean(string(s.Kind), texts(kinds)))
		return errors.Join(c.errs...)
	}
	c.unused()
	c.choices()
	c.amounts()
	c.times()
	c.qp()
	if len(c.errs) == 0 {
		c.places()
	}
	return errors.Join(c.errs...)
}

// CheckAll checks each workload, and that names are unique and every After names another
// workload without going round in a circle. Paths begin with the workload's index: "[2].size".
func CheckAll(specs []Spec, t *topo.Topology) error {
	var errs []error
	first := map[string]int{}
	for i, s := range specs {
		at := "[" + itoa(i) + "]"
		if err := Check(s, t); err != nil {
			errs = append(errs, strict.Under(at, err))
		}
		if j, ok := first[s.Name]; ok && s.Name != "" {
			errs = append(errs, strict.At(at+".name", "%q is the name of workload %d too", s.Name, j))
		} else {
			first[s.Name] = i
		}
	}
	for i, s := range specs {
		if s.After == "" {
			continue
		}
		at := "[" + itoa(i) + "].after"
		j, ok := first[s.After]
		if !ok {
			errs = append(errs, strict.At(at, "there is no workload %q%s", s.After, strict.DidYouMean(s.After, names(specs))))
			continue
		}
		for steps := 0; ok && specs[j].After != "" && steps <= len(specs); steps++ {
			if j == i {
				break
			}
			j, ok = first[specs[j].After]
		}
		if j == i {
			errs = append(errs, strict.At(at, "%q waits for itself", s.Name))
		}
	}
	return errors.Join(errs...)
}

type checker struct {
	s    *Spec
	t    *topo.Topology
	errs []error
}

func (c *checker) wrong(key, format string, args ...any) {
	c.errs = append(c.errs, strict.At(key, format, args...))
}

var (
	kinds = []Kind{Write, Read, Send, Atomic, Incast, AllPairs, AllReduce, AllToAll}
	ops   = []Op{OpWrite, OpRead, OpSend, OpAtomic}
)

// unused refuses keys that the kind has no use for.
func (c *checker) unused() {
	s := c.s
	pairs, coll, op := !s.Collective(), s.Collective(), s.op()
	for _, k := range []struct {
		key  string
		set  bool
		used bool
	}{
		{"op", s.Op != "", s.Kind == Incast || s.Kind == AllPairs},
		{"mode", s.Mode != "", pairs},
		{"transport", s.Transport != "", pairs},
		{"from", len(s.From) > 0, pairs},
		{"to", len(s.To) > 0, pairs && s.Kind != AllPairs},
		{"pairing", s.Pairing != "", pairs && s.Kind != AllPairs && s.Kind != Incast},
		{"ranks", len(s.Ranks) > 0, coll},
		{"slice", s.Slice != 0, coll},
		{"bytes", s.Bytes != 0, pairs},
		{"signaling", s.Signaling != "", pairs},
		{"atomic", s.Atomic != "", op == OpAtomic},
		{"data_type", s.DataType != "", s.Kind == AllReduce},
		{"receive_delay", s.ReceiveDelay != 0, op == OpSend},
	} {
		if k.set && !k.used {
			c.wrong(k.key, "a %s workload doesn't use it", s.Kind)
		}
	}
}

func (c *checker) choices() {
	s := c.s
	oneOf(c, "op", s.Op, ops)
	oneOf(c, "mode", s.Mode, []Mode{Bandwidth, Latency})
	oneOf(c, "transport", s.Transport, []Transport{RC, UC, UD})
	oneOf(c, "pairing", s.Pairing, []Pairing{Zip, Cross})
	oneOf(c, "atomic", s.Atomic, []AtomicOp{FetchAdd, CmpSwap})
	oneOf(c, "data_type", s.DataType, []DataType{Int32, Float32})
	oneOf(c, "signaling", s.Signaling, []Signaling{SignalAll, SignalSelective})
	if s.ExpectError != "" {
		if _, ok := statusNamed(s.ExpectError); !ok {
			c.wrong("expect_error", "%q is no completion status%s", s.ExpectError, strict.DidYouMean(s.ExpectError, Statuses()))
		}
	}
	switch op := s.op(); {
	case s.Transport == UC && (op == OpRead || op == OpAtomic):
		c.wrong("transport", "uc carries no %s (rc does)", op)
	case s.Transport == UD && op != OpSend:
		c.wrong("transport", "ud carries SENDs only, not %s", op)
	}
	if s.Mode == Latency && s.Depth > 1 {
		c.wrong("depth", "a latency workload has one message outstanding")
	}
	if s.Transport != "" && s.Transport != RC && s.ReceiveDelay != 0 {
		c.wrong("receive_delay", "only rc has RNR NAKs")
	}
}

func oneOf[T ~string](c *checker, key string, v T, all []T) {
	if v != "" && !slices.Contains(all, v) {
		c.wrong(key, "%q is none of its values%s", v, strict.DidYouMean(string(v), texts(all)))
	}
}

func (c *checker) amounts() {
	s := c.s
	given := 0
	for _, set := range []bool{s.Bytes != 0, s.Messages != 0, s.Duration != 0} {
		if set {
			given++
		}
	}
	how := "bytes, messages and duration"
	if s.Collective() {
		how = "messages (iterations) and duration"
	}
	switch {
	case given == 0:
		c.wrong("messages", "say how much, by one of %s", how)
	case given > 1:
		c.wrong("messages", "say how much by only one of %s", how)
	}
	if s.Messages < 0 {
		c.wrong("messages", "must not be negative")
	}
	if s.Size > maxMessage {
		c.wrong("size", "a message has at most %v", maxMessage)
	}
	if s.op() == OpAtomic && s.Size != 0 && s.Size != 8 {
		c.wrong("size", "an atomic works on 8 bytes")
	}
	if s.QPs < 0 || s.QPs > 1024 {
		c.wrong("qps", "must be between 1 and 1024")
	}
	if s.Depth < 0 || s.Depth > 4096 {
		c.wrong("depth", "must be between 1 and 4096")
	} else if !s.Collective() {
		if size, slots := uint64(s.size(4096)), uint64(s.slots(4096)); size*slots > maxMemory {
			c.wrong("depth", "%d buffers of %v are more than %v an end of a queue pair", slots, topo.Bytes(size), topo.Bytes(maxMemory))
		}
	} else if s.size(0) > maxMemory {
		c.wrong("size", "a rank's buffer has at most %v", topo.Bytes(maxMemory))
	}
	if s.Kind == AllReduce && s.Size%4 != 0 {
		c.wrong("size", "must be whole elements of 4 bytes")
	}
	if s.Slice != 0 && (s.Slice < 4 || s.Slice%4 != 0 || s.Slice > 1<<24) {
		c.wrong("slice", "must be a multiple of 4 bytes, at most 16MiB")
	}
}

func (c *checker) times() {
	s := c.s
	for _, d := range []struct {
		key string
		d   time.Duration
	}{{"duration", s.Duration}, {"start", s.Start}, {"warm_up", s.WarmUp}, {"receive_delay", s.ReceiveDelay}, {"stall_timeout", s.StallTimeout}} {
		if d.d < 0 {
			c.wrong(d.key, "must not be negative")
		}
	}
	switch {
	case s.WarmUp == 0:
	case s.Collective() || s.transport() != verbs.RC:
		c.wrong("warm_up", "goodput is over a part of the time only where rc queue pairs tell when each message was over")
	case s.WarmUp >= s.Duration:
		c.wrong("warm_up", "must be shorter than the duration")
	}
	if s.After != "" && s.After == s.Name {
		c.wrong("after", "%q waits for itself", s.Name)
	}
}

func (c *checker) qp() {
	q := &c.s.QP
	for _, f := range []struct {
		key string
		v   *int
		max int
	}{
		{"timeout", q.Timeout, verbs.MaxTimeout}, {"retry_cnt", q.RetryCnt, 7}, {"rnr_retry", q.RNRRetry, 7},
		{"min_rnr_timer", q.MinRNRTimer, 31},
	} {
		if f.v != nil && (*f.v < 0 || *f.v > f.max) {
			c.wrong("qp."+f.key, "must be between 0 and %d", f.max)
		}
		if f.v != nil && c.s.Transport != "" && c.s.Transport != RC {
			c.wrong("qp."+f.key, "only rc has it")
		}
	}
	if !slices.Contains([]int{0, 256, 512, 1024, 2048, 4096}, q.MTU) {
		c.wrong("qp.mtu", "must be 256, 512, 1024, 2048 or 4096")
	}
	if q.MaxRDAtomic < 0 || q.MaxRDAtomic > 255 {
		c.wrong("qp.max_rd_atomic", "must be between 1 and 255")
	}
	if tc := value(q.TrafficClass, 0); tc < 0 || tc > 255 {
		c.wrong("qp.traffic_class", "must be between 0 and 255")
	}
	if q.FlowLabel < 0 || q.FlowLabel >= 1<<20 {
		c.wrong("qp.flow_label", "must have at most 20 bits")
	}
	if ud := c.s.Transport == UD; ud && q.MTU != 0 && c.s.Size > topo.Bytes(q.MTU) {
		c.wrong("size", "ud carries at most one MTU a message (%d bytes)", q.MTU)
	} else if ud && c.s.Size > 4096 {
		c.wrong("size", "ud carries at most one MTU a message (4096 bytes at most)")
	}
}

// places checks the selectors.
func (c *checker) places() {
	key, n, err := "ranks", 0, error(nil)
	if c.s.Collective() {
		var ranks []rank
		ranks, err = ranksOf(c.s, c.t)
		n = len(ranks)
		if c.s.Kind == AllToAll {
			n *= n - 1
		}
	} else {
		var pairs []pair
		pairs, err = pairsOf(c.s, c.t)
		key, n = "qps", len(pairs)
	}
	switch qps := c.s.qps(); {
	case err != nil:
		c.errs = append(c.errs, err)
	case n*qps > maxQueuePairs:
		c.wrong(key, "%d connections of %d queue pairs each: one workload has at most %d queue pairs", n, qps, maxQueuePairs)
	}
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

func names(specs []Spec) []string {
	out := make([]string, len(specs))
	for i := range specs {
		out[i] = specs[i].Name
	}
	return out
}
