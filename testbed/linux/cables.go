//go:build linux

package linux

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// CableNode is what the namespace of the cables goes by where nodes have their names. No node
// of a topology can be called that.
const CableNode = "~cables"

// Cables is the namespace of the cables; nil for a wiring without. Its links are called after
// the ports they are the peers of, "leaf1:eth0".
func (w *Wiring) Cables() *Namespace { return w.cables }

// CableEnd is the interface at a port's end of its cable.
func (w *Wiring) CableEnd(ref topo.PortRef) (Link, bool) {
	if w.cables == nil {
		return Link{}, false
	}
	return w.cables.Link(ref.String())
}

func (w *Wiring) cableEnd(ref topo.PortRef) end {
	link, _ := w.CableEnd(ref)
	return end{ns: w.cables, link: link}
}

// makeCableNamespace makes the cables' namespace. Its interfaces are numbered after the nodes'.
func (t *Testbed) makeCableNamespace(w *Wiring) error {
	total := 0
	for i := range w.plan.Topology.Nodes {
		total += len(w.plan.Topology.Nodes[i].Ports)
	}
	node := &topo.Node{Name: CableNode, Role: topo.Switch}
	for i := range w.plan.Topology.Links {
		l := &w.plan.Topology.Links[i]
		node.Ports = append(node.Ports, topo.Port{Name: l.A.String()}, topo.Port{Name: l.B.String()})
	}
	return t.home.away(func() (err error) {
		if w.cables, err = t.makeNamespace(CableNode); err != nil {
			return err
		}
		w.cables.addLinks(node, firstLinkIndex+total)
		for i := range w.cables.links {
			l := &w.cables.links[i]
			// Neither nodes nor ports have a tilde in their names.
			l.Name = LinkName(strings.Replace(l.Port, ":", "~", 1))
		}
		return applySettings(CableNode, settingsOf(node, true, false, true))
	})
}

// Connect sets all cables up and waits until every port has its carrier.
func (w *Wiring) Connect(ctx context.Context) error {
	if w.cables == nil {
		return fmt.Errorf("testbed wired without cables: nothing to connect")
	}
	var b batch
	for _, l := range w.cables.links {
		b.begin(unix.RTM_SETLINK, 0, func() string { return l.Port + ": connect cable" })
		b.link(l.Index, unix.IFF_UP, unix.IFF_UP)
		b.end()
	}
	if err := w.cables.route.send(&b); err != nil {
		return err
	}
	return w.settle(ctx)
}

// SetCable cuts the cable of a port, or puts it together again. Both its ports lose their
// carrier, or have it again when this returns nil; their addresses, routes and neighbours stay
// (routes are marked linkdown, and switches don't use those).
func (w *Wiring) SetCable(ref topo.PortRef, up bool) error {
	port, ok := w.plan.Port(ref)
	if !ok || w.cables == nil {
		return fmt.Errorf("%s: no such cable", ref)
	}
	flags, word := uint32(0), "cut"
	if up {
		flags, word = unix.IFF_UP, "mend"
	}
	var b batch
	for _, r := range []topo.PortRef{ref, port.Peer} {
		l, _ := w.CableEnd(r)
		b.begin(unix.RTM_SETLINK, 0, func() string { return fmt.Sprintf("%s: %s cable", r, word) })
		b.link(l.Index, flags, unix.IFF_UP)
		b.end()
	}
	return w.cables.route.send(&b)
}
