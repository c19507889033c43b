//go:build linux

package soft

import (
	"context"
	"errors"
	"time"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// Single is a soft-host in a fabric that another room made: it sends and receives on the host's own links, and
// what becomes of frames there is not its business.
type Single struct {
	*host
	f *Fabric
}

// NewSingle makes one on a namespace whose links are up. cfg.Testbed isn't needed. kinds says what the fabric's nodes are made of:
// some of what software RNICs can do is for their own kind alone.
func NewSingle(ctx context.Context, cfg Config, n *topo.Node, ns *linux.Namespace, epoch time.Time, kinds func(node string) topo.Kind) (_ *Single, err error) {
	f := &Fabric{cfg: cfg, guest: true, epoch: epoch, byName: map[string]*node{}, ports: make([]*silicon.Port, cfg.Plan.PortCount())}
	f.threads = moreThreads(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.dismiss(ctx))
		}
	}()
	maker := silicon.NewMaker(silicon.Config{Plan: cfg.Plan, Settings: cfg.Settings, Seed: cfg.Seed, Dilation: cfg.Dilation}, kinds)
	if err := f.add(ctx, n, ns, -1, maker); err != nil {
		return nil, err
	}
	return &Single{f.hosts[0], f}, f.JudgeKeepUp()
}

// Collect reads what the host's devices and its loop count.
func (s *Single) Collect(ctx context.Context) ([]metrics.Sample, error) {
	c := &collector{f: s.f}
	c.failed(s.loop.Do(ctx, func() { c.Host(s.silicon) }))
	c.pace(s.node)
	return c.Samples, errors.Join(c.errs...)
}

// JudgeKeepUp makes KeepUp judge from now on.
func (s *Single) JudgeKeepUp() error { return s.f.JudgeKeepUp() }

// KeepUp is as a Fabric's.
func (s *Single) KeepUp() error { return s.f.KeepUp() }

// Close ends the host.
func (s *Single) Close(ctx context.Context) error { return s.f.dismiss(ctx) }

// dismiss closes all that the fabric has beside the testbed.
func (f *Fabric) dismiss(ctx context.Context) error {
	var errs []error
	for _, n := range f.nodes {
		n.stop() // all of them before the first socket closes: they look at each other's
	}
	for _, n := range f.nodes {
		errs = append(errs, n.Close(ctx))
	}
	if f.threads != nil {
		f.threads()
		f.threads = nil
	}
	return errors.Join(errs...)
}
