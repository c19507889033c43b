package asic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// receiveBytes takes a frame in byte form: ordinary traffic, or RoCE that came from a socket.
func (s *Switch) receiveBytes(now loop.Time, f *link.Frame, in *port) {
	in.rxUnclassed++
	switch {
	case f.Bytes == nil:
		s.drop(f, in, DropBroken)
	case f.Kind == roce.KindARP:
		s.arp(now, f, in)
	case f.Kind < roce.KindIP:
		s.drop(f, in, DropOther)
	case !f.View.IPv4OK():
		s.drop(f, in, DropBroken)
	case s.forSelf(f, in):
		s.local(now, f, in)
	case multicast(f.View.DstAddr()):
		s.drop(f, in, DropOther)
	case f.TTL <= 1:
		s.icmpError(now, f, in, timeExceeded, 0)
		s.drop(f, in, DropTTL)
	default:
		in.rxUnclassed-- // forward gives it a priority
		s.forward(now, f, in)
	}
}

// unroutable ends a frame that no port leads on.
func (s *Switch) unroutable(now loop.Time, f *link.Frame, in *port) {
	if s.isSelf(f.Dst) { // RoCE in struct form: there is no RNIC here
		s.drop(f, in, DropOther)
		return
	}
	if f.Bytes != nil {
		s.icmpError(now, f, in, noRoute, 0)
	}
	s.drop(f, in, DropNoRoute)
}

// tooLong ends a frame that is longer than the MTU of the port it should leave by.
func (s *Switch) tooLong(now loop.Time, f *link.Frame, in, out *port) {
	if f.Bytes != nil {
		s.icmpError(now, f, in, packetTooBig, int(out.table.mtu))
	}
	s.drop(f, out, DropMTU)
}

func (s *Switch) isSelf(dst uint32) bool {
	return uint(dst) < uint(len(s.hops)) && s.hops[dst] == toSelf
}

// rewrite brings the bytes of a frame that leaves in line with what the switch made of it.
func (p *port) rewrite(f *link.Frame) {
	if f.Kind < roce.KindIP {
		return
	}
	c := &p.sw.config[p.index]
	f.View.SetMACs(c.PeerMAC, c.MAC)
	f.Flush()
}

func multicast(a roce.Addr) bool {
	if a.Is4() {
		return a[12] >= 224 // and the limited broadcast
	}
	return a[0] == 0xff
}
