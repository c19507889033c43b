//go:build linux

package linux

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// A batch is several rtnetlink requests that go to the kernel in one system call. Each has a
// label, so that an error names what was asked for. The kernel handles them in order.
//
// Building these by hand, not with a library's request objects, is what keeps the routes of a
// large fabric cheap: a request costs no allocation and no system call of its own.
type batch struct {
	buf    []byte
	start  int // of the message being built
	labels []func() string
}

// begin starts a message; label is called only if it fails.
func (b *batch) begin(kind uint16, flags uint16, label func() string) {
	b.start = len(b.buf)
	b.buf = append(b.buf, make([]byte, unix.SizeofNlMsghdr)...)
	native.PutUint16(b.buf[b.start+4:], kind)
	native.PutUint16(b.buf[b.start+6:], flags|unix.NLM_F_REQUEST)
	native.PutUint32(b.buf[b.start+8:], uint32(len(b.labels))+1) // sequence
	b.labels = append(b.labels, label)
}

func (b *batch) end() {
	native.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
	b.align()
}

func (b *batch) align() {
	for len(b.buf)%unix.NLMSG_ALIGNTO != 0 {
		b.buf = append(b.buf, 0)
	}
}

func (b *batch) u8(v uint8)   { b.buf = append(b.buf, v) }
func (b *batch) u16(v uint16) { b.buf = native.AppendUint16(b.buf, v) }
func (b *batch) u32(v uint32) { b.buf = native.AppendUint32(b.buf, v) }

// attr appends an attribute with the bytes v.
func (b *batch) attr(kind uint16, v []byte) {
	b.u16(uint16(unix.SizeofRtAttr + len(v)))
	b.u16(kind)
	b.buf = append(b.buf, v...)
	b.align()
}

func (b *batch) attrU32(kind uint16, v uint32) {
	b.attr(kind, native.AppendUint32(nil, v))
}

func (b *batch) attrString(kind uint16, s string) { b.attr(kind, append([]byte(s), 0)) }

func (b *batch) attrAddr(kind uint16, a netip.Addr) { b.attr(kind, a.AsSlice()) }

// nest opens a nested attribute and returns how to close it.
func (b *batch) nest(kind uint16) (closeIt func()) {
	at := len(b.buf)
	b.u16(0)
	b.u16(kind)
	return func() {
		native.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
		b.align()
	}
}

// link appends an ifinfomsg.
func (b *batch) link(index int, flags, change uint32) {
	b.u8(unix.AF_UNSPEC)
	b.u8(0)
	b.u16(0)
	b.u32(uint32(index))
	b.u32(flags)
	b.u32(change)
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
