package asic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// linkLocal is the address that a port has on its link besides its own (RFC 4291, appendix A).
func linkLocal(m roce.MAC) roce.Addr {
	return roce.Addr{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
}

// owns says whether a port answers for an address.
func (s *Switch) owns(p *port, a roce.Addr) bool {
	c := &s.config[p.index]
	return a == c.Addr || a == linkLocal(c.MAC)
}

// forSelf says whether a packet is for the switch: for an address of any of its ports, or one that all
// nodes of a link listen to.
func (s *Switch) forSelf(f *link.Frame, in *port) bool {
	if s.isSelf(f.Dst) {
		return true
	}
	dst := f.View.DstAddr()
	if s.owns(in, dst) {
		return true
	}
	return f.View.IsIPv6() && dst[0] == 0xff && s.solicited(f, in)
}

// solicited says whether a packet is a neighbour solicitation for an address of a port.
func (s *Switch) solicited(f *link.Frame, in *port) bool {
	m := f.View.L4()
	return f.View.Protocol() == roce.ProtocolICMPv6 && len(m) >= 24 && m[0] == neighborSolicitation && s.owns(in, roce.Addr(m[8:]))
}

// arp answers a request for the port's own address.
func (s *Switch) arp(now loop.Time, f *link.Frame, in *port) {
	c, r := &s.config[in.index], f.View.ARP()
	if r.Operation != roce.ARPRequest || !c.Addr.Is4() || r.Target != c.Addr.As4() {
		s.drop(f, in, DropOther)
		return
	}
	g := s.frames.Get()
	eth := roce.Ethernet{Dst: r.SenderMAC, Src: c.MAC, Type: roce.EtherTypeARP}
	reply := roce.ARP{Operation: roce.ARPReply, SenderMAC: c.MAC, Sender: r.Target, TargetMAC: r.SenderMAC, Target: r.Sender}
	s.originate(now, g, reply.Append(eth.Append(g.Buf[:0])), in)
	s.consume(f)
}

// local takes a packet for the switch itself: it answers echo requests and neighbour solicitations.
func (s *Switch) local(now loop.Time, f *link.Frame, in *port) {
	v := &f.View
	m, src, dst := v.L4(), v.SrcAddr(), v.DstAddr()
	switch {
	case v.Fragment() || len(m) < 8 || multicast(src):
	case v.IsIPv6() && s.solicited(f, in):
		s.advertise(now, roce.Addr(m[8:]), src, in)
		s.consume(f)
		return
	case !v.IsIPv6() && v.Protocol() == roce.ProtocolICMP && m[0] == echoRequest4 && roce.Checksum(m, 0) == 0:
		s.echo(now, f, in, dst, src, echoReply4)
		return
	case v.IsIPv6() && v.Protocol() == roce.ProtocolICMPv6 && m[0] == echoRequest6 &&
		roce.Checksum(m, roce.PseudoSum(src, dst, roce.ProtocolICMPv6, len(m))) == 0:
		s.echo(now, f, in, dst, src, echoReply6)
		return
	}
	s.drop(f, in, DropOther)
}

// echo answers an echo request from the address that was asked.
func (s *Switch) echo(now loop.Time, f *link.Frame, in *port, from, to roce.Addr, kind uint8) {
	m := f.View.L4()
	g := s.frames.Get()
	b := s.openIP(g.Buf[:0], in, from, to, len(m), f.TrafficClass&^3, 64)
	at := len(b)
	b = append(b, kind, 0, 0, 0)
	b = append(b, m[4:]...)
	closeICMP(b[at:], from, to)
	s.originate(now, g, b, in)
	s.consume(f)
}

// advertise answers a solicitation for an address of a port (RFC 4861 7.2.4). One from the unspecified
// address, of a node that makes sure an address is free, is answered to all nodes.
func (s *Switch) advertise(now loop.Time, target, to roce.Addr, in *port) {
	const router, solicited, override, targetLinkLayer = 0x80, 0x40, 0x20, 2
	flags := uint8(router | solicited | override)
	if to == (roce.Addr{}) {
		to = roce.Addr{0: 0xff, 1: 2, 15: 1}
		flags &^= solicited
	}
	mac := s.config[in.index].MAC
	g := s.frames.Get()
	b := s.openIP(g.Buf[:0], in, target, to, 32, 0, 255)
	at := len(b)
	b = append(b, neighborAdvertisement, 0, 0, 0, flags, 0, 0, 0)
	b = append(b, target[:]...)
	b = append(b, targetLinkLayer, 1)
	b = append(b, mac[:]...)
	closeICMP(b[at:], target, to)
	s.originate(now, g, b, in)
}

// consume ends a frame that was for the switch.
func (s *Switch) consume(f *link.Frame) {
	s.consumed++
	s.frames.Put(f)
}
