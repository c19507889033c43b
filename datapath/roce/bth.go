package roce

// Port is RoCEv2's UDP destination port (A17.3).
const Port = 4791

// DefaultPKey is the default partition's, full membership.
const DefaultPKey = 0xffff

// BTHLen is the length of the Base Transport Header, ICRCLen of the CRC at a packet's end, in bytes.
const (
	BTHLen  = 12
	ICRCLen = 4
)

// BTH is the Base Transport Header (9.2), without what is derived: the pad count, and the version,
// which is 0. FECN and BECN are the bits of A17.9; DestQP has 24 bits.
type BTH struct {
	Opcode Opcode
	SE     bool // solicited event
	MigReq bool
	FECN   bool
	BECN   bool
	AckReq bool
	PKey   uint16
	DestQP uint32
	PSN    PSN
}

const (
	bitSE     = 0x80
	bitMigReq = 0x40
	bitFECN   = 0x80
	bitBECN   = 0x40
	bitAckReq = 0x80
)

func bit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// Append writes the header; pad is the number of bytes, 0 to 3, that fill the payload up to a
// multiple of four.
func (h *BTH) Append(b []byte, pad int) []byte {
	b, p := grow(b, BTHLen)
	h.put(p, pad)
	return b
}

func (h *BTH) put(p []byte, pad int) {
	_ = p[11]
	p[0] = byte(h.Opcode)
	p[1] = bit(h.SE, bitSE) | bit(h.MigReq, bitMigReq) | byte(pad&3)<<4
	be.PutUint16(p[2:], h.PKey)
	be.PutUint32(p[4:], h.DestQP&0xffffff)
	p[4] = bit(h.FECN, bitFECN) | bit(h.BECN, bitBECN)
	be.PutUint32(p[8:], uint32(h.PSN&PSNMask))
	p[8] = bit(h.AckReq, bitAckReq)
}

func (h *BTH) get(p []byte) {
	_ = p[11]
	*h = BTH{
		Opcode: Opcode(p[0]), SE: p[1]&bitSE != 0, MigReq: p[1]&bitMigReq != 0,
		PKey: be.Uint16(p[2:]), FECN: p[4]&bitFECN != 0, BECN: p[4]&bitBECN != 0, DestQP: get24(p[5:]),
		AckReq: p[8]&bitAckReq != 0, PSN: PSN(get24(p[9:])),
	}
}

// padOf is the number of bytes that fill n up to a multiple of four.
func padOf(n int) int { return -n & 3 }
