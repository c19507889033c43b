package roce

import "encoding/binary"

var be = binary.BigEndian

// get24 reads 24 bits: a PSN, a QP number.
func get24(b []byte) uint32 { _ = b[2]; return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// grow adds n bytes to b and gives the whole and those n, whose content is left as it is. It
// allocates as append does, when b has no room.
func grow(b []byte, n int) (all, added []byte) {
	at := len(b)
	if at+n <= cap(b) {
		all = b[:at+n]
	} else {
		all = append(b, make([]byte, n)...)
	}
	return all, all[at:]
}
