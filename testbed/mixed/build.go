//go:build linux

package mixed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
)

var _ interface {
	fabric.Fabric
	fabric.Kinds
	fabric.Programs
	fabric.Capturer
	fabric.Tracer
} = (*Fabric)(nil)

// Fabric is a living fabric of nodes of all four kinds. What it doesn't say itself the kernel's part says for all:
// wiring, captures, faults on links.
type Fabric struct {
	*kernel.Fabric
	soft  *soft.Fabric
	hosts []fabric.Host

	inject *injector
}

// Build brings a plan to life. What it made is gone again when it returns an error.
func Build(ctx context.Context, cfg Config) (_ *Fabric, err error) {
	if err := cfg.Check(); err != nil {
		if cfg.Testbed != nil {
			err = errors.Join(err, cfg.Testbed.Close(ctx))
		}
		return nil, err
	}
	p := &part{}
	k, err := kernel.Build(ctx, cfg.kernel(p))
	if err != nil {
		return nil, err
	}
	f := &Fabric{Fabric: k}
	defer func() {
		if err != nil {
			down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, f.Close(down))
		}
	}()
	if f.soft, err = soft.Build(ctx, cfg.soft(&soft.Within{Wiring: k.Wiring(), Epoch: k.Epoch()})); err != nil {
		return nil, err
	}
	p.nodes.Store(f.soft)
	f.inject = &injector{&cfg, k.Injector(), f.soft.Injector()}
	for _, n := range cfg.Plan.Topology.Hosts() {
		h := k.Host(n.Name)
		if h == nil {
			h = f.soft.Host(n.Name)
		}
		if h == nil {
			return nil, fmt.Errorf("%s: nobody has made it", n.Name)
		}
		f.hosts = append(f.hosts, h)
	}
	return f, f.JudgeKeepUp()
}

// Hosts are the hosts in the topology's order.
func (f *Fabric) Hosts() []fabric.Host { return slices.Clone(f.hosts) }

// Host is the host of that name; nil: there is none.
func (f *Fabric) Host(name string) fabric.Host {
	for _, h := range f.hosts {
		if h.Name() == name {
			return h
		}
	}
	return nil
}

// Kind is what a node was made of; empty for an unknown node.
func (f *Fabric) Kind(node string) topo.Kind {
	if k := f.soft.Kind(node); k != "" {
		return k
	}
	return f.Fabric.Kind(node)
}

// Collect reads every metric of the fabric once.
func (f *Fabric) Collect(ctx context.Context) ([]metrics.Sample, error) {
	all, err := f.Fabric.Collect(ctx)
	more, serr := f.soft.Collect(ctx)
	return append(all, more...), errors.Join(err, serr)
}

// Traces implements fabric.Tracer.
func (f *Fabric) Traces(ctx context.Context) ([]fabric.Trace, error) { return f.soft.Traces(ctx) }

// JudgeKeepUp makes KeepUp judge from now on.
func (f *Fabric) JudgeKeepUp() error {
	return errors.Join(f.Fabric.JudgeKeepUp(), f.soft.JudgeKeepUp())
}

// KeepUp says whether the machine has kept up, with the kernel's nodes and with the soft ones.
func (f *Fabric) KeepUp() error { return both(f.Fabric.KeepUp(), f.soft.KeepUp()) }

// both joins what two parts say of themselves: it is fabric.ErrSlow where neither says more than that.
func both(parts ...error) error {
	var worse, slow []error
	for _, err := range parts {
		if errors.Is(err, fabric.ErrSlow) {
			slow = append(slow, err)
		} else {
			worse = append(worse, err)
		}
	}
	late := errors.Join(slow...)
	err := errors.Join(worse...)
	switch {
	case err == nil:
		return late
	case late == nil:
		return err
	}
	return fmt.Errorf("%w\n%v", err, late) // and not ErrSlow
}

// Warnings are what was rounded or could not be had exactly.
func (f *Fabric) Warnings() []string {
	all := f.Fabric.Warnings()
	for _, w := range f.soft.Warnings() {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// Close takes the fabric down. It may be called again after an error.
func (f *Fabric) Close(ctx context.Context) error {
	var err error
	if f.soft != nil {
		err = f.soft.Close(ctx)
	}
	return errors.Join(err, f.Fabric.Close(ctx))
}
