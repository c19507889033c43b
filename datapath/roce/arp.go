package roce

// ARPLen is the length of an ARP message for IPv4 over Ethernet, in bytes.
const ARPLen = 28

// ARPOperation says what an ARP message is.
type ARPOperation uint16

// The operations (RFC 826).
const (
	ARPRequest ARPOperation = 1
	ARPReply   ARPOperation = 2
)

// ARP is a message for IPv4 over Ethernet (RFC 826).
type ARP struct {
	Operation ARPOperation
	SenderMAC MAC
	Sender    [4]byte
	TargetMAC MAC // of a request: zero
	Target    [4]byte
}

// arpFixed is what such a message begins with: Ethernet, IPv4, and the lengths of their addresses.
const arpFixed = uint64(1)<<48 | uint64(EtherTypeIPv4)<<32 | 6<<24 | 4<<16

// Append writes the message; a frame of it alone is filled up by PadFrame.
func (h *ARP) Append(b []byte) []byte {
	b, p := grow(b, ARPLen)
	be.PutUint64(p, arpFixed|uint64(h.Operation))
	copy(p[8:], h.SenderMAC[:])
	copy(p[14:], h.Sender[:])
	copy(p[18:], h.TargetMAC[:])
	copy(p[24:], h.Target[:])
	return b
}

func (h *ARP) get(p []byte) {
	_ = p[ARPLen-1]
	*h = ARP{Operation: ARPOperation(be.Uint16(p[6:])), SenderMAC: MAC(p[8:]), Sender: [4]byte(p[14:]), TargetMAC: MAC(p[18:]), Target: [4]byte(p[24:])}
}

// PadFrame fills the frame that begins at start up to Ethernet's minimum with zeros.
func PadFrame(b []byte, start int) []byte {
	if n := MinFrameLen - (len(b) - start); n > 0 {
		var p []byte
		b, p = grow(b, n)
		clear(p)
	}
	return b
}
