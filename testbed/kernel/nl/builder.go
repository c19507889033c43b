//go:build linux

package nl

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Batch is several requests that go to the kernel together and in order. Each has a label, so
// that an error says what was asked for. The zero Batch is ready for use.
type Batch struct {
	buf    []byte
	start  int // of the message being built
	labels []string
}

// Len is how many requests the batch holds.
func (b *Batch) Len() int { return len(b.labels) }

// Bytes are the messages as they go to the kernel; for tests.
func (b *Batch) Bytes() []byte { return b.buf }

// Labels say what each request asks for, in order.
func (b *Batch) Labels() []string { return b.labels }

// Begin starts a request; NLM_F_REQUEST is added to flags. End closes it.
func (b *Batch) Begin(kind, flags uint16, label string) {
	b.labels = append(b.labels, label)
	b.start = len(b.buf)
	b.buf = append(b.buf, make([]byte, unix.SizeofNlMsghdr)...)
	h := b.buf[b.start:]
	binary.NativeEndian.PutUint16(h[4:], kind)
	binary.NativeEndian.PutUint16(h[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(h[8:], uint32(len(b.labels))) // sequence, from 1
}

// End closes the request.
func (b *Batch) End() {
	b.align()
	binary.NativeEndian.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
}

func (b *Batch) align() {
	for len(b.buf)%unix.NLMSG_ALIGNTO != 0 {
		b.buf = append(b.buf, 0)
	}
}

// U8, U16, U32 and U64 append integers of the machine's byte order.
func (b *Batch) U8(v uint8)   { b.buf = append(b.buf, v) }
func (b *Batch) U16(v uint16) { b.buf = binary.NativeEndian.AppendUint16(b.buf, v) }
func (b *Batch) U32(v uint32) { b.buf = binary.NativeEndian.AppendUint32(b.buf, v) }
func (b *Batch) U64(v uint64) { b.buf = binary.NativeEndian.AppendUint64(b.buf, v) }

// Zero appends n zero bytes.
func (b *Batch) Zero(n int) { b.buf = append(b.buf, make([]byte, n)...) }

// Attr appends an attribute with the bytes v.
func (b *Batch) Attr(kind uint16, v []byte) { b.Nest(kind, func() { b.buf = append(b.buf, v...) }) }

// AttrString appends a string with its terminating zero.
func (b *Batch) AttrString(kind uint16, s string) {
	b.Nest(kind, func() { b.buf = append(append(b.buf, s...), 0) })
}

// AttrU8, AttrU32 and AttrU64 append an attribute that is one integer.
func (b *Batch) AttrU8(kind uint16, v uint8)   { b.Nest(kind, func() { b.U8(v) }) }
func (b *Batch) AttrU32(kind uint16, v uint32) { b.Nest(kind, func() { b.U32(v) }) }
func (b *Batch) AttrU64(kind uint16, v uint64) { b.Nest(kind, func() { b.U64(v) }) }

// Nest appends an attribute whose content inside appends.
func (b *Batch) Nest(kind uint16, inside func()) {
	at := len(b.buf)
	b.U16(0)
	b.U16(kind)
	inside()
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
	b.align()
}

// Attrs splits attributes into a map by type, without the flag bits. Where a type comes twice
// the last wins; [EachAttr] sees all.
func Attrs(b []byte) map[uint16][]byte {
	m := map[uint16][]byte{}
	EachAttr(b, func(kind uint16, v []byte) { m[kind] = v })
	return m
}

// EachAttr calls fn for every attribute in order. It stops at what is no attribute.
func EachAttr(b []byte, fn func(kind uint16, v []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return
		}
		fn(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofRtAttr:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// U32At, U64At and StringAt read an attribute's value; what is too short reads as zero.
func U32At(v []byte) uint32 {
	if len(v) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(v)
}

// U64At reads a u64.
func U64At(v []byte) uint64 {
	if len(v) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(v)
}

// StringAt reads a string up to its terminating zero.
func StringAt(v []byte) string {
	for i, c := range v {
		if c == 0 {
			return string(v[:i])
		}
	}
	return string(v)
}
