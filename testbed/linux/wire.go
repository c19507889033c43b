//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// WireOptions are what a wiring leaves open. The zero value addresses every node and has
// switches forward.
type WireOptions struct {
	// Bare says which nodes get links and nothing else, because something of ours sends and
	// receives on them instead of the kernel. Nil: soft-switch nodes.
	Bare func(*topo.Node) bool
	// Unsteered says which nodes' links leave what comes in to the CPU that it was sent on, because senders that
	// stay on one CPU each keep its order: that saves waking another one. Nil: none.
	Unsteered func(*topo.Node) bool
	// TCPMinRTO is the least retransmission timeout of TCP on hosts' routes, in wall time: the
	// kernel's 200 ms are a fraction of that in a dilated fabric's time. Zero: the kernel's own.
	TCPMinRTO time.Duration
	// Cables puts a cable between the ends of every link, where delay and impairments sit: a pair
	// of interfaces in a namespace of its own, each the peer of a port's. They are down, so that
	// the ports have no carrier, until what forwards between them is there and Connect is called.
	Cables bool
	// Progress, if set, hears how far the wiring is; calls don't overlap.
	Progress func(stage string, done, total int)
}

// Wiring is a plan brought to life: a namespace a node, its links up, addressed and routed.
type Wiring struct {
	plan   *topo.Plan
	nodes  map[string]*Namespace
	order  []*Namespace
	rto    time.Duration
	isBare func(*topo.Node) bool
	cables *Namespace // nil without cables
}

// Plan is what was wired.
func (w *Wiring) Plan() *topo.Plan { return w.plan }

// Node is a node's namespace; nil for an unknown node.
func (w *Wiring) Node(name string) *Namespace { return w.nodes[name] }

// Namespaces are all nodes', in the topology's order.
func (w *Wiring) Namespaces() []*Namespace { return w.order }

// Link finds a port's interface and the namespace that it is in.
func (w *Wiring) Link(ref topo.PortRef) (*Namespace, Link, bool) {
	n := w.nodes[ref.Node]
	if n == nil {
		return nil, Link{}, false
	}
	l, ok := n.Link(ref.Port)
	return n, l, ok
}

// Restore puts a node's addresses, neighbours, routes and rules back where something took
// them away: the kernel forgets routes and neighbours of an interface that is set down.
// What is there already stays.
func (w *Wiring) Restore(node string) error {
	n := w.nodes[node]
	if n == nil {
		return fmt.Errorf("node %s does not exist", node)
	}
	if w.isBare(w.plan.Node(node)) {
		return nil
	}
	var b batch
	w.address(&b, n)
	return n.route.send(&b, unix.EEXIST)
}

// SetRoutes changes routes of a node's main table: each replaces the one to the same destination,
// and one without next hops takes it away.
func (w *Wiring) SetRoutes(node string, routes []topo.Route) error {
	n := w.nodes[node]
	if n == nil {
		return fmt.Errorf("node %s does not exist", node)
	}
	host := w.plan.Node(node).Role == topo.Host
	var b batch
	for _, r := range routes {
		if len(r.NextHops) > 0 {
			w.route(&b, n, unix.RT_TABLE_MAIN, r, host)
			continue
		}
		b.begin(unix.RTM_DELROUTE, 0, func() string { return fmt.Sprintf("%s: withdraw route to %s", node, r.Dst) })
		b.u8(family(r.Dst.Addr()))
		b.u8(uint8(r.Dst.Bits()))
		b.u8(0)
		b.u8(0)
		b.u8(unix.RT_TABLE_MAIN)
		b.u8(unix.RTPROT_UNSPEC)
		b.u8(unix.RT_SCOPE_NOWHERE)
		b.u8(unix.RTN_UNSPEC)
		b.u32(0)
		b.attrAddr(unix.RTA_DST, r.Dst.Addr())
		b.end()
	}
	// ESRCH: it is gone already.
	return n.route.send(&b, unix.ESRCH)
}

// Wire makes the plan's namespaces and links in the testbed. When it fails, or ctx ends, what it
// made stays the testbed's and goes when that closes. A testbed is wired once.
func (t *Testbed) Wire(ctx context.Context, plan *topo.Plan, opt WireOptions) (*Wiring, error) {
	if opt.Bare == nil {
		opt.Bare = func(n *topo.Node) bool { return n.Kind == topo.SoftSwitch }
	}
	report := opt.Progress
	if report == nil {
		report = func(string, int, int) {}
	}
	nodes := plan.Topology.Nodes
	w := &Wiring{plan: plan, nodes: make(map[string]*Namespace, len(nodes)), order: make([]*Namespace, len(nodes)), rto: opt.TCPMinRTO, isBare: opt.Bare}

	t.mu.Lock()
	if t.closed || t.netns != nil {
		t.mu.Unlock()
		return nil, fmt.Errorf("testbed %s: wire: it is closed or wired already", t.name)
	}
	var err error
	t.netns, err = prepareNetnsDir()
	t.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("testbed %s: %w", t.name, err)
	}

	if err := t.Own(KindPrograms); err != nil {
		return nil, err
	}
	report("namespaces", 0, len(nodes))
	if err := t.makeNamespaces(ctx, w, opt); err != nil {
		return nil, err
	}
	if opt.Cables {
		if err := t.makeCableNamespace(w); err != nil {
			return nil, err
		}
	}
	report("links", 0, len(plan.Topology.Links))
	if err := w.makeLinks(ctx); err != nil {
		return nil, err
	}
	report("addresses and routes", 0, len(nodes))
	err = each(ctx, len(w.order), func(i int) error {
		n := w.order[i]
		if err := n.offloadsOff(); err != nil {
			return err
		}
		if w.isBare(&nodes[i]) {
			return nil
		}
		var b batch
		w.address(&b, n)
		return n.route.send(&b)
	})
	if err != nil {
		return nil, err
	}
	if opt.Cables {
		return w, w.cables.offloadsOff()
	}
	return w, w.settle(ctx)
}

// makeNamespaces makes every node's namespace, journals it, names it and sets it up.
func (t *Testbed) makeNamespaces(ctx context.Context, w *Wiring, opt WireOptions) error {
	nodes := w.plan.Topology.Nodes
	firstIndex := make([]int, len(nodes))
	next := firstLinkIndex
	for i := range nodes {
		firstIndex[i] = next
		next += len(nodes[i].Ports)
	}
	v6 := w.plan.Options.Family == topo.IPv6
	return eachThread(ctx, t.home, len(nodes), func(i int) error {
		node := &nodes[i]
		n, err := t.makeNamespace(node.Name)
		if err != nil {
			return err
		}
		n.addLinks(node, firstIndex[i])
		t.mu.Lock()
		w.order[i], w.nodes[node.Name] = n, n
		t.mu.Unlock()
		steer := opt.Unsteered == nil || !opt.Unsteered(node)
		return applySettings(node.Name, settingsOf(node, opt.Bare(node), v6, steer))
	})
}

// makeNamespace makes, journals and names one namespace, and leaves the calling thread in it.
func (t *Testbed) makeNamespace(node string) (*Namespace, error) {
	n, err := newNamespace(t.home, t.name, node)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.namespaces[node] = n
	t.mu.Unlock()
	if err := t.journal.own(n.entry()); err != nil {
		return nil, fmt.Errorf("%s: %w", node, err)
	}
	if err := n.publish(); err != nil {
		_ = t.journal.disown(n.entry())
		return nil, err
	}
	return n, nil
}

// firstLinkIndex is well above what the kernel gives to interfaces of its own.
const firstLinkIndex = 100

func (n *Namespace) addLinks(node *topo.Node, first int) {
	n.links = make([]Link, len(node.Ports))
	n.byPort = make(map[string]int, len(node.Ports))
	for i, p := range node.Ports {
		n.links[i] = Link{Port: p.Name, Name: LinkName(p.Name), Index: first + i}
		n.byPort[p.Name] = i
	}
}

func (n *Namespace) byIndex(index int) int {
	if i := index - n.links[0].Index; i >= 0 && i < len(n.links) {
		return i
	}
	return -1
}

// workers is how many threads talk to the kernel at once. Most of what they ask for is done
// under one lock of the kernel's, so that more than a few only queue there.
var workers = min(max(runtime.NumCPU(), 1), 4)

// each calls fn for 0 to n−1 from several goroutines, in that order of starting, until one fails
// or ctx ends, and returns all errors.
func each(ctx context.Context, n int, fn func(i int) error) error {
	return inParallel(ctx, workers, n, here, fn)
}

// eachThread is each, on threads that fn may leave in another namespace.
func eachThread(ctx context.Context, h home, n int, fn func(i int) error) error {
	return inParallel(ctx, workers, n, h.away, fn)
}

func here(work func() error) error { return work() }

func inParallel(ctx context.Context, workers, n int, around func(func() error) error, fn func(i int) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		errs []error
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) > 0 || next == n || ctx.Err() != nil {
			return -1
		}
		next++
		return next - 1
	}
	for range min(workers, n) {
		wg.Go(func() {
			err := around(func() error {
				for i := take(); i >= 0; i = take() {
					if err := fn(i); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(errs) == 0 {
		return ctx.Err()
	}
	return errors.Join(errs...)
}
