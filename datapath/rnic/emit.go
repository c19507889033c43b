package rnic

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
)

// emitRoom is how many of the host's own packets of a priority wait for the line at most, as in Linux's txqueuelen.
const emitRoom = 1000

// Datagram is a UDP datagram of the host's own stack.
type Datagram struct {
	To               netip.Addr
	SrcPort, DstPort uint16
	TrafficClass     uint8
	ID               uint16 // of IPv4
	Len              int    // bytes of payload, all zero
}

// Emit sends a datagram through the device's port, in its priority's turn on the line and before RoCE's data there. It is no
// packet of the device's, whose counters leave it out but for the priority's. ErrFull says that the port's queue has no room for it.
func (d *Device) Emit(g Datagram) error {
	to := roce.AddrFrom(g.To)
	n, ok := d.cfg.Resolve(to)
	mac, four := n.MAC, d.cfg.Addr.Is4()
	most := d.cfg.MTU - roce.UDPLen - roce.IPv6Len
	if four {
		most += roce.IPv6Len - roce.IPv4Len
	}
	priority := d.cfg.Priorities.Of(g.TrafficClass)
	switch {
	case d.closed:
		return d.fail("emit", ErrClosed)
	case !ok, to.Is4() != four:
		return d.fail("emit", fmt.Errorf("%w: nobody here has the address %v", ErrInvalid, g.To))
	case g.Len < 0 || g.Len > most:
		return d.fail("emit", fmt.Errorf("%w: a datagram of %d bytes, %d are possible", ErrInvalid, g.Len, most))
	case g.DstPort == roce.Port:
		return d.fail("emit", fmt.Errorf("%w: port %d is RoCE's", ErrInvalid, roce.Port))
	case d.port.classes[priority&7].controls.len() >= emitRoom:
		return ErrFull
	}
	f := d.frames.Get()
	e := roce.Ethernet{Dst: mac, Src: d.cfg.MAC, Type: roce.EtherTypeIPv6}
	if four {
		e.Type = roce.EtherTypeIPv4
	}
	b := e.Append(f.Buf[:0])
	if four {
		h := roce.IPv4{TOS: g.TrafficClass, ID: g.ID, DF: true, TTL: 64, Protocol: roce.ProtocolUDP}
		copy(h.Src[:], d.cfg.Addr[12:])
		copy(h.Dst[:], to[12:])
		b = h.Append(b, roce.UDPLen+g.Len)
	} else {
		h := roce.IPv6{TrafficClass: g.TrafficClass, NextHeader: roce.ProtocolUDP, HopLimit: 64, Src: d.cfg.Addr, Dst: to}
		b = h.Append(b, roce.UDPLen+g.Len)
	}
	l4 := len(b)
	b = append(roce.AppendUDP(b, g.SrcPort, g.DstPort, g.Len), make([]byte, g.Len)...)
	if sum := roce.Checksum(b[l4:], roce.PseudoSum(d.cfg.Addr, to, roce.ProtocolUDP, roce.UDPLen+g.Len)); sum != 0 {
		binary.BigEndian.PutUint16(b[l4+6:], sum)
	} else {
		binary.BigEndian.PutUint16(b[l4+6:], 0xffff) // 0 says that there is none (RFC 768)
	}
	f.Buf = b
	if err := f.Parse(b); err != nil {
		d.frames.Put(f)
		return d.fail("emit", err)
	}
	f.Dst, f.Priority = n.Dst, priority
	f.Flow = link.FlowHash(d.cfg.Addr, to, roce.ProtocolUDP, g.SrcPort, g.DstPort)
	d.port.control(f, d.loop.Now())
	return nil
}
