package roce

// Lengths in bytes, and IP's numbers of what it carries.
const (
	IPv4Len = 20 // without options
	IPv6Len = 40
	UDPLen  = 8

	ProtocolICMP   = 1
	ProtocolTCP    = 6
	ProtocolUDP    = 17
	ProtocolICMPv6 = 58
)

// ECN is the lower two bits of IPv4's TOS and IPv6's traffic class (RFC 3168).
type ECN uint8

// The code points.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// TrafficClass makes IPv4's TOS or IPv6's traffic class of a DSCP, 0 to 63, and ECN.
func TrafficClass(dscp uint8, ecn ECN) uint8 { return dscp<<2 | uint8(ecn&3) }

// IPv4 is the header without what is derived and without options. Fragments aren't written.
type IPv4 struct {
	TOS      uint8
	ID       uint16
	DF       bool // don't fragment
	TTL      uint8
	Protocol uint8
	Src, Dst [4]byte
}

// Append writes the header of a packet that carries n bytes after it, at most 65515.
func (h *IPv4) Append(b []byte, n int) []byte {
	b, p := grow(b, IPv4Len)
	p[0], p[1] = 0x45, h.TOS
	be.PutUint16(p[2:], uint16(IPv4Len+n))
	be.PutUint16(p[4:], h.ID)
	p[6], p[7] = bit(h.DF, 0x40), 0
	p[8], p[9] = h.TTL, h.Protocol
	p[10], p[11] = 0, 0
	copy(p[12:], h.Src[:])
	copy(p[16:], h.Dst[:])
	be.PutUint16(p[10:], Checksum(p, 0))
	return b
}

// IPv6 is the header without what is derived. The flow label has 20 bits.
type IPv6 struct {
	TrafficClass uint8
	FlowLabel    uint32
	NextHeader   uint8
	HopLimit     uint8
	Src, Dst     [16]byte
}

// Append writes the header of a packet that carries n bytes after it, at most 65535.
func (h *IPv6) Append(b []byte, n int) []byte {
	b, p := grow(b, IPv6Len)
	be.PutUint32(p, 6<<28|uint32(h.TrafficClass)<<20|h.FlowLabel&0xfffff)
	be.PutUint16(p[4:], uint16(n))
	p[6], p[7] = h.NextHeader, h.HopLimit
	copy(p[8:], h.Src[:])
	copy(p[24:], h.Dst[:])
	return b
}

// AppendUDP writes the header of a datagram of n bytes, without a checksum: 0 says so in IPv4, and
// for RoCEv2 in IPv6 too, as the ICRC protects more (A17.3).
func AppendUDP(b []byte, src, dst uint16, n int) []byte {
	b, p := grow(b, UDPLen)
	be.PutUint16(p, src)
	be.PutUint16(p[2:], dst)
	be.PutUint16(p[4:], uint16(UDPLen+n))
	p[6], p[7] = 0, 0
	return b
}

// Checksum is the Internet checksum of b (RFC 1071), where sum is what else it covers: 0, or the sum
// of a pseudo header as PseudoSum gives it.
func Checksum(b []byte, sum uint64) uint16 {
	for len(b) >= 8 {
		v := be.Uint64(b)
		sum += v>>32 + v&0xffffffff
		b = b[8:]
	}
	for len(b) >= 2 {
		sum += uint64(be.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return ^fold(sum)
}

// PseudoSum is the sum of the pseudo header of UDP, TCP or ICMPv6 over IPv6 (RFC 8200 8.1), or of
// UDP or TCP over IPv4, whose addresses are mapped here: what mapping adds is taken out.
func PseudoSum(src, dst Addr, protocol uint8, n int) uint64 {
	sum := uint64(protocol) + uint64(n)
	for _, a := range [2]*Addr{&src, &dst} {
		p := a[:]
		if a.Is4() {
			p = a[12:]
		}
		sum += uint64(^Checksum(p, 0))
	}
	return sum
}

func fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// patched is a checksum after a 16-bit word that it covers has changed (RFC 1624, equation 3).
func patched(checksum, from, to uint16) uint16 {
	return ^fold(uint64(^checksum) + uint64(^from) + uint64(to))
}
