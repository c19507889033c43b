package roce

// What a switch or a router changes in a frame. The ICRC covers none of it, so it stays right, and IPv4's
// checksum is updated from the change alone: one that was wrong stays wrong.

// SetMACs changes the frame's addresses.
func (v *View) SetMACs(dst, src MAC) {
	copy(v.frame, dst[:])
	copy(v.frame[6:], src[:])
}

// SetPCP changes the priority of a tagged frame, and says whether there is a tag.
func (v *View) SetPCP(pcp uint8) bool {
	if EtherType(be.Uint16(v.frame[12:])) != EtherTypeVLAN {
		return false
	}
	v.frame[14] = v.frame[14]&0x1f | pcp<<5
	return true
}

// DecrementTTL takes one from the TTL or hop limit and says whether the packet may go on: if not, it
// is unchanged, and the switch must drop it (RFC 1812 5.3.1, RFC 8200 3).
func (v *View) DecrementTTL() bool {
	if v.TTL() <= 1 {
		return false
	}
	if v.v6 {
		v.frame[v.l3+7]--
		return true
	}
	v.setWord4(8, be.Uint16(v.frame[v.l3+8:])-0x100)
	return true
}

// SetTTL changes the TTL or hop limit.
func (v *View) SetTTL(ttl uint8) {
	if v.v6 {
		v.frame[v.l3+7] = ttl
		return
	}
	v.setWord4(8, be.Uint16(v.frame[v.l3+8:])&0xff|uint16(ttl)<<8)
}

// SetTrafficClass changes IPv4's TOS or IPv6's traffic class.
func (v *View) SetTrafficClass(tc uint8) {
	first := be.Uint16(v.frame[v.l3:])
	if v.v6 {
		be.PutUint16(v.frame[v.l3:], first&0xf00f|uint16(tc)<<4)
		return
	}
	v.setWord4(0, first&0xff00|uint16(tc))
}

// SetECN changes the ECN bits alone.
func (v *View) SetECN(e ECN) { v.SetTrafficClass(v.TrafficClass()&^3 | uint8(e&3)) }

// SetDSCP changes the DSCP alone.
func (v *View) SetDSCP(dscp uint8) { v.SetTrafficClass(TrafficClass(dscp, v.ECN())) }

// MarkCE marks a packet of an ECN-capable transport "congestion experienced", and says whether it is
// marked now: others must not be (RFC 3168 5).
func (v *View) MarkCE() bool {
	if v.ECN() == NotECT {
		return false
	}
	v.SetECN(CE)
	return true
}

// setWord4 changes the 16-bit word at an offset of the IPv4 header.
func (v *View) setWord4(at uint16, to uint16) {
	p := v.frame[v.l3:]
	from := be.Uint16(p[at:])
	be.PutUint16(p[at:], to)
	be.PutUint16(p[10:], patched(be.Uint16(p[10:]), from, to))
}
