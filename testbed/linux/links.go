//go:build linux

package linux

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

const (
	infoPeer = 1 // VETH_INFO_PEER, linux/veth.h

	iflaPropList  = 52 // linux/if_link.h
	iflaAltIfname = 53
)

// An end is one end of a veth pair.
type end struct {
	ns   *Namespace
	link Link
	mac  []byte // nil: the kernel's choice
}

// end is the end of a link at a port.
func (w *Wiring) end(ref topo.PortRef) end {
	port, _ := w.plan.Port(ref)
	n := w.nodes[ref.Node]
	link, _ := n.Link(ref.Port)
	return end{n, link, port.MAC[:]}
}

// makeLinks makes every link, as one veth pair or as one a port to the cable between them, all
// ends where they belong from the start, and sets the ports up. The node with more ports asks
// for the pair, so that a switch's links are one request to the kernel.
func (w *Wiring) makeLinks(ctx context.Context) error {
	links := w.plan.Topology.Links
	batches := make(map[*Namespace]*batch)
	var makers []*Namespace
	pair := func(near, far end, mtu int) {
		b := batches[near.ns]
		if b == nil {
			b = new(batch)
			batches[near.ns] = b
			makers = append(makers, near.ns)
		}
		veth(b, near, far, mtu)
	}
	for i := range links {
		l := &links[i]
		a, b := w.end(l.A), w.end(l.B)
		switch {
		case w.cables != nil:
			pair(a, w.cableEnd(l.A), l.MTU)
			pair(b, w.cableEnd(l.B), l.MTU)
		case len(a.ns.links) < len(b.ns.links):
			pair(b, a, l.MTU)
		default:
			pair(a, b, l.MTU)
		}
	}
	err := each(ctx, len(makers), func(i int) error {
		return makers[i].route.send(batches[makers[i]])
	})
	if err != nil {
		return err
	}
	// The far ends can't be set up as they are made: the kernel connects the pair later. All
	// links are up before the first route needs one, or its next hops would count as dead.
	return each(ctx, len(w.order), func(i int) error {
		n := w.order[i]
		var b batch
		b.begin(unix.RTM_SETLINK, 0, func() string { return n.node + ": set lo up" })
		b.link(1, unix.IFF_UP, unix.IFF_UP)
		b.end()
		for _, l := range n.links {
			b.begin(unix.RTM_SETLINK, 0, func() string { return n.node + ":" + l.Port + ": set link up" })
			b.link(l.Index, unix.IFF_UP, unix.IFF_UP)
			b.end()
			if l.Name != l.Port && clean(l.Port, "/:%\x00") == l.Port {
				b.begin(unix.RTM_NEWLINKPROP, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_APPEND,
					func() string { return n.node + ":" + l.Port + ": keep the long name as altname" })
				b.link(l.Index, 0, 0)
				done := b.nest(iflaPropList | unix.NLA_F_NESTED)
				b.attrString(iflaAltIfname, l.Port)
				done()
				b.end()
			}
		}
		return n.route.send(&b)
	})
}

func veth(b *batch, near, far end, mtu int) {
	b.begin(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, func() string {
		return fmt.Sprintf("make link %s:%s - %s:%s", near.ns.node, near.link.Port, far.ns.node, far.link.Port)
	})
	near.describe(b, mtu, unix.IFF_UP)
	info := b.nest(unix.IFLA_LINKINFO | unix.NLA_F_NESTED)
	b.attrString(unix.IFLA_INFO_KIND, "veth")
	data := b.nest(unix.IFLA_INFO_DATA | unix.NLA_F_NESTED)
	peer := b.nest(infoPeer | unix.NLA_F_NESTED)
	far.describe(b, mtu, 0)
	b.attrU32(unix.IFLA_NET_NS_FD, uint32(far.ns.fd))
	peer()
	data()
	info()
	b.end()
}

// describe describes an end. One queue a direction: the kernel would otherwise make one a
// possible CPU, and several are several orders.
func (e end) describe(b *batch, mtu int, flags uint32) {
	b.link(e.link.Index, flags, flags)
	b.attrString(unix.IFLA_IFNAME, e.link.Name)
	b.attrU32(unix.IFLA_MTU, uint32(mtu))
	if e.mac != nil {
		b.attr(unix.IFLA_ADDRESS, e.mac)
	}
	b.attrU32(unix.IFLA_GROUP, linkGroup)
	b.attrU32(unix.IFLA_NUM_TX_QUEUES, 1)
	b.attrU32(unix.IFLA_NUM_RX_QUEUES, 1)
}
