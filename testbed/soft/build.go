//go:build linux

package soft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/topo"
)

var _ interface {
	fabric.Fabric
	fabric.Kinds
	fabric.Capturer
	fabric.Processes
	fabric.Tracer
	fabric.DepthReader
} = (*Fabric)(nil)

// Fabric is a living fabric of soft-hosts and soft-switches, or those of a fabric with other nodes.
type Fabric struct {
	cfg     Config
	epoch   time.Time
	wiring  *linux.Wiring
	control *loop.Real // of the injector
	nodes   []*node    // in the topology's order
	byName  map[string]*node
	hosts   []*host
	away    []*away         // hosts that are processes of their own
	ports   []*silicon.Port // by number
	sw      map[string]*silicon.Switch
	routing *silicon.Routing // on the control loop
	inject  *injector
	threads func()
	base    baseline

	mu       sync.Mutex
	warnings []string
}

// host is a soft-host.
type host struct {
	*node
	silicon *silicon.Host
	nics    []fabric.NIC
}

// Loop is the host's loop.
func (h *host) Loop() loop.Loop { return h.loop }

// NICs are the host's RDMA devices, in port order.
func (h *host) NICs() []fabric.NIC { return h.nics }

// Build brings a plan to life. What it made is gone again when it returns an error.
func Build(ctx context.Context, cfg Config) (_ *Fabric, err error) {
	if cfg.Testbed == nil && cfg.Within == nil {
		return nil, errors.New("soft fabric: a testbed is required")
	}
	if err := cfg.Check(); err != nil {
		if cfg.Testbed != nil {
			err = errors.Join(err, cfg.Testbed.Close(ctx))
		}
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	f := &Fabric{cfg: cfg, byName: map[string]*node{}, sw: map[string]*silicon.Switch{}}
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
	t := cfg.Plan.Topology
	if err := f.wire(ctx); err != nil {
		return err
	}
	mine := 0
	for i := range t.Nodes {
		if cfg.makes(&t.Nodes[i]) {
			mine++
		}
	}
	f.threads = moreThreads(mine)
	maker := silicon.NewMaker(silicon.Config{Plan: cfg.Plan, Settings: cfg.Settings, Seed: cfg.Seed, Dilation: cfg.Dilation, Pace: cfg.Dilation, Warn: f.warn}, f.planned)
	f.ports = make([]*silicon.Port, cfg.Plan.PortCount())
	cpus := spread(t)
	for i := range t.Nodes {
		if !cfg.makes(&t.Nodes[i]) {
			continue
		}
		cfg.Progress("soft nodes", len(f.nodes), mine)
		if err := ctx.Err(); err != nil {
			return err
		}
		add := f.add
		if t.Nodes[i].Role == topo.Host && cfg.Settings.NICs.Of(t.Nodes[i].Name).Process {
			add = f.addAway
		}
		if err := add(ctx, &t.Nodes[i], cpus[i], maker); err != nil {
			return err
		}
	}
	for _, h := range f.away {
		if err := f.standIn(ctx, h); err != nil {
			return err
		}
	}
	if err := f.acquaint(ctx); err != nil {
		return err
	}
	f.control = loop.NewReal(cfg.Dilation, f.epoch)
	f.routing = silicon.NewRouting(cfg.Plan, f.sw)
	f.inject = newInjector(f)
	return f.JudgeKeepUp()
}

// wire has the links made, unless somebody has, and starts the fabric's time.
func (f *Fabric) wire(ctx context.Context) (err error) {
	cfg := &f.cfg
	if w := cfg.Within; w != nil {
		f.wiring, f.epoch = w.Wiring, w.Epoch
		return nil
	}
	f.wiring, err = cfg.Testbed.Wire(ctx, cfg.Plan, linux.WireOptions{
		Bare:      func(n *topo.Node) bool { return kindOf(n) == topo.SoftSwitch },
		Unsteered: func(*topo.Node) bool { return true },
		TCPMinRTO: cfg.tcpRTO(), Progress: cfg.Progress,
	})
	f.epoch = time.Now()
	return err
}

// planned is what a node is made of, or will be: its own kind where it is somebody else's.
func (f *Fabric) planned(node string) topo.Kind {
	n := f.cfg.Plan.Node(node)
	if f.cfg.makes(n) {
		return kindOf(n)
	}
	return n.Kind
}

// add makes a node and starts it.
func (f *Fabric) add(ctx context.Context, n *topo.Node, cpu int, maker *silicon.Maker) error {
	ns, kind := f.wiring.Node(n.Name), kindOf(n)
	var ports []portConfig
	for _, p := range f.cfg.Plan.Ports(n.Name) {
		c := portConfig{plan: p, link: &f.cfg.Plan.Topology.Links[p.Link]}
		c.open = func(opt packet.Options) (*packet.Socket, error) { return packet.Open(ns, p.Ref.Port, opt) }
		if f.cfg.Within == nil {
			c.delay = c.link.Delay
		}
		c.room = f.cfg.room(c.link)
		c.fromHost = f.cfg.Plan.Node(p.Peer.Node).Role == topo.Host
		if kind == topo.SoftSwitch {
			c.number = maker.Number
		}
		ports = append(ports, c)
	}
	made, err := newNode(n.Name, kind, cpu, f.cfg.Dilation, f.epoch, ports)
	if err != nil {
		return err
	}
	f.nodes = append(f.nodes, made)
	f.byName[n.Name] = made
	for _, p := range ports {
		q, err := hush(ns, p.plan.Ref.Port, kind == topo.SoftHost)
		if err != nil {
			return err
		}
		made.quiet = append(made.quiet, q)
	}
	made.start()
	ground := silicon.Ground{Loop: made.loop, Frames: &made.frames, Wire: made.wire}
	var silent error
	err = made.loop.Do(ctx, func() {
		var on []*silicon.Port
		if kind == topo.SoftSwitch {
			var s *silicon.Switch
			if s, silent = maker.Switch(n, ground); silent != nil {
				return
			}
			on, f.sw[n.Name] = s.Ports, s
		} else {
			var h *silicon.Host
			if h, silent = maker.Host(n, ground); silent != nil {
				return
			}
			on = h.Ports
			f.hosts = append(f.hosts, &host{node: made, silicon: h, nics: h.FabricNICs(f.cfg.Plan)})
		}
		for i, p := range on {
			made.ports[i].to = p
			f.ports[p.Number] = p
		}
	})
	return errors.Join(err, silent)
}

// acquaint tells each port of the one across its link.
func (f *Fabric) acquaint(ctx context.Context) error {
	for _, n := range f.nodes {
		err := n.loop.Do(ctx, func() {
			for i, p := range f.cfg.Plan.Ports(n.name) {
				if far := f.byName[p.Peer.Node]; far != nil {
					n.ports[i].far = far.port(p.Peer.Port).sock
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) port(name string) *port {
	for _, p := range n.ports {
		if p.ref.Port == name {
			return p
		}
	}
	return nil
}

// wire is the wire of one of the node's ports.
func (n *node) wire(p *topo.PlanPort) (link.Wire, error) {
	if own := n.port(p.Ref.Port); own != nil {
		return own, nil
	}
	return nil, fmt.Errorf("%s has no port %s", n.name, p.Ref.Port)
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
	if n := f.byName[node]; n != nil {
		return n.kind
	}
	if f.awayHost(node) != nil {
		return topo.SoftHost
	}
	return ""
}

func (f *Fabric) awayHost(name string) *away {
	for _, h := range f.away {
		if h.name == name {
			return h
		}
	}
	return nil
}

// Process implements fabric.Processes.
func (f *Fabric) Process(host string) int {
	if h := f.awayHost(host); h != nil && h.cmd != nil && h.cmd.Process != nil {
		return h.pid()
	}
	return 0
}

// Hosts are the hosts in the topology's order.
func (f *Fabric) Hosts() []fabric.Host {
	var out []fabric.Host
	for _, n := range f.cfg.Plan.Topology.Hosts() {
		if h := f.Host(n.Name); h != nil {
			out = append(out, h)
		}
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
	if h := f.awayHost(name); h != nil {
		return h
	}
	return nil
}

// Injector applies faults.
func (f *Fabric) Injector() fabric.Injector { return f.inject }

// warn keeps a warning, once.
func (f *Fabric) warn(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.warnings, text) {
		f.warnings = append(f.warnings, text)
	}
}

// Warnings are what was rounded or could not be had exactly.
func (f *Fabric) Warnings() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.warnings)
}

// Close takes the fabric down, and the testbed with it if it has one. It may be called again after an error.
func (f *Fabric) Close(ctx context.Context) error {
	var errs []error
	if f.control != nil {
		f.control.Close()
		f.control = nil
	}
	for _, h := range f.away {
		errs = append(errs, h.Close(ctx))
	}
	f.away = nil
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
	if f.cfg.Within != nil {
		return errors.Join(errs...)
	}
	if err := f.cfg.Testbed.Close(ctx); err != nil {
		errs = append(errs, fmt.Errorf("take down the fabric: %w", err))
	}
	return errors.Join(errs...)
}
