//go:build linux

package soft

import (
	"context"
	"errors"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// injector is the silicon's, whose methods may be called from any goroutine. Callbacks come on the control loop.
type injector struct {
	ctl *loop.Real
	in  *silicon.Injector
}

func newInjector(f *Fabric) *injector {
	port := func(ref topo.PortRef) *silicon.Port {
		if n := f.cfg.Plan.PortNumber(ref); n >= 0 {
			return f.ports[n]
		}
		return nil
	}
	return &injector{f.control, silicon.NewInjector(silicon.Config{Plan: f.cfg.Plan, Settings: f.cfg.Settings, Seed: f.cfg.Seed, Pace: f.cfg.Dilation}, f.control, port, f.routing)}
}

// Check implements fabric.Injector.
func (i *injector) Check(spec faults.Spec) (err error) {
	return errors.Join(i.ctl.Do(context.Background(), func() { err = i.in.Check(spec) }), err)
}

// Apply implements fabric.Injector.
func (i *injector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	i.ctl.Post(func() {
		i.in.Apply(spec, func(a fabric.Applied, err error) {
			if a != nil {
				a = applied{i.ctl, a}
			}
			done(a, err)
		})
	})
}

// Connect implements fabric.Connector.
func (i *injector) Connect(c packet.Connection, heard func()) {
	i.ctl.Post(func() { i.in.Connect(c, heard) })
}

// applied is a fault in force, from any goroutine.
type applied struct {
	ctl *loop.Real
	a   fabric.Applied
}

func (a applied) Verify(done func(error))       { a.ctl.Post(func() { a.a.Verify(done) }) }
func (a applied) Hits(done func(uint64, error)) { a.ctl.Post(func() { a.a.Hits(done) }) }
func (a applied) Heal(done func(error))         { a.ctl.Post(func() { a.a.Heal(done) }) }
func (a applied) VerifyClean(done func(error))  { a.ctl.Post(func() { a.a.VerifyClean(done) }) }
