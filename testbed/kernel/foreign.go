//go:build linux

package kernel

import (
	"context"
	"fmt"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Foreign are the nodes of a fabric whose kinds this backend doesn't make: soft-hosts and soft-switches. They
// stand in its namespaces at the ends of its cables, so that what goes wrong on a link goes wrong for them alike. What a
// fault asks of the node itself, it asks here. The nodes are there once Build has returned, and the methods may be called from any
// goroutine.
type Foreign interface {
	// SetCarrier tells a port that it loses its carrier now, or has it again.
	SetCarrier(port topo.PortRef, up bool) error
	// SetRate changes the rate of what a port sends, in fabric time; Rate is what it is.
	SetRate(port topo.PortRef, r topo.Rate) error
	Rate(port topo.PortRef) (topo.Rate, error)
	// Sent is how many packets a port has sent.
	Sent(port topo.PortRef) (uint64, error)
	// SetLink tells foreign switches' routing that a link is down, or up again.
	SetLink(link int, up bool) error
}

// foreignNodes gives foreign nodes their place: a namespace, without trees on its ports.
type foreignNodes struct {
	f    *Fabric
	kind topo.Kind
}

// Kind is what the nodes are made of.
func (d foreignNodes) Kind() topo.Kind { return d.kind }

// Check leaves it to who makes them.
func (d foreignNodes) Check(*topo.Node) error { return nil }

// Build makes the node's place.
func (d foreignNodes) Build(_ context.Context, n *topo.Node) (fabric.Node, error) {
	return &node{name: n.Name, kind: d.kind, ns: d.f.wiring.Node(n.Name)}, nil
}

// foreign says that somebody else made the node.
func (n *node) foreign() bool { return n.ports == nil }

// foreignEnds are the ends of a cable at foreign nodes.
func (f *Fabric) foreignEnds(ref topo.PortRef) (ends []topo.PortRef) {
	for _, r := range f.ends(ref) {
		if n := f.nodes[r.Node]; n != nil && n.foreign() {
			ends = append(ends, r)
		}
	}
	return ends
}

// foreignSlow is slow where a foreign node sends: its line is slower.
type foreignSlow struct {
	f    *Fabric
	name string
	from topo.PortRef
	rate topo.Rate // of fabric time

	full    topo.Rate // before
	before  uint64    // packets that the port had sent when it was applied
	final   uint64
	applied bool
	healed  bool
}

// possible compares the rate with the link's.
func (e *foreignSlow) possible() error {
	if full := e.f.Plan().Link(e.from).Rate; e.rate >= full {
		return fmt.Errorf("%s: the link carries no more than the fault leaves it (%v)", e.from, full)
	}
	return nil
}

// allowed refuses a link that another fault slows.
func (e *foreignSlow) allowed() error {
	r, err := e.f.cfg.Foreign.Rate(e.from)
	if err == nil && r != e.f.Plan().Link(e.from).Rate {
		err = fmt.Errorf("%s: its rate is limited by another fault already", e.from)
	}
	return err
}

func (e *foreignSlow) apply() (err error) {
	if err := e.allowed(); err != nil {
		return err
	}
	if e.full, err = e.f.cfg.Foreign.Rate(e.from); err != nil {
		return err
	}
	if e.before, err = e.f.cfg.Foreign.Sent(e.from); err != nil {
		return err
	}
	err = e.f.cfg.Foreign.SetRate(e.from, e.rate)
	e.applied = err == nil
	return err
}

func (e *foreignSlow) verify() error { return e.has(e.rate) }
func (e *foreignSlow) clean() error  { return e.has(e.full) }

func (e *foreignSlow) has(want topo.Rate) error {
	r, err := e.f.cfg.Foreign.Rate(e.from)
	if err == nil && r != want {
		err = fmt.Errorf("%s: its line's rate is %v, not %v", e.from, r, want)
	}
	return err
}

// hits are the packets that went through the slower line.
func (e *foreignSlow) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	n, err := e.f.cfg.Foreign.Sent(e.from)
	return n - e.before, err
}

func (e *foreignSlow) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	if err := e.f.cfg.Foreign.SetRate(e.from, e.full); err != nil {
		return err
	}
	e.final, e.healed = n, true
	return nil
}
