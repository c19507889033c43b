package testbed

import (
	"errors"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/crosstraffic"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/hostfault"
	"github.com/rocebed/rocebed/workloads"
)

// maker makes faults of some kinds that a fabric's own injector doesn't make.
type maker struct {
	kinds []faults.Kind
	on    []Backend                 // on these backends alone; nil: on every
	more  map[Backend][]faults.Kind // on one backend, kinds that others' nodes make
	// can says what keeps a fault of a scenario from being made, before there is a fabric; nil: nothing. Its errors are as fabric.Injector.Check's.
	can func(s *Scenario, b Backend, d loop.Dilation, spec faults.Spec) error
	// start makes its injector for a living fabric. It is called, and answers, on a control loop. One that must know what programs do has a
	// method Hook(*workloads.Config), and may have Drives(*workloads.Engine), one that needs to know connections is a fabric.Connector, one that can prepare a fabric.Preparer, and one that
	// holds something has a method Close() error.
	start func(s *Scenario, fab fabric.Fabric, ctl loop.Loop) fabric.Injector
}

// makers are all of them. Who stands first makes a kind that several could.
var makers = []maker{
	{kinds: hostfault.Kinds(), more: map[Backend][]faults.Kind{Kernel: hostfault.VerbsKinds(), Soft: hostfault.ClockKinds(), Sim: hostfault.ClockKinds()}, can: hostCan, start: hostStart},
	{kinds: crosstraffic.Kinds, can: trafficCan, start: trafficStart},
}

func hostCan(s *Scenario, _ Backend, _ loop.Dilation, spec faults.Spec) error {
	return hostfault.New(hostConfig(s, nil, nil)).Check(spec)
}

func hostStart(s *Scenario, fab fabric.Fabric, ctl loop.Loop) fabric.Injector {
	return hostfault.New(hostConfig(s, fab, ctl))
}
func trafficCan(s *Scenario, b Backend, _ loop.Dilation, spec faults.Spec) error {
	return crosstraffic.Check(spec, crosstraffic.Ground{Plan: s.Plan, Seed: s.Seed, Virtual: builders[b].Virtual})
}

func trafficStart(s *Scenario, fab fabric.Fabric, _ loop.Loop) fabric.Injector {
	return crosstraffic.New(fab, s.Seed)
}

func hostConfig(s *Scenario, fab fabric.Fabric, ctl loop.Loop) hostfault.Config {
	return hostfault.Config{Plan: s.Plan, Seed: s.Seed, NICs: s.NICs, Fabric: fab, Control: ctl}
}

// makerOf is the number of who makes a kind on a backend; −1: the fabric's own injector.
func makerOf(b Backend, k faults.Kind) int {
	return slices.IndexFunc(makers, func(m maker) bool {
		return slices.Contains(m.kinds, k) && (m.on == nil || slices.Contains(m.on, b)) || slices.Contains(m.more[b], k)
	})
}

// canFault says what keeps a fault of a scenario from being made on a backend; nodes is asked for what the nodes make.
func (s *Scenario) canFault(b Backend, d loop.Dilation, spec faults.Spec, nodes func(faults.Spec) error) error {
	if i := makerOf(b, spec.Kind); i >= 0 {
		return makers[i].can(s, b, d, spec)
	}
	return nodes(spec)
}

// Injectors is everything that makes faults on a living fabric, behind one face: each fault goes to who makes its kind. Its methods are called on a control
// loop.
type Injectors struct {
	backend Backend
	nodes   fabric.Injector
	made    []fabric.Injector // as makers
}

var _ interface {
	fabric.Injector
	fabric.Preparer
	fabric.Connector
} = (*Injectors)(nil)

// NewInjectors joins a fabric's own injector with all others, for a scenario on a backend. ctl is where it is called; in virtual time, the fabric's
// control loop.
func NewInjectors(s *Scenario, b Backend, fab fabric.Fabric, ctl loop.Loop) *Injectors {
	in := &Injectors{backend: b, nodes: fab.Injector()}
	for _, m := range makers {
		in.made = append(in.made, m.start(s, fab, ctl))
	}
	return in
}

// all are the injectors, the nodes' first.
func (in *Injectors) all() []fabric.Injector { return append([]fabric.Injector{in.nodes}, in.made...) }

func (in *Injectors) of(k faults.Kind) fabric.Injector {
	if i := makerOf(in.backend, k); i >= 0 {
		return in.made[i]
	}
	return in.nodes
}

// OfNodes says whether the nodes themselves make a kind: links, switches and NICs, which need no program.
func (in *Injectors) OfNodes(k faults.Kind) bool { return makerOf(in.backend, k) < 0 }

// Hook has an engine tell of what faults are about. It is called before the engine is made.
func (in *Injectors) Hook(cfg *workloads.Config) {
	for _, one := range in.made {
		if h, ok := one.(interface{ Hook(*workloads.Config) }); ok {
			h.Hook(cfg)
		}
	}
}

// Drives tells of the engine that was made so.
func (in *Injectors) Drives(e *workloads.Engine) {
	for _, one := range in.made {
		if h, ok := one.(interface{ Drives(*workloads.Engine) }); ok {
			h.Drives(e)
		}
	}
}

// Check implements fabric.Injector.
func (in *Injectors) Check(spec faults.Spec) error { return in.of(spec.Kind).Check(spec) }

// Apply implements fabric.Injector.
func (in *Injectors) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	in.of(spec.Kind).Apply(spec, done)
}

// Prepare implements fabric.Preparer.
func (in *Injectors) Prepare(spec faults.Spec) error {
	if p, ok := in.of(spec.Kind).(fabric.Preparer); ok {
		return p.Prepare(spec)
	}
	return nil
}

// Connect implements fabric.Connector: who needs to know hears of it.
func (in *Injectors) Connect(c packet.Connection, heard func()) {
	fabric.ConnectorsOf(in.all()...).Connect(c, heard)
}

// Close lets go of what the injectors hold besides faults in force. It is not called on the control loop.
func (in *Injectors) Close() error {
	var errs []error
	for _, one := range in.made {
		if c, ok := one.(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
