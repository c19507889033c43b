package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

var _ interface {
	fabric.Fabric
	fabric.Virtual
	fabric.Kinds
	fabric.Capturer
	fabric.Watcher
	fabric.Tracer
	fabric.DepthReader
} = (*Fabric)(nil)

// Check refuses what of a plan and its settings this backend can't make, by path from the scenario's top.
func (c *Config) Check() error {
	var errs []error
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		if n.Kind != "" && n.Kind != topo.SoftHost && n.Kind != topo.SoftSwitch {
			errs = append(errs, strict.At("topology", "node %s: the sim backend makes no %s: nothing of the kernel lives in virtual time (the kernel backend does)", n.Name, n.Kind))
		}
	}
	for _, n := range c.Plan.Topology.Hosts() {
		if c.Settings.NICs.Of(n.Name).Process {
			section := c.Settings.NICs.Section(n.Name, func(m *fabric.NICModel) bool { return m.Process })
			errs = append(errs, strict.At(section+".process", "in virtual time all is one process (the soft backend can)"))
			break
		}
	}
	return errors.Join(append(errs, silicon.CheckSettings(c.Plan, &c.Settings, func(*topo.Node) bool { return true }))...)
}

// CheckNICs refuses NICs that there can't be on any backend, by key from the scenario's top.
func CheckNICs(s *fabric.NICSettings) error { return silicon.CheckNICs(s) }

// CheckSwitches refuses switch settings that there can't be on any backend, by key from the scenario's top.
func CheckSwitches(plan *topo.Plan, s *fabric.SwitchSettings) error {
	return silicon.CheckSwitches(plan, s)
}

// Doubts are settings that can be had on any backend and hardly be meant: see silicon.Doubts.
func Doubts(plan *topo.Plan, s *fabric.Settings, sent Sent, reaction func(*topo.Node) time.Duration) error {
	return silicon.Doubts(plan, s, sent, reaction)
}

// Sent is what a scenario sends, for Doubts, and Class the traffic of a workload.
type (
	Sent  = silicon.Sent
	Class = silicon.Class
)

// CheckFault refuses a fault that this backend can't make. What depends on other faults in force is refused when
// it is applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	return silicon.NewInjector(silicon.Config{Plan: c.Plan, Settings: c.Settings, Seed: c.Seed, Pace: c.Dilation}, nil, func(topo.PortRef) *silicon.Port { return nil }, nil).Possible(spec)
}

// Topology is the fabric's topology.
func (f *Fabric) Topology() *topo.Topology { return f.cfg.Plan.Topology }

// Plan is the fabric's plan.
func (f *Fabric) Plan() *topo.Plan { return f.cfg.Plan }

// Dilation means nothing in virtual time.
func (f *Fabric) Dilation() loop.Dilation { return 1 }

// Epoch means nothing in virtual time.
func (f *Fabric) Epoch() time.Time { return time.Time{} }

// Hosts are the hosts in the topology's order.
func (f *Fabric) Hosts() []fabric.Host {
	out := make([]fabric.Host, len(f.hosts))
	for i, h := range f.hosts {
		out[i] = h
	}
	return out
}

// Host is the host of that name; nil: there is none.
func (f *Fabric) Host(name string) fabric.Host {
	if h := f.byName[name]; h != nil {
		return h
	}
	return nil
}

// Kind is what a node was made of; empty for an unknown node.
func (f *Fabric) Kind(node string) topo.Kind {
	switch n := f.cfg.Plan.Node(node); {
	case n == nil:
		return ""
	case n.Role == topo.Switch:
		return topo.SoftSwitch
	}
	return topo.SoftHost
}

// Injector applies faults. It is called on the control loop.
func (f *Fabric) Injector() fabric.Injector { return f.inject }

// Control implements fabric.Virtual.
func (f *Fabric) Control() loop.Loop { return f.control }

// LookAhead implements fabric.Virtual.
func (f *Fabric) LookAhead() time.Duration { return f.virtual.LookAhead() }

// Now implements fabric.Virtual.
func (f *Fabric) Now() loop.Time { return f.virtual.Now() }

// Next implements fabric.Virtual.
func (f *Fabric) Next() (loop.Time, bool) { return f.virtual.Next() }

// Drive implements fabric.Virtual.
func (f *Fabric) Drive(until loop.Time) { f.virtual.RunUntil(until) }

// Events implements fabric.Virtual.
func (f *Fabric) Events() uint64 { return f.virtual.Handled() }

// Total implements fabric.Virtual.
func (f *Fabric) Total(metric string) (sum float64) {
	for _, h := range f.hosts {
		sum += h.Total(metric)
	}
	return sum
}

// Collect reads every metric of the fabric.
func (f *Fabric) Collect(context.Context) ([]metrics.Sample, error) {
	var r silicon.Readings
	for _, h := range f.hosts {
		r.Host(h.Host)
	}
	for _, s := range f.switches {
		r.Switch(s.name, s.Switch)
	}
	return r.Samples, nil
}

// Traces implements fabric.Tracer.
func (f *Fabric) Traces(context.Context) (all []fabric.Trace, err error) {
	for _, h := range f.hosts {
		all = append(all, h.Traces()...)
	}
	return all, nil
}

// JudgeKeepUp has nothing to judge: virtual time waits for the machine.
func (f *Fabric) JudgeKeepUp() error { return nil }

// KeepUp is always nil.
func (f *Fabric) KeepUp() error { return nil }

// Warnings are what was rounded.
func (f *Fabric) Warnings() []string { return slices.Clone(f.warnings) }

// Close lets go of the fabric, of which nothing exists outside memory.
func (f *Fabric) Close(context.Context) error { return nil }

// Capture implements fabric.Capturer. It begins, and ends, between drives.
func (f *Fabric) Capture(_ context.Context, ref topo.PortRef, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	p := f.port(ref)
	if p == nil {
		return nil, fmt.Errorf("%s: there is no such port", ref)
	}
	plan := f.cfg.Plan.PortAt(p.Number)
	if err := p.Tap(sink, roce.MAC(plan.MAC), roce.MAC(plan.PeerMAC)); err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	arrives := f.wires[f.cfg.Plan.PeerNumber(p.Number)]
	arrives.lead(p)
	f.keep(1)
	return func() (uint64, uint64, error) {
		given, err := p.Untap()
		arrives.lead(p)
		f.keep(-1)
		return given, 0, err
	}, nil
}

// Watch implements fabric.Watcher. It begins, and ends, between drives.
func (f *Fabric) Watch(_ context.Context, ref topo.PortRef, class packet.Class, seen func(loop.Time)) (stop func() error, err error) {
	p := f.port(ref)
	if p == nil {
		return nil, fmt.Errorf("%s: there is no such port", ref)
	}
	end := p.Watch(class, seen)
	arrives := f.wires[f.cfg.Plan.PeerNumber(p.Number)]
	arrives.lead(p)
	return func() error {
		end()
		arrives.lead(p)
		return nil
	}, nil
}

// keep has NICs send frames that carry their payload while anything captures.
func (f *Fabric) keep(captures int) {
	f.captures += captures
	for _, h := range f.hosts {
		for _, p := range h.Ports {
			p.Wire.Keep(f.captures > 0)
		}
	}
}
