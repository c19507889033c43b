package roce

import (
	"math/bits"
	"time"
)

// MAC control opcodes (802.3 annex 31A; 802.1Qbb).
const (
	opPause uint16 = 0x0001
	opPFC   uint16 = 0x0101
)

// QuantumBits is the unit of a pause: the time of 512 bits at the line's rate.
const QuantumBits = 512

// PFC is what an 802.1Qbb frame says: for each enabled priority, bit i for priority i, how many
// quanta it must be silent; 0 ends its pause. Others are left as they are.
type PFC struct {
	Enabled uint8
	Quanta  [8]uint16
}

// Set enables a priority, 0 to 7, with as many quanta.
func (f *PFC) Set(priority uint8, quanta uint16) {
	f.Enabled |= 1 << (priority & 7)
	f.Quanta[priority&7] = quanta
}

// AppendPause writes an 802.3x frame, which pauses the whole link for as many quanta.
func AppendPause(b []byte, src MAC, quanta uint16) []byte {
	b, p := control(b, src, opPause)
	be.PutUint16(p, quanta)
	return b
}

// AppendPFC writes an 802.1Qbb frame.
func AppendPFC(b []byte, src MAC, f *PFC) []byte {
	b, p := control(b, src, opPFC)
	p[1] = f.Enabled
	for i, q := range f.Quanta {
		be.PutUint16(p[2+2*i:], q)
	}
	return b
}

// control appends a MAC control frame of the minimum length and gives what follows its opcode.
func control(b []byte, src MAC, op uint16) (all, params []byte) {
	all, p := grow(b, MinFrameLen)
	clear(p)
	copy(p, MACControl[:])
	copy(p[6:], src[:])
	be.PutUint16(p[12:], uint16(EtherTypeMACControl))
	be.PutUint16(p[14:], op)
	return all, p[16:]
}

// QuantaTime is how long quanta last on a line of a rate in bits a second, above 0.
func QuantaTime(quanta uint16, rate int64) time.Duration {
	return time.Duration(int64(quanta) * QuantumBits * int64(time.Second) / rate)
}

// QuantaFor is how many quanta cover a time, rounded up, at most 65535.
func QuantaFor(d time.Duration, rate int64) uint16 {
	if d <= 0 {
		return 0
	}
	const unit = QuantumBits * uint64(time.Second)
	hi, lo := bits.Mul64(uint64(d), uint64(rate))
	if hi >= unit {
		return 0xffff
	}
	q, r := bits.Div64(hi, lo, unit)
	if r > 0 {
		q++
	}
	return uint16(min(q, 0xffff))
}
