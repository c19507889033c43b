package faults

import (
	"net/netip"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Addresses that nobody has, as RFC 5737 and RFC 3849 keep them for.
var nobody4, nobody6 = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")

// WrongAddress is the address that a wrong-gid fault has a port send from: its own Addr, or one that nobody has.
func (s *Spec) WrongAddress(plan *topo.Plan, at topo.PortRef) (netip.Addr, error) {
	p, _ := plan.Port(at)
	own := p.Addr.Addr()
	addr := nobody4
	if own.Is6() {
		addr = nobody6
	}
	if s.Addr != "" {
		addr = netip.MustParseAddr(s.Addr).Unmap()
	}
	if addr.Is4() != own.Is4() {
		return addr, strict.At("addr", "%s is of another family than %s's %s", addr, at, own)
	}
	for i := range plan.PortCount() {
		if has := plan.PortAt(i); has.Addr.Addr() == addr {
			return addr, strict.At("addr", "%s has that address", has.Ref)
		}
	}
	return addr, nil
}
