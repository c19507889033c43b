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

// makeLinks makes every link as a veth pair, both ends where they belong from the start, and
// sets them up. The node with more ports asks for the link, so that a switch's links are one
// request to the kernel.
func (w *Wiring) makeLinks(ctx context.Context) error {
	links := w.plan.Topology.Links
	batches := make(map[*Namespace]*batch)
	var makers []*Namespace
	for i := range links {
		l := &links[i]
		near, far := l.A, l.B
		if len(w.nodes[near.Node].links) < len(w.nodes[far.Node].links) {
			near, far = far, near
		}
		n := w.nodes[near.Node]
		b := batches[n]
		if b == nil {
			b = new(batch)
			batches[n] = b
			makers = append(makers, n)
		}
		w.veth(b, l, near, far)
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

func (w *Wiring) veth(b *batch, l *topo.Link, near, far topo.PortRef) {
	b.begin(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, func() string {
		return fmt.Sprintf("make link %s-%s", near, far)
	})
	w.vethEnd(b, l, near, unix.IFF_UP)
	info := b.nest(unix.IFLA_LINKINFO | unix.NLA_F_NESTED)
	b.attrString(unix.IFLA_INFO_KIND, "veth")
	data := b.nest(unix.IFLA_INFO_DATA | unix.NLA_F_NESTED)
	peer := b.nest(infoPeer | unix.NLA_F_NESTED)
	w.vethEnd(b, l, far, 0)
	b.attrU32(unix.IFLA_NET_NS_FD, uint32(w.nodes[far.Node].fd))
	peer()
	data()
	info()
	b.end()
}

// vethEnd describes one end. One queue a direction: the kernel would otherwise make one a
// possible CPU, and several are several orders.
func (w *Wiring) vethEnd(b *batch, l *topo.Link, ref topo.PortRef, flags uint32) {
	link, _ := w.nodes[ref.Node].Link(ref.Port)
	port, _ := w.plan.Port(ref)
	b.link(link.Index, flags, flags)
	b.attrString(unix.IFLA_IFNAME, link.Name)
	b.attrU32(unix.IFLA_MTU, uint32(l.MTU))
	b.attr(unix.IFLA_ADDRESS, port.MAC[:])
	b.attrU32(unix.IFLA_GROUP, linkGroup)
	b.attrU32(unix.IFLA_NUM_TX_QUEUES, 1)
	b.attrU32(unix.IFLA_NUM_RX_QUEUES, 1)
}
