package fabric

import (
	"errors"
	"reflect"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// SwitchSettings hold for every switch of a fabric. The zero value is the default. Sizes are
// bytes of packets as they stand in the queue; dilation doesn't change them.
type SwitchSettings struct {
	SwitchModel `yaml:",inline"`
	// Override holds for some switches; a later one wins over an earlier one, key by key.
	Override []SwitchOverride `yaml:"override"`
}

// SwitchOverride is what some switches have instead.
type SwitchOverride struct {
	Node        string `yaml:"node"` // a switch's name or a glob
	SwitchModel `yaml:",inline"`
}

// SwitchModel is what a switch is like. Buffer and ECN without priorities are every backend's; the rest takes a
// software switch.
type SwitchModel struct {
	// Buffer is what one egress port may queue before it drops; default DefaultBuffer. With Memory it is no limit any more.
	Buffer topo.Bytes `yaml:"buffer,nonzero"`
	// ECN is the marker of egress queues; absent: nothing is marked.
	ECN *ECNSettings `yaml:"ecn"`

	// Memory is the packet memory that all ports share; with it, a queue may hold Reserved and then Alpha times what is left
	// of the shared part. Default, where PFC needs one: Buffer for each port.
	Memory   topo.Bytes  `yaml:"memory,nonzero"`
	Alpha    Alpha       `yaml:"alpha,nonzero"` // of lossy queues; default 1
	Reserved *topo.Bytes `yaml:"reserved"`      // of each queue; default two packets

	// Priorities are DSCPs' priorities where they aren't RoCE's custom (26 is 3, 48 is 6, else DSCP/8).
	Priorities PrioritySettings `yaml:"priorities"`
	// Queues are egress queues that differ: priorities 6 and 7 are strict, the others share by equal weights.
	Queues []QueueSettings `yaml:"queues"`
	PFC    *PFCSettings    `yaml:"pfc"`
	// Watchdog takes queues out of a pause that doesn't end; absent: none.
	Watchdog *WatchdogSettings `yaml:"watchdog"`
	// Routing is how packets are spread over ports of equal cost; default ecmp.
	Routing    Routing       `yaml:"routing"`
	FlowletGap time.Duration `yaml:"flowlet_gap,nonzero"`
}

// DefaultBuffer holds four rxe QPs' worth of unacknowledged packets (128 each) at IB MTU 4096.
const DefaultBuffer topo.Bytes = 2 << 20

// BufferBytes is Buffer or its default.
func (s *SwitchModel) BufferBytes() topo.Bytes {
	if s.Buffer == 0 {
		return DefaultBuffer
	}
	return s.Buffer
}

// Marker says what marks.
type Marker string

// The markers. The empty marker is the backend's own: red on the kernel's, bernoulli on software switches.
const (
	MarkerRED       Marker = "red"       // sch_red on the instantaneous queue, never dropping
	MarkerBernoulli Marker = "bernoulli" // each packet by lot, as DCQCN has it
)

// ECNSettings say when a queue marks CE: never below KMin, with a probability that rises to
// PMax at KMax, always above.
type ECNSettings struct {
	Marker Marker        `yaml:"marker"`
	KMin   topo.Bytes    `yaml:"kmin,required"`
	KMax   topo.Bytes    `yaml:"kmax,required"`
	PMax   topo.Fraction `yaml:"pmax,required"`
	// Priorities are those whose queues mark; default all.
	Priorities Priorities `yaml:"priorities"`
}

// QueueSettings are the egress queue of one priority.
type QueueSettings struct {
	Priority uint8 `yaml:"priority"`
	// Weight is its share, in packets a round; 0 is strict priority: before all that have a weight, the
	// higher priority first.
	Weight *int         `yaml:"weight"`
	Alpha  Alpha        `yaml:"alpha,nonzero"`
	ECN    *ECNSettings `yaml:"ecn"` // instead of the switch's
}

// PFCSettings make priorities lossless.
type PFCSettings struct {
	Priorities Priorities `yaml:"priorities"` // default 3
	// A port pauses a priority of its peer when it holds XOFF bytes that came in there, or, with Alpha, that many times what
	// is left of the shared memory; default alpha 1/8. The pause ends XON bytes below that.
	XOFF  topo.Bytes  `yaml:"xoff,nonzero"`
	Alpha Alpha       `yaml:"alpha,nonzero"`
	XON   *topo.Bytes `yaml:"xon"`
	// Headroom takes what still comes after that; default: what the link's rate, delay and MTU ask for.
	Headroom *topo.Bytes `yaml:"headroom"`
	// Obey, Send: whether pauses are obeyed and sent; default both.
	Obey *bool `yaml:"obey"`
	Send *bool `yaml:"send"`
}

// WatchdogSettings are a PFC watchdog's.
type WatchdogSettings struct {
	Detect  time.Duration `yaml:"detect,required"` // how long a queue must have been paused
	Restore time.Duration `yaml:"restore"`         // how long not, before the watchdog lets go; default Detect
	Action  string        `yaml:"action"`          // drop (default), forward, alert
}

// Routing is how packets are spread over ports of equal cost.
type Routing string

// Routings are all of them, the default first.
func Routings() []string {
	return []string{"ecmp", "spray", "spray-random", "adaptive", "flowlet"}
}

// Alpha is the factor of a dynamic threshold, written "1/8", "8" or "0.125".
type Alpha = topo.Factor

// Validate says what is wrong, as strict.PathErrors.
func (s *SwitchSettings) Validate() error {
	errs := []error{s.SwitchModel.validate()}
	for i := range s.Override {
		o := &s.Override[i]
		empty := reflect.ValueOf(o.SwitchModel).IsZero()
		errs = append(errs, strict.Under(strictPath("override", i), errors.Join(checkOverride(o.Node, empty), o.SwitchModel.validate())))
	}
	return errors.Join(errs...)
}

// Of is what a switch is like.
func (s *SwitchSettings) Of(node string) SwitchModel {
	m := s.SwitchModel
	for i := range s.Override {
		if o := &s.Override[i]; matches(o.Node, node) {
			lay(&m, &o.SwitchModel)
		}
	}
	return m
}

// Section is the key of the section that gave a switch something: that of the last override which has
// it, else "switches".
func (s *SwitchSettings) Section(node string, has func(*SwitchModel) bool) string {
	for i := len(s.Override) - 1; i >= 0; i-- {
		if o := &s.Override[i]; matches(o.Node, node) && has(&o.SwitchModel) {
			return "switches." + strictPath("override", i)
		}
	}
	return "switches"
}

func (s *SwitchModel) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	if s.Buffer != 0 && s.Buffer < 10_000 {
		wrong("buffer", "%v doesn't hold one packet of every MTU: at least 10KB", s.Buffer)
	}
	if s.Memory != 0 && s.Memory < 100_000 {
		wrong("memory", "%v is less than a packet a queue: at least 100KB", s.Memory)
	}
	if e := s.ECN; e != nil {
		errs = append(errs, strict.Under("ecn", e.validate(s)))
	}
	errs = append(errs, strict.Under("priorities", s.Priorities.validate()))
	seen := map[uint8]bool{}
	for i := range s.Queues {
		q, at := &s.Queues[i], strictPath("queues", i)
		switch {
		case q.Priority > 7:
			wrong(at+".priority", "%d is not a priority from 0 to 7", q.Priority)
		case seen[q.Priority]:
			wrong(at+".priority", "priority %d is there twice", q.Priority)
		}
		seen[q.Priority] = true
		if q.Weight != nil && (*q.Weight < 0 || *q.Weight > 1000) {
			wrong(at+".weight", "%d is not from 0 (strict) to 1000", *q.Weight)
		}
		if q.ECN != nil {
			if q.ECN.Priorities != nil {
				wrong(at+".ecn.priorities", "the queue is one priority's")
			}
			errs = append(errs, strict.Under(at+".ecn", q.ECN.validate(s)))
		}
	}
	if p := s.PFC; p != nil {
		errs = append(errs, strict.Under("pfc.priorities", p.Priorities.validate()))
		if p.XOFF != 0 && p.Alpha != 0 {
			wrong("pfc.alpha", "a threshold is static (xoff) or dynamic (alpha): give one of them")
		}
		if p.XOFF != 0 && p.XON != nil && *p.XON > p.XOFF {
			wrong("pfc.xon", "a pause can't end %v below xoff, which is %v", *p.XON, p.XOFF)
		}
		if p.Headroom != nil && *p.Headroom == 0 {
			wrong("pfc.headroom", noHeadroom+"; to break it on purpose there is the fault pfc-thresholds")
		}
	}
	if w := s.Watchdog; w != nil {
		switch w.Action {
		case "", "drop", "forward", "alert":
		default:
			wrong("watchdog.action", "%q is no action%s", w.Action, strict.DidYouMean(w.Action, []string{"drop", "forward", "alert"}))
		}
		if w.Detect == 0 {
			wrong("watchdog.detect", "must be above 0 (leave the watchdog out for none)")
		}
	}
	if s.Routing != "" && !contains(Routings(), string(s.Routing)) {
		wrong("routing", "%q is no way to route%s", s.Routing, strict.DidYouMean(string(s.Routing), Routings()))
	}
	if s.FlowletGap != 0 && s.Routing != "flowlet" {
		wrong("flowlet_gap", "needs routing: flowlet")
	}
	return errors.Join(errs...)
}

func (e *ECNSettings) validate(s *SwitchModel) error {
	var errs []error
	switch e.Marker {
	case "", MarkerRED, MarkerBernoulli:
	default:
		errs = append(errs, strict.At("marker", "%q is no marker%s", e.Marker, strict.DidYouMean(string(e.Marker), []string{string(MarkerRED), string(MarkerBernoulli)})))
	}
	if e.KMin == 0 || e.KMin >= e.KMax {
		errs = append(errs, strict.At("kmin", "%v must be above 0 and below kmax %v", e.KMin, e.KMax))
	}
	if limit := s.BufferBytes(); s.Memory == 0 && e.KMax > limit {
		errs = append(errs, strict.At("kmax", "%v is above the port's buffer of %v: it would drop before it marks", e.KMax, limit))
	}
	if e.PMax == 0 {
		errs = append(errs, strict.At("pmax", "must be above 0%%"))
	}
	return errors.Join(append(errs, strict.Under("priorities", e.Priorities.validate()))...)
}
