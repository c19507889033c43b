//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// Fabric is a living fabric of rxe-hosts and linux-switches.
type Fabric struct {
	cfg       Config
	epoch     time.Time
	wiring    *linux.Wiring
	exclusive bool // RDMA devices belong to one namespace each
	cables    *cable.Set
	routing   *routing
	nodes     map[string]*node
	hosts     []*host
	inject    *injector
	base      baseline
	disturbed disturbances
	watch     *shaperWatch
	engine    *engine.Engine                                  // nil: ports are trees of the kernel's own disciplines
	numbers   map[topo.PortRef]int                            // of the engine's ports
	agent     *agent.Agent                                    // of the engine's ports
	portBase  atomic.Pointer[map[topo.PortRef]engine.Reading] // of the engine's ports, when KeepUp began to judge

	mu       sync.Mutex
	warnings []string
}

// Build brings a plan to life. What it made is gone again when it returns an error.
func Build(ctx context.Context, cfg Config) (_ *Fabric, err error) {
	if cfg.Testbed == nil {
		return nil, errors.New("kernel fabric: a testbed is required")
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Testbed == nil {
		return nil, errors.New("kernel fabric: Testbed is required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.flows == 0 {
		cfg.flows = mostFlows
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	f := &Fabric{cfg: cfg, nodes: map[string]*node{}}
	defer func() {
		if err != nil {
			// The caller's deadline may be over; taking down gets its own.
			down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			err = errors.Join(err, f.Close(down))
		}
	}()
	return f, f.build(ctx)
}

func (f *Fabric) build(ctx context.Context) (err error) {
	cfg := &f.cfg
	mode := RDMAModeFor(cfg.Plan.Topology, cfg.NICs)
	chosen := cfg.NICs.RDMA == mode
	if f.exclusive, err = setMode(cfg.Testbed, mode, chosen, f.warn); err != nil {
		return err
	}
	f.rounded()
	if err := f.lay(ctx); err != nil {
		return err
	}
	f.epoch = time.Now()
	for i, h := range f.hosts {
		cfg.Progress("rdma devices", i, len(f.hosts))
		if err := h.start(ctx, f); err != nil {
			return err
		}
	}
	if err := f.startAgent(); err != nil {
		return err
	}
	f.inject = newInjector(f)
	if f.watch, err = watchShapers(f); err != nil {
		return err
	}
	return f.JudgeKeepUp()
}

// lay makes everything but RDMA: namespaces, links, addresses, routes, the ports' trees, cables.
func (f *Fabric) lay(ctx context.Context) (err error) {
	cfg := &f.cfg
	t := cfg.Plan.Topology
	f.wiring, err = cfg.Testbed.Wire(ctx, cfg.Plan, linux.WireOptions{Cables: true, TCPMinRTO: cfg.tcpRTO(), Progress: cfg.Progress})
	if err != nil {
		return err
	}
	if err := f.openEngine(); err != nil {
		return err
	}
	f.routing = newRouting(cfg.Plan, f.wiring)
	cfg.Progress("ports", 0, len(t.Nodes))
	made := make([]fabric.Node, len(t.Nodes))
	drivers := driversOf(f)
	err = each(len(made), func(i int) error {
		d, err := drivers.of(&t.Nodes[i])
		if err == nil {
			made[i], err = d.Build(ctx, &t.Nodes[i])
		}
		return err
	})
	for _, n := range made {
		switch n := n.(type) {
		case *host:
			f.nodes[n.name] = n.node
			f.hosts = append(f.hosts, n)
		case *node:
			f.nodes[n.name] = n
		}
	}
	if err != nil {
		return err
	}
	cfg.Progress("cables", 0, len(t.Links))
	f.cables, err = cable.Lay(f.wiring, func(l *topo.Link) time.Duration { return cfg.Dilation.Wall(l.Delay) }, f.marks)
	if err != nil {
		return err
	}
	return f.wiring.Connect(ctx)
}

// each calls fn for 0 to n−1, a few at a time, and returns all errors.
func each(n int, fn func(i int) error) error {
	const workers = 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	free := make(chan struct{}, workers)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			errs[i] = fn(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Topology is the fabric's topology.
func (f *Fabric) Topology() *topo.Topology { return f.cfg.Plan.Topology }

// Plan is the fabric's plan.
func (f *Fabric) Plan() *topo.Plan { return f.cfg.Plan }

// Dilation is how much slower than wall time the fabric runs.
func (f *Fabric) Dilation() loop.Dilation { return f.cfg.Dilation }

// Epoch is the wall time at which the fabric's time is zero.
func (f *Fabric) Epoch() time.Time { return f.epoch }

// Wiring is the fabric's namespaces and links, for programs that run inside.
func (f *Fabric) Wiring() *linux.Wiring { return f.wiring }

// Kind is what a node was made of; empty for an unknown node.
func (f *Fabric) Kind(node string) topo.Kind {
	if n := f.nodes[node]; n != nil {
		return n.kind
	}
	return ""
}

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
	for _, h := range f.hosts {
		if h.name == name {
			return h
		}
	}
	return nil
}

// DeviceName is what the rxe device of a NIC is called on this machine.
func (f *Fabric) DeviceName(ref topo.PortRef) string {
	return deviceName(f.cfg.Testbed.Name(), ref)
}

// Injector applies faults.
func (f *Fabric) Injector() fabric.Injector { return f.inject }

// Warnings are what was rounded or could not be had exactly, and ports that were a little slow.
func (f *Fabric) Warnings() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Clone(f.warnings)
	if slow := f.slowWarning(); slow != "" {
		all = append(all, slow)
	}
	return all
}

func (f *Fabric) warn(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.warnings, text) {
		f.warnings = append(f.warnings, text)
		f.cfg.Log.Warn(text)
	}
}

// Close takes the fabric down, and the testbed with it. It may be called again after an error.
func (f *Fabric) Close(ctx context.Context) error {
	var errs []error
	if f.watch != nil {
		errs = append(errs, f.watch.close())
		f.watch = nil
	}
	if f.inject != nil {
		errs = append(errs, f.inject.close())
	}
	if f.agent != nil {
		errs = append(errs, f.agent.Close())
		f.agent = nil
	}
	for _, h := range slices.Backward(f.hosts) {
		if err := h.Close(ctx); err != nil {
			return errors.Join(append(errs, err)...) // its device would not go either
		}
	}
	for _, n := range f.nodes {
		if n.kind == topo.LinuxSwitch {
			errs = append(errs, n.Close(ctx))
		}
	}
	if f.cables != nil {
		errs = append(errs, f.cables.Close())
	}
	if err := f.cfg.Testbed.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("take down the fabric: %w", err))
	}
	if f.engine != nil {
		errs = append(errs, f.engine.Close())
		f.engine = nil
	}
	return errors.Join(errs...)
}
