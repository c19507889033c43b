package roce

// Accessors of a View. Those of a layer that the frame's kind doesn't have panic or give nonsense.

// Kind is how far the frame is understood.
func (v *View) Kind() Kind { return v.kind }

// Frame is the whole frame, as Parse got it.
func (v *View) Frame() []byte { return v.frame }

// Ethernet is the frame's header. Every View has it that Parse didn't refuse with ErrTruncated.
func (v *View) Ethernet() (h Ethernet) {
	h.Dst, h.Src, h.Type = MAC(v.frame), MAC(v.frame[6:]), EtherType(be.Uint16(v.frame[12:]))
	if h.Type == EtherTypeVLAN {
		h.Tagged, h.TCI, h.Type = true, TCI(be.Uint16(v.frame[14:])), EtherType(be.Uint16(v.frame[16:]))
	}
	return h
}

// Dst is the frame's destination.
func (v *View) Dst() MAC { return MAC(v.frame) }

// ARP is the message of a KindARP.
func (v *View) ARP() (h ARP) { h.get(v.frame[v.l3:]); return h }

// Pause is the quanta of a KindPause.
func (v *View) Pause() uint16 { return be.Uint16(v.frame[v.l3+2:]) }

// PFC is what a KindPFC says.
func (v *View) PFC() (f PFC) {
	p := v.frame[v.l3:]
	f.Enabled = p[3]
	for i := range f.Quanta {
		f.Quanta[i] = be.Uint16(p[4+2*i:])
	}
	return f
}

// IsIPv6 says that an IP packet's version is 6.
func (v *View) IsIPv6() bool { return v.v6 }

// IP is the packet from its IP header on, without what Ethernet filled up.
func (v *View) IP() []byte { return v.frame[v.l3:v.end] }

// L4 is what follows the IP header (of IPv6: extension headers first).
func (v *View) L4() []byte { return v.frame[v.l4:v.end] }

// TrafficClass is IPv4's TOS or IPv6's traffic class.
func (v *View) TrafficClass() uint8 {
	if v.v6 {
		return uint8(be.Uint16(v.frame[v.l3:]) >> 4)
	}
	return v.frame[v.l3+1]
}

// DSCP is the upper six bits of the traffic class.
func (v *View) DSCP() uint8 { return v.TrafficClass() >> 2 }

// ECN is the lower two bits of the traffic class.
func (v *View) ECN() ECN { return ECN(v.TrafficClass() & 3) }

// TTL is IPv4's time to live or IPv6's hop limit.
func (v *View) TTL() uint8 {
	if v.v6 {
		return v.frame[v.l3+7]
	}
	return v.frame[v.l3+8]
}

// Protocol is IPv4's protocol or IPv6's next header.
func (v *View) Protocol() uint8 {
	if v.v6 {
		return v.frame[v.l3+6]
	}
	return v.frame[v.l3+9]
}

// FlowLabel is IPv6's, 20 bits; 0 for IPv4.
func (v *View) FlowLabel() uint32 {
	if v.v6 {
		return be.Uint32(v.frame[v.l3:]) & 0xfffff
	}
	return 0
}

// IPv4ID and IPv4DF are IPv4's identification and "don't fragment"; 0 and false for IPv6.
func (v *View) IPv4ID() uint16 {
	if v.v6 {
		return 0
	}
	return be.Uint16(v.frame[v.l3+4:])
}

// IPv4DF says that an IPv4 packet must not be fragmented.
func (v *View) IPv4DF() bool { return !v.v6 && v.frame[v.l3+6]&0x40 != 0 }

// Fragment says that an IPv4 packet is a part of one; such a View is never more than KindIP.
func (v *View) Fragment() bool { return !v.v6 && be.Uint16(v.frame[v.l3+6:])&0x3fff != 0 }

// SrcAddr is the IP source.
func (v *View) SrcAddr() Addr {
	if v.v6 {
		return Addr(v.frame[v.l3+8:])
	}
	return Addr4([4]byte(v.frame[v.l3+12:]))
}

// DstAddr is the IP destination.
func (v *View) DstAddr() Addr {
	if v.v6 {
		return Addr(v.frame[v.l3+24:])
	}
	return Addr4([4]byte(v.frame[v.l3+16:]))
}

// IPv4OK says that the header checksum is right; IPv6 has none.
func (v *View) IPv4OK() bool { return v.v6 || Checksum(v.frame[v.l3:v.l4], 0) == 0 }

// SrcPort is UDP's source port: what ECMP spreads RoCEv2 by.
func (v *View) SrcPort() uint16 { return be.Uint16(v.frame[v.l4:]) }

// DstPort is UDP's destination port.
func (v *View) DstPort() uint16 { return be.Uint16(v.frame[v.l4+2:]) }

// UDPChecksum is UDP's checksum; 0: none.
func (v *View) UDPChecksum() uint16 { return be.Uint16(v.frame[v.l4+6:]) }

// UDPPayload is what the datagram carries.
func (v *View) UDPPayload() []byte { return v.frame[v.l4+UDPLen : v.end] }

// Info is what the specification says of the packet's opcode.
func (v *View) Info() *Info { return v.info }

// BTH is the Base Transport Header.
func (v *View) BTH() (h BTH) { h.get(v.frame[v.bth:]); return h }

// Opcode is the BTH's.
func (v *View) Opcode() Opcode { return Opcode(v.frame[v.bth]) }

// DestQP is the BTH's.
func (v *View) DestQP() uint32 { return get24(v.frame[v.bth+5:]) }

// PSN is the BTH's.
func (v *View) PSN() PSN { return PSN(get24(v.frame[v.bth+9:])) }

// AckReq says that the requester asks for an acknowledgement.
func (v *View) AckReq() bool { return v.frame[v.bth+8]&bitAckReq != 0 }

// Pad is the number of bytes that fill up the payload, 0 to 3.
func (v *View) Pad() int { return int(v.pad) }

// Payload is what follows the headers, without pad and ICRC.
func (v *View) Payload() []byte { return v.frame[v.payload:v.tail] }

// ICRC is the invariant CRC at the packet's end.
func (v *View) ICRC() uint32 {
	p := v.frame[v.end-ICRCLen:]
	return uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16 | uint32(p[3])<<24
}

// ICRCOK says that the invariant CRC is right.
func (v *View) ICRCOK() bool {
	return ICRC(v.frame[v.l3:v.end-ICRCLen], int(v.l4-v.l3)) == v.ICRC()
}

// SetICRC makes the invariant CRC right.
func (v *View) SetICRC() { putICRC(v.frame[v.l3:v.end], int(v.l4-v.l3)) }

// putICRC writes the ICRC of a packet that begins with its IP header, of n bytes, into its last four.
func putICRC(ip []byte, n int) {
	at := len(ip) - ICRCLen
	c := ICRC(ip[:at], n)
	p := ip[at:]
	p[0], p[1], p[2], p[3] = byte(c), byte(c>>8), byte(c>>16), byte(c>>24)
}
