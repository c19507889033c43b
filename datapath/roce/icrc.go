package roce

import "hash/crc32"

// The invariant CRC (A17.3, 7.8.1) is Ethernet's CRC-32 over 64 one bits, which stand for the
// local route header that RoCE doesn't have, and over the packet from the IP header to the pad, where
// what may change on the way counts as ones: IPv4's TOS, TTL and checksum, IPv6's traffic class, flow
// label and hop limit, UDP's checksum, and the BTH's byte with FECN and BECN. It is sent with its
// least significant byte first.

// slices are the tables of "slicing by eight" for the headers. hash/crc32, faster over payloads, keeps
// what it is given on the heap, and the masked headers are a copy on the stack.
var slices = func() (t [8][256]uint32) {
	for i := range 256 {
		t[0][i] = crc32.IEEETable[i]
	}
	for i := range 256 {
		for k := 1; k < 8; k++ {
			t[k][i] = t[0][t[k-1][i]&0xff] ^ t[k-1][i]>>8
		}
	}
	return t
}()

// afterOnes is the state after the 64 one bits.
var afterOnes = sliced(^uint32(0), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})

// sliced is the CRC's state, not inverted, after p.
func sliced(state uint32, p []byte) uint32 {
	t := &slices
	for ; len(p) >= 8; p = p[8:] {
		state ^= uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16 | uint32(p[3])<<24
		state = t[0][p[7]] ^ t[1][p[6]] ^ t[2][p[5]] ^ t[3][p[4]] ^
			t[4][state>>24] ^ t[5][state>>16&0xff] ^ t[6][state>>8&0xff] ^ t[7][state&0xff]
	}
	for _, c := range p {
		state = t[0][byte(state)^c] ^ state>>8
	}
	return state
}

// ICRC is the invariant CRC of a packet that begins with its IP header, of which the first n bytes
// are that header, and ends before its ICRC. What follows the IP header must be UDP and a BTH.
// The value is what a little-endian reader finds at the packet's end.
func ICRC(ip []byte, n int) uint32 {
	var masked [60 + UDPLen + BTHLen]byte // an IPv4 header has up to 60 bytes
	head := n + UDPLen + BTHLen
	m := masked[:head]
	copy(m, ip)
	if m[0]>>4 == 4 {
		m[1], m[8], m[10], m[11] = 0xff, 0xff, 0xff, 0xff
	} else {
		m[0] |= 0x0f
		m[1], m[2], m[3], m[7] = 0xff, 0xff, 0xff, 0xff
	}
	m[n+6], m[n+7] = 0xff, 0xff
	m[n+UDPLen+4] = 0xff
	return crc32.Update(^sliced(afterOnes, m), crc32.IEEETable, ip[head:])
}

// icrcMore is the ICRC of what c is of and of what follows it.
func icrcMore(c uint32, more []byte) uint32 { return crc32.Update(c, crc32.IEEETable, more) }
