package asic

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

var be = binary.BigEndian

// icmpKind is an error that a router sends, as types and codes of ICMP (RFC 792) and ICMPv6 (RFC 4443).
type icmpKind struct{ type4, code4, type6, code6 uint8 }

var (
	timeExceeded = icmpKind{11, 0, 3, 0} // TTL, or hop limit, in transit
	noRoute      = icmpKind{3, 0, 1, 0}  // network unreachable; no route to destination
	packetTooBig = icmpKind{3, 4, 2, 0}  // fragmentation needed and DF set; packet too big
)

// Types of messages that a switch itself answers.
const (
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
	neighborSolicitation     = 135 // RFC 4861
	neighborAdvertisement    = 136
)

// icmpHeader is the length of the header of an error, before what it quotes. What it quotes of the packet
// keeps it within the minimum MTU (RFC 1812 4.3.2.3, RFC 4443 2.4).
const (
	icmpHeader = 8
	mostQuoted = 576 - roce.IPv4Len - icmpHeader
	mostQuote6 = 1280 - roce.IPv6Len - icmpHeader
)

// bucket limits the ICMP errors of a port, as a router must (RFC 4443 2.4 f): a burst, and then so many a time.
type bucket struct {
	spent loop.Time // the time up to which tokens are spent
}

const (
	errorEvery = 10 * loop.Duration(1000) // 10 µs: 100,000 a second
	errorBurst = 64
)

func (b *bucket) take(now loop.Time) bool {
	b.spent = max(b.spent, now.Add(-errorBurst*errorEvery))
	if b.spent.Add(errorEvery) > now {
		return false
	}
	b.spent = b.spent.Add(errorEvery)
	return true
}

// icmpError tells the sender of a packet that it was dropped at ingress port in, and why. Packets about which
// nobody may be told are passed over: ICMP errors, fragments but the first, and what has no single source
// (RFC 1122 3.2.2).
func (s *Switch) icmpError(now loop.Time, f *link.Frame, in *port, kind icmpKind, mtu int) {
	v := &f.View
	src, own := v.SrcAddr(), s.config[in.index].Addr
	v6 := v.IsIPv6()
	if v6 == own.Is4() || multicast(src) || src == (roce.Addr{}) || !v6 && src.As4() == [4]byte{} || multicast(v.DstAddr()) {
		return
	}
	quoted := v.IP()
	l4 := v.L4()
	if v6 {
		if v.Protocol() == roce.ProtocolICMPv6 && (len(l4) == 0 || l4[0] < 128) {
			return
		}
		quoted = quoted[:min(len(quoted), mostQuote6)]
	} else {
		if be.Uint16(quoted[6:])&0x1fff != 0 || v.Protocol() == roce.ProtocolICMP && (len(l4) == 0 || l4[0] != echoRequest4 && l4[0] != echoReply4) {
			return
		}
		quoted = quoted[:min(len(quoted), mostQuoted)]
	}
	if !in.errors.take(now) {
		return
	}
	g := s.frames.Get()
	b := s.openIP(g.Buf[:0], in, own, src, icmpHeader+len(quoted), v.TrafficClass()&^3, 64)
	at := len(b)
	t, c := kind.type4, kind.code4
	if v6 {
		t, c = kind.type6, kind.code6
	}
	b = append(b, t, c, 0, 0, 0, 0, 0, 0)
	if v6 {
		be.PutUint32(b[at+4:], uint32(mtu))
	} else {
		be.PutUint16(b[at+6:], uint16(mtu)) // RFC 1191
	}
	b = append(b, quoted...)
	closeICMP(b[at:], own, src)
	s.originate(now, g, b, in)
}

// openIP begins a frame of n bytes of ICMP that leaves by a port: its Ethernet and IP headers.
func (s *Switch) openIP(b []byte, by *port, from, to roce.Addr, n int, trafficClass, ttl uint8) []byte {
	c := &s.config[by.index]
	eth := roce.Ethernet{Dst: c.PeerMAC, Src: c.MAC, Type: roce.EtherTypeIPv6}
	if to.Is4() {
		eth.Type = roce.EtherTypeIPv4
		ip := roce.IPv4{TOS: trafficClass, TTL: ttl, Protocol: roce.ProtocolICMP, Src: from.As4(), Dst: to.As4()}
		return ip.Append(eth.Append(b), n)
	}
	ip := roce.IPv6{TrafficClass: trafficClass, NextHeader: roce.ProtocolICMPv6, HopLimit: ttl, Src: from, Dst: to}
	return ip.Append(eth.Append(b), n)
}

// closeICMP writes the checksum of a message, whose own checksum is 0 so far.
func closeICMP(m []byte, src, dst roce.Addr) {
	sum := uint64(0)
	if !src.Is4() {
		sum = roce.PseudoSum(src, dst, roce.ProtocolICMPv6, len(m))
	}
	be.PutUint16(m[2:], roce.Checksum(m, sum))
}

// originate sends a frame of the switch's own, in bytes b: where its destination is, or back through
// port in where that isn't known.
func (s *Switch) originate(now loop.Time, f *link.Frame, b []byte, in *port) {
	b = roce.PadFrame(b, 0)
	f.Buf = b
	if f.Parse(b) != nil {
		s.frames.Put(f) // can't be: it was written here
		return
	}
	f.Dst, f.Port = link.NoDst, uint16(in.index)
	out := in
	if f.Kind >= roce.KindIP && s.resolve != nil {
		f.Classify(s.resolve)
		f.Priority = in.table.dscp[f.TrafficClass>>2]
		if p := s.route(now, f); p != nil {
			out = p
		}
	}
	if !out.up {
		s.drop(f, out, DropDown)
		return
	}
	s.originated++
	out.take(now, f, in)
}
