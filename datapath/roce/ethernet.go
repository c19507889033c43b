package roce

import (
	"fmt"
	"net/netip"
	"time"
)

// MAC is an Ethernet address.
type MAC [6]byte

// The addresses that frames of more than one receiver have.
var (
	Broadcast  = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	MACControl = MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01} // pause frames; bridges don't forward it (802.3 annex 31B)
)

// String writes the address as 02:00:00:00:00:01.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// EtherType says what an Ethernet frame carries.
type EtherType uint16

// The types that this package knows.
const (
	EtherTypeIPv4       EtherType = 0x0800
	EtherTypeARP        EtherType = 0x0806
	EtherTypeVLAN       EtherType = 0x8100
	EtherTypeIPv6       EtherType = 0x86dd
	EtherTypeMACControl EtherType = 0x8808
)

// Lengths in bytes. A frame here has no frame check sequence: neither AF_PACKET nor a capture has it.
const (
	EthernetLen      = 14
	VLANLen          = 4
	MinFrameLen      = 60 // what shorter frames are filled up to
	FrameOverheadLen = 24 // what the line carries besides: preamble 8, frame check sequence 4, gap 12
)

// LineLen is how many byte times a frame of n bytes takes on a line, gap included.
func LineLen(n int) int { return max(n, MinFrameLen) + FrameOverheadLen }

// LineTime is how long a frame of n bytes takes at a rate, in bits a second.
func LineTime(n int, rate int64) time.Duration {
	return time.Duration(int64(LineLen(n)) * 8 * int64(time.Second) / rate)
}

// TCI is an 802.1Q tag: priority code point, drop eligible, VLAN identifier (0: a priority alone).
type TCI uint16

// NewTCI makes a tag from a priority, 0 to 7, and a VLAN identifier, 0 to 4094.
func NewTCI(pcp uint8, dei bool, vid uint16) TCI {
	return TCI(pcp&7)<<13 | TCI(bit(dei, 0x10))<<8 | TCI(vid&0xfff)
}

// PCP is the priority.
func (t TCI) PCP() uint8 { return uint8(t >> 13) }

// DEI says that the frame may be dropped first.
func (t TCI) DEI() bool { return t&0x1000 != 0 }

// VID is the VLAN identifier.
func (t TCI) VID() uint16 { return uint16(t & 0xfff) }

// Ethernet is a frame's header.
type Ethernet struct {
	Dst, Src MAC
	Tagged   bool // there is an 802.1Q tag
	TCI      TCI
	Type     EtherType
}

// Len is the header's length in bytes.
func (h *Ethernet) Len() int {
	if h.Tagged {
		return EthernetLen + VLANLen
	}
	return EthernetLen
}

// Append writes the header.
func (h *Ethernet) Append(b []byte) []byte {
	b, p := grow(b, h.Len())
	copy(p, h.Dst[:])
	copy(p[6:], h.Src[:])
	if h.Tagged {
		be.PutUint16(p[12:], uint16(EtherTypeVLAN))
		be.PutUint16(p[14:], uint16(h.TCI))
		p = p[VLANLen:]
	}
	be.PutUint16(p[12:], uint16(h.Type))
	return b
}

// Addr is an IP address as RoCEv2's GIDs are: IPv4 ones mapped into IPv6 (A17.4: ::ffff:10.0.0.1).
type Addr [16]byte

var mapped = [12]byte{10: 0xff, 11: 0xff}

// Addr4 maps an IPv4 address.
func Addr4(a [4]byte) (m Addr) {
	copy(m[:], mapped[:])
	copy(m[12:], a[:])
	return m
}

// AddrFrom converts; an invalid address gives the zero one.
func AddrFrom(a netip.Addr) Addr {
	if !a.IsValid() {
		return Addr{}
	}
	return a.As16()
}

// Is4 says that it is an IPv4 address.
func (a *Addr) Is4() bool { return [12]byte(a[:12]) == mapped }

// As4 is the IPv4 address that is mapped in it.
func (a *Addr) As4() [4]byte { return [4]byte(a[12:]) }

// Netip converts, IPv4 ones unmapped.
func (a Addr) Netip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// String writes the address as net/netip does, IPv4 ones unmapped.
func (a Addr) String() string { return a.Netip().String() }
