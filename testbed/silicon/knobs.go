package silicon

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// knob is what a fault changes of a switch's settings, and how what it hits is counted.
type knob struct {
	port  func(*asic.PortSettings) // at each port that is struck; may be nil
	whole func(*asic.Settings)     // may be nil
	// count rises with each hit at a port that is struck, level is those that there are now; nil: the switch is the hit.
	count, level func(*asic.PortStats) uint64
	late         time.Duration // by which the switch hears of links later
}

// overlay is a fault's knob on a switch, by the fault's name.
type overlay struct {
	name  string
	ports []int
	knob  knob
}

// on changes settings, which share nothing with others.
func (o *overlay) on(s *asic.Settings) {
	if o.knob.whole != nil {
		o.knob.whole(s)
	}
	if o.knob.port == nil {
		return
	}
	for _, i := range o.ports {
		p := s.PortSettings(i)
		o.knob.port(&p)
		s.Ports[i] = p
	}
}

// with is settings with overlays on them.
func with(base asic.Settings, all ...*overlay) asic.Settings {
	base.Ports = maps.Clone(base.Ports)
	if base.Ports == nil {
		base.Ports = map[int]asic.PortSettings{}
	}
	for _, o := range all {
		o.on(&base)
	}
	return base
}

// put puts an overlay on the switch, behind those that are there.
func (s *Switch) put(o *overlay) error {
	if err := s.Apply(with(s.base, append(slices.Clone(s.overlays), o)...)); err != nil {
		return err
	}
	s.overlays = append(s.overlays, o)
	return nil
}

// take takes an overlay off; the others stay.
func (s *Switch) take(o *overlay) error {
	s.overlays = slices.DeleteFunc(s.overlays, func(have *overlay) bool { return have == o })
	return s.Apply(with(s.base, s.overlays...))
}

// agrees says whether the settings in force are those of the scenario with the overlays on them.
func (s *Switch) agrees() error {
	if got, want := s.Settings(), with(s.base, s.overlays...); !reflect.DeepEqual(got, want) {
		return fmt.Errorf("its settings are %+v, not %+v", got, want)
	}
	return nil
}

// setting is a fault in a switch's settings.
type setting struct {
	in    *Injector
	node  string
	port  *Port // any of the switch's
	over  *overlay
	error error // of taking it off

	before uint64
}

// setting makes the effect of a fault at a switch, or at one of its ports.
func (in *Injector) setting(s *faults.Spec, at topo.PortRef) (*setting, error) {
	k, err := switchKnob(s)
	if err != nil {
		return nil, err
	}
	e := &setting{in: in, node: at.Node, over: &overlay{name: s.Name, knob: k}}
	for i, p := range in.plan.Ports(at.Node) {
		if at.Port == "" || at == p.Ref {
			e.over.ports = append(e.over.ports, i)
			if e.port == nil {
				e.port = in.port(p.Ref)
			}
		}
	}
	return e, nil
}

// possible refuses what the switch can't be set to, and what would change nothing.
func (e *setting) possible() error {
	n := e.in.plan.Node(e.node)
	m := e.in.settings.Switches.Of(e.node)
	base, err := SwitchSettings(&m, e.in.plan, n)
	if err != nil {
		return fmt.Errorf("%s: %w", e.node, err)
	}
	changed := with(base, e.over)
	if reflect.DeepEqual(with(base), changed) {
		return fmt.Errorf("%s: it would change nothing: the switch is like that already, or has nothing of the kind", e.node)
	}
	if err := changed.Validate(PortConfigs(e.in.plan, e.in.plan.Ports(e.node))); err != nil {
		return fmt.Errorf("%s: %w", e.node, err)
	}
	return nil
}

func (e *setting) sw() *Switch    { return e.in.routing.switches[e.node] }
func (e *setting) allowed() error { return nil } // faults.Together says
func (e *setting) claim() {
	if d := e.over.knob.late; d > 0 {
		e.in.routing.Delay(e.node, e.in.ctl, d)
	}
}

func (e *setting) release() {
	if e.over.knob.late > 0 {
		e.in.routing.Hasten(e.node)
	}
}

func (e *setting) ports() []*Port { return []*Port{e.port} }
func (e *setting) on(*Port) bool  { return slices.Contains(e.sw().overlays, e.over) }
func (e *setting) apply(*Port) error {
	e.before = e.count()
	return e.sw().put(e.over)
}

func (e *setting) verify(p *Port) error {
	if !e.on(p) {
		return fmt.Errorf("%s: %s is not in its settings", e.node, e.over.name)
	}
	if err := e.sw().agrees(); err != nil {
		return fmt.Errorf("%s: %w", e.node, err)
	}
	return nil
}

func (e *setting) count() (sum uint64) {
	if e.over.knob.count == nil {
		return 0
	}
	for _, i := range e.over.ports {
		st := e.sw().Stats(i)
		sum += e.over.knob.count(&st)
	}
	if e.over.knob.late > 0 {
		sum += e.sw().late
	}
	return sum
}

func (e *setting) hits(p *Port) uint64 {
	k := &e.over.knob
	switch {
	case !e.on(p):
		return 0
	case k.count == nil:
		return 1
	}
	n := e.count() - e.before
	for _, i := range e.over.ports {
		if k.level != nil {
			st := e.sw().Stats(i)
			n += k.level(&st)
		}
	}
	return n
}

func (e *setting) heal(p *Port) {
	if e.on(p) {
		e.error = e.sw().take(e.over)
	}
}

func (e *setting) clean(p *Port) error {
	err := e.error
	if e.on(p) {
		err = errors.Join(err, fmt.Errorf("%s is still in its settings", e.over.name))
	}
	if err = errors.Join(err, e.sw().agrees()); err != nil {
		return fmt.Errorf("%s: %w", e.node, err)
	}
	return nil
}

// switchKnob is a fault as a switch's settings have it.
func switchKnob(s *faults.Spec) (knob, error) {
	bits := uint8(0xff)
	if len(s.Priorities) > 0 {
		bits = s.Priorities.Bits()
	}
	queues := func(do func(*asic.Queue)) func(*asic.PortSettings) {
		return func(p *asic.PortSettings) {
			for i, q := range p.QueueOf {
				if bits&(1<<i) != 0 {
					do(&p.Queues[q])
				}
			}
		}
	}
	sent := func(st *asic.PortStats) (n uint64) {
		for i := range st.Queues {
			n += uint64(bits>>i&1) * st.Queues[i].TxFrames
		}
		return n
	}
	came := func(st *asic.PortStats) (n uint64) {
		for i, frames := range st.RxPriority {
			n += uint64(bits>>i&1) * frames
		}
		return n
	}
	dropped := func(st *asic.PortStats) (n uint64) {
		for i := range st.Queues {
			n += uint64(bits>>i&1) * st.Queues[i].Drops
		}
		return n
	}
	mismarked := func(st *asic.PortStats) (n uint64) {
		for i := range st.Queues {
			n += uint64(bits>>i&1) * st.Queues[i].Mismarked
		}
		return n
	}
	waiting := func(st *asic.PortStats) (n uint64) {
		for i := range st.Queues {
			n += uint64(bits>>i&1) * uint64(st.Queues[i].Frames)
		}
		return n
	}
	switch s.Kind {
	case faults.ECNOff:
		return knob{port: queues(func(q *asic.Queue) { mark(q, nil) }), count: mismarked}, nil
	case faults.ECNThresholds:
		m := markingOf(s.KMin, s.KMax, s.PMax)
		return knob{port: queues(func(q *asic.Queue) { mark(q, m) }), count: mismarked}, nil
	case faults.DSCPMap:
		return dscpKnob(s.DSCPMap)
	case faults.PFCOff:
		return pfcKnob(s.Half, bits), nil
	case faults.PFCThresholds:
		return knob{port: func(p *asic.PortSettings) { thresholds(p, s, bits) }, count: came}, nil
	case faults.BufferAlpha:
		a := alpha(s.Alpha)
		return knob{port: queues(func(q *asic.Queue) {
			if q.Alpha != 0 { // else the queue has memory of its own alone
				q.Alpha = a
			}
		}), count: sent}, nil
	case faults.BufferShrink:
		return knob{whole: func(t *asic.Settings) { shrink(t, sizeOf(s.Buffer)) }, count: sent}, nil
	case faults.WatchdogOff:
		return knob{whole: func(t *asic.Settings) { t.Watchdog.Detect = 0 }}, nil
	case faults.HashSeed:
		seed := uint64(0)
		if s.HashSeed != nil {
			seed = *s.HashSeed
		}
		return knob{whole: func(t *asic.Settings) {
			if right := t.Balance.HashSeed; right == nil || *right != seed {
				t.Balance.HashSeed, t.Balance.RightSeed = &seed, right
			}
		}, count: func(st *asic.PortStats) uint64 { return st.Moved }}, nil
	case faults.RouteLate:
		return knob{
			whole: func(t *asic.Settings) { t.RouteDelay = s.Delay }, late: s.Delay,
			count: func(st *asic.PortStats) uint64 { return st.LateRoutes },
		}, nil
	case faults.CNPStarved:
		if len(s.Priorities) == 0 {
			bits = 1 << 6
		}
		if s.Rate > 0 {
			return knob{
				port:  queues(func(q *asic.Queue) { q.Rate = rateOf(s.Rate) }),
				count: func(st *asic.PortStats) uint64 { return sent(st) + dropped(st) }, level: waiting,
			}, nil
		}
		return knob{port: func(p *asic.PortSettings) { stick(p, bits) }, count: dropped, level: waiting}, nil
	case faults.StuckQueue:
		return knob{port: func(p *asic.PortSettings) { stick(p, bits) }, count: dropped, level: waiting}, nil
	}
	return knob{}, strict.At("kind", "%w", lacks(s.Kind))
}

// mark gives a queue another curve, or none, and has those counted whose mark that changes.
func mark(q *asic.Queue, m *dcqcn.Marking) {
	if m == q.ECN || m != nil && q.ECN != nil && *m == *q.ECN {
		return
	}
	q.Right = &asic.RightECN{ECN: q.ECN}
	q.ECN = m
}

// shrink leaves a switch less packet memory: all of it, or each queue its own where they share none.
func shrink(t *asic.Settings, to dcqcn.Bytes) {
	shared := false
	for _, p := range t.Ports {
		for i := range p.Queues {
			shared = shared || p.Queues[i].Alpha != 0
		}
	}
	if shared {
		t.Buffer = to
		return
	}
	for n, p := range t.Ports {
		for i := range p.Queues {
			q := &p.Queues[i]
			t.Buffer += min(to, q.Reserved) - q.Reserved
			q.Reserved = min(to, q.Reserved)
		}
		t.Ports[n] = p
	}
}

func stick(p *asic.PortSettings, priorities uint8) {
	for i, q := range p.QueueOf {
		if priorities&(1<<i) != 0 {
			p.Stuck |= 1 << q
		}
	}
}
