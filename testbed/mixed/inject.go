//go:build linux

package mixed

import (
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// injector gives faults in soft nodes to the soft room, and all others, those on links first of all, to the kernel's.
type injector struct {
	cfg          *Config
	kernel, soft fabric.Injector
}

var _ interface {
	fabric.Injector
	fabric.Preparer
	fabric.Connector
} = (*injector)(nil)

// Injector applies faults.
func (f *Fabric) Injector() fabric.Injector { return f.inject }

// inSoft says whether a fault is one in soft nodes. One that is in both worlds at once is refused. A switch reboots by its cables, which
// are the kernel's.
func (c *Config) inSoft(spec *faults.Spec) (bool, error) {
	d := faults.DefOf(spec.Kind)
	if d == nil || spec.Kind == faults.Reboot || d.Target != faults.TargetPort && d.Target != faults.TargetSwitch && d.Target != faults.TargetNIC {
		return false, nil
	}
	targets, err := faults.Aim(spec, faults.Scope{Topology: c.Plan.Topology, Plan: c.Plan, Seed: c.Seed})
	if err != nil {
		return false, fmt.Errorf("fault %s: %w", spec.Name, err)
	}
	var of [2]*topo.Node // of the kernel's, and a soft one
	for _, t := range targets {
		n := c.Plan.Node(t.Port.Node)
		if Soft(*n) {
			of[1] = n
		} else {
			of[0] = n
		}
	}
	if of[0] != nil && of[1] != nil {
		return false, fmt.Errorf("fault %s: it strikes %s, which is the kernel's, and %s, a %s: give each a fault of its own", spec.Name, of[0].Name, of[1].Name, of[1].Kind)
	}
	return of[1] != nil, nil
}

func (in *injector) of(spec *faults.Spec) (fabric.Injector, error) {
	soft, err := in.cfg.inSoft(spec)
	if soft {
		return in.soft, err
	}
	return in.kernel, err
}

// Check implements fabric.Injector.
func (in *injector) Check(spec faults.Spec) error {
	one, err := in.of(&spec)
	if err != nil {
		return err
	}
	return one.Check(spec)
}

// Apply implements fabric.Injector.
func (in *injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	one, err := in.of(&spec)
	if err != nil {
		go done(nil, err)
		return
	}
	one.Apply(spec, done)
}

// Prepare implements fabric.Preparer.
func (in *injector) Prepare(spec faults.Spec) error {
	one, err := in.of(&spec)
	if p, ok := one.(fabric.Preparer); ok && err == nil {
		return p.Prepare(spec)
	}
	return err
}

// Connect implements fabric.Connector.
func (in *injector) Connect(c packet.Connection, heard func()) {
	fabric.ConnectorsOf(in.kernel, in.soft).Connect(c, heard)
}
