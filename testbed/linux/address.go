//go:build linux

package linux

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

const (
	// Rules of hosts with several NICs come after the local table (0) and before main (32766).
	firstRule = 1000

	raxRTOMin = 13 // RTAX_RTO_MIN, linux/rtnetlink.h; milliseconds
)

// address adds a node's addresses, neighbours, routes and rules.
//
// Neighbours are permanent, from the plan: a fabric of hundreds of links would start with a
// storm of ARP; entries that age in wall time age a thousand times too fast in a dilated
// fabric; and a fault that is meant for data must not break a path by losing the ARP for it.
func (w *Wiring) address(b *batch, n *Namespace) {
	ports := w.plan.Ports(n.node)
	for i := range ports {
		p, l := &ports[i], n.links[i]
		b.begin(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, func() string { return fmt.Sprintf("%s: add address %s", p.Ref, p.Addr) })
		b.u8(family(p.Addr.Addr()))
		b.u8(uint8(p.Addr.Bits()))
		b.u8(unix.IFA_F_PERMANENT | unix.IFA_F_NODAD)
		b.u8(unix.RT_SCOPE_UNIVERSE)
		b.u32(uint32(l.Index))
		b.attrAddr(unix.IFA_LOCAL, p.Addr.Addr())
		b.attrAddr(unix.IFA_ADDRESS, p.Addr.Addr())
		b.end()

		b.begin(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, func() string { return fmt.Sprintf("%s: add neighbour %s", p.Ref, p.PeerAddr) })
		b.u8(family(p.PeerAddr))
		b.u8(0)
		b.u16(0)
		b.u32(uint32(l.Index))
		b.u16(unix.NUD_PERMANENT)
		b.u8(0)
		b.u8(0)
		b.attrAddr(unix.NDA_DST, p.PeerAddr)
		b.attr(unix.NDA_LLADDR, p.PeerMAC[:])
		b.end()
	}
	host := w.plan.Node(n.node).Role == topo.Host
	for _, r := range w.plan.Routes(n.node) {
		w.route(b, n, unix.RT_TABLE_MAIN, r, host)
	}
	for i, t := range w.plan.PolicyTables(n.node) {
		for _, r := range t.Routes {
			w.route(b, n, t.Table, r, host)
		}
		rule(b, n, t, firstRule+2*i)
	}
}

// route adds one route with all its next hops; a next hop without an address is the link itself.
func (w *Wiring) route(b *batch, n *Namespace, table int, r topo.Route, host bool) {
	b.begin(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, func() string {
		return fmt.Sprintf("%s: add route to %s by %d next hops (table %d)", n.node, r.Dst, len(r.NextHops), table)
	})
	scope := uint8(unix.RT_SCOPE_UNIVERSE)
	if r.Dst.Addr().Is4() && len(r.NextHops) == 1 && !r.NextHops[0].Via.IsValid() {
		scope = unix.RT_SCOPE_LINK
	}
	b.u8(family(r.Dst.Addr()))
	b.u8(uint8(r.Dst.Bits()))
	b.u8(0)
	b.u8(0)
	b.u8(unix.RT_TABLE_UNSPEC)
	b.u8(unix.RTPROT_STATIC)
	b.u8(scope)
	b.u8(unix.RTN_UNICAST)
	b.u32(0)
	b.attrU32(unix.RTA_TABLE, uint32(table))
	if r.Dst.Bits() > 0 {
		b.attrAddr(unix.RTA_DST, r.Dst.Addr())
	}
	if host && w.rto > 0 {
		done := b.nest(unix.RTA_METRICS)
		b.attrU32(raxRTOMin, uint32((w.rto+time.Millisecond-1)/time.Millisecond))
		done()
	}
	if len(r.NextHops) == 1 {
		gateway(b, r.NextHops[0].Via)
		b.attrU32(unix.RTA_OIF, n.index(r.NextHops[0].Port))
	} else {
		done := b.nest(unix.RTA_MULTIPATH)
		for _, h := range r.NextHops {
			at := len(b.buf)
			b.u16(0)
			b.u8(0)
			b.u8(0) // weight less one
			b.u32(n.index(h.Port))
			gateway(b, h.Via)
			native.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
		}
		done()
	}
	b.end()
}

func gateway(b *batch, via netip.Addr) {
	if via.IsValid() {
		b.attrAddr(unix.RTA_GATEWAY, via)
	}
}

func (n *Namespace) index(port string) uint32 {
	return uint32(n.links[n.byPort[port]].Index)
}

// rule sends what has a NIC's source address, and what is bound to the NIC, to the NIC's table.
// RDMA devices look routes up bound to their interface.
func rule(b *batch, n *Namespace, t topo.PolicyTable, priority int) {
	begin := func(srcBits int, pri int) {
		b.begin(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, func() string {
			return fmt.Sprintf("%s:%s: add rule for table %d", n.node, t.Port, t.Table)
		})
		b.u8(family(t.Source.Addr()))
		b.u8(0)
		b.u8(uint8(srcBits))
		b.u8(0)
		b.u8(unix.RT_TABLE_UNSPEC)
		b.u8(0)
		b.u8(0)
		b.u8(unix.FR_ACT_TO_TBL)
		b.u32(0)
		b.attrU32(unix.FRA_TABLE, uint32(t.Table))
		b.attrU32(unix.FRA_PRIORITY, uint32(pri))
	}
	begin(t.Source.Bits(), priority)
	b.attrAddr(unix.FRA_SRC, t.Source.Addr())
	b.end()
	begin(0, priority+1)
	b.attrString(unix.FRA_OIFNAME, n.links[n.byPort[t.Port]].Name)
	b.end()
}
