package rnic

import (
	"errors"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// ErrPhantom is a call that a device without phantom memory can't do.
var ErrPhantom = errors.New("the device was not made for phantom memory")

// phantom is memory without bytes, as the API shows it.
type phantom struct{ *memory }

// Phantom implements verbs.PhantomDevice.
func (d *Device) Phantom() bool { return d.cfg.Phantom }

// AllocPhantom implements verbs.PhantomDevice.
func (d *Device) AllocPhantom(size int, kind verbs.MemoryKind) (verbs.PhantomMemory, error) {
	if !d.cfg.Phantom {
		return nil, d.fail("allocate phantom memory", ErrPhantom)
	}
	m, err := d.alloc(size, kind)
	if err != nil {
		return nil, err
	}
	m.phantom = newExtents(size)
	return &phantom{m}, nil
}

// Stamp implements verbs.PhantomMemory.
func (v *phantom) Stamp(at, n int, stream, off uint64) {
	v.memory.phantom.put(v.in(at, n), uint64(n), stream, off)
}

// Differs implements verbs.PhantomMemory.
func (v *phantom) Differs(at, n int, stream, off uint64) int {
	return v.memory.phantom.differs(v.in(at, n), uint64(n), stream, off)
}

// At implements verbs.PhantomMemory.
func (v *phantom) At(at int) (stream, off uint64, n int) {
	e := v.memory.phantom
	from := v.in(at, 1)
	i := e.find(from)
	if r := &e.runs[i]; r.stream != 0 {
		stream, off = r.stream, from+r.shift
	}
	return stream, off, int(e.end(i) - from)
}

// Add implements verbs.PhantomMemory.
func (v *phantom) Add(at, n int, other verbs.PhantomMemory, from int) {
	o := other.(*phantom)
	v.memory.phantom.add(v.in(at, n), uint64(n), o.memory.phantom, o.in(from, n))
}

// in panics where a range doesn't lie in the memory, as a slice would.
func (m *memory) in(at, n int) uint64 {
	if at < 0 || n < 0 || at > m.size || n > m.size-at {
		panic("rnic: phantom memory: range out of bounds")
	}
	return uint64(at)
}

// Where memory with bytes and memory without meet, something stands for what can't be had: bytes in phantom memory are a
// stream that their hash names; content without bytes leaves real memory as it is, but for zeros.

// named is what bytes are in phantom memory.
func named(b []byte) link.Extent {
	for _, c := range b {
		if c != 0 {
			return link.Extent{Stream: mix64(uint64(len(b)) ^ hashOf(b)), Len: len(b)}
		}
	}
	return link.Extent{Len: len(b)}
}

// hashOf is FNV-1a's, 64 bits.
func hashOf(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// length is how many bytes content stands for.
func length(content []link.Extent) (n uint32) {
	for i := range content {
		n += uint32(content[i].Len)
	}
	return n
}

// contents is the n bytes from an offset of a list on, behind some bytes, as content.
func contents(to []link.Extent, before []byte, list []sge, off, n uint32) []link.Extent {
	if len(before) > 0 {
		to = append(to, named(before))
	}
	for i := range list {
		s := &list[i]
		if off >= s.length {
			off -= s.length
			continue
		}
		m := min(s.length-off, n)
		switch from := s.off + uint64(off); {
		case s.mem.size == 0: // freed since
			to = append(to, link.Extent{Len: int(m)})
		case s.mem.phantom != nil:
			to = s.mem.phantom.get(to, from, uint64(m))
		default:
			to = append(to, named(s.piece(off, m)))
		}
		if n -= m; n == 0 {
			break
		}
		off = 0
	}
	return to
}

// place writes n bytes that a packet carries to phantom memory. One that carries none of both carries zeros.
func (m *memory) place(at, n uint64, b []byte, content []link.Extent) {
	switch {
	case len(content) > 0:
		for i := range content {
			x := &content[i]
			m.phantom.put(at, uint64(x.Len), x.Stream, x.Off)
			at += uint64(x.Len)
		}
	case len(b) > 0:
		x := named(b)
		m.phantom.put(at, n, x.Stream, 0)
	default:
		m.phantom.put(at, n, 0, 0)
	}
}

// scatter writes the first n bytes of what a packet carries to a memory, one of the two without bytes, and returns the rest.
func (m *memory) scatter(at uint64, n uint32, b []byte, content []link.Extent) ([]byte, []link.Extent) {
	if len(b) > 0 {
		m.place(at, uint64(n), b[:n], nil)
		return b[n:], nil
	}
	for left := int(n); left > 0; {
		x := content[0]
		k := min(x.Len, left)
		switch {
		case m.size == 0:
		case m.phantom != nil:
			m.phantom.put(at, uint64(k), x.Stream, x.Off)
		case x.Stream == 0:
			clear(m.bytes[at : at+uint64(k)])
		}
		at, left = at+uint64(k), left-k
		if k == x.Len {
			content = content[1:]
			continue
		}
		// The frame's own extents are its last user's to change: it was copied where it came twice.
		content[0].Len -= k
		content[0].Off += uint64(k)
	}
	return nil, content
}
