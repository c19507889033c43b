package workloads

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// span is a piece of an end's memory: bytes, or where the fabric has none what stands for them. What is written to it
// and checked of it is the same in both.
type span struct {
	b  []byte
	ph verbs.PhantomMemory // instead of b
	at int                 // of ph
	n  int
}

func spanOf(m verbs.Memory) span {
	if ph, ok := m.(verbs.PhantomMemory); ok {
		return span{ph: ph, n: m.Len()}
	}
	return span{b: m.Bytes(), n: m.Len()}
}

// cut is the part from one index to another.
func (s span) cut(from, to int) span {
	if s.ph != nil {
		return span{ph: s.ph, at: s.at + from, n: to - from}
	}
	return span{b: s.b[from:to:to], n: to - from}
}

// some says that there is any.
func (s span) some() bool { return s.n > 0 }

// step is how much of so many bytes to make or check at once, and what that takes of a budget: content takes as long
// however much it is.
func (s span) step(want, left int) (n, cost int) {
	if s.ph != nil {
		return want, contentCost
	}
	n = min(want, left)
	return n, n
}

// contentCost is what a piece of content takes of a budget, bytes.
const contentCost = 128

// guardStream names what guard bytes are in phantom memory.
const guardStream = 0xa5a5_5a5a_a5a5_5a5a

// fill makes it the stream's bytes from off on.
func (s span) fill(st Stream, off uint64) {
	if s.ph != nil {
		s.ph.Stamp(s.at, s.n, st.key, off)
		return
	}
	st.Fill(s.b, off)
}

// poison makes it bytes that differ, each of them, from the stream's from off on.
func (s span) poison(st Stream, off uint64) {
	if s.ph != nil {
		s.ph.Stamp(s.at, s.n, ^st.key, off)
		return
	}
	st.Poison(s.b, off)
}

// check is the index of the first byte that isn't the stream's from off on, or -1.
func (s span) check(st Stream, off uint64) int {
	if s.ph != nil {
		return s.ph.Differs(s.at, s.n, st.key, off)
	}
	return st.Check(s.b, off)
}

// differ is what byte i should be of the stream from off on, and what it is: of phantom memory, the offset in the
// stream, and the offset that is there or the name of another stream.
func (s span) differ(st Stream, i int, off uint64) (want, got uint64) {
	if s.ph == nil {
		return uint64(st.Byte(off + uint64(i))), uint64(s.b[i])
	}
	stream, at, _ := s.ph.At(s.at + i)
	if stream != st.key {
		at = stream
	}
	return off + uint64(i), at
}

// right is how many bytes are the stream's from off on.
func (s span) right(st Stream, off uint64) (n uint64) {
	if s.ph == nil {
		for i, b := range s.b {
			if b == st.Byte(off+uint64(i)) {
				n++
			}
		}
		return n
	}
	for i := 0; i < s.n; {
		stream, at, k := s.ph.At(s.at + i)
		k = min(k, s.n-i)
		if stream == st.key && at == off+uint64(i) {
			n += uint64(k)
		}
		i += k
	}
	return n
}

// guard makes it guard bytes; intact is the index of the first that has changed, or -1.
func (s span) guard() {
	if s.ph != nil {
		s.ph.Stamp(s.at, s.n, guardStream, 0)
		return
	}
	fillGuard(s.b)
}

func (s span) intact() int {
	if s.ph != nil {
		return s.ph.Differs(s.at, s.n, guardStream, 0)
	}
	return checkGuard(s.b)
}

// broken is what guard byte i should be and what it is.
func (s span) broken(i int) (want, got uint64) {
	if s.ph != nil {
		return s.differ(Stream{guardStream}, i, 0)
	}
	return uint64(guardByte(i)), uint64(s.b[i])
}

// copyFrom makes it what another is, of the same length.
func (s span) copyFrom(o span) {
	if s.ph != nil {
		s.ph.Stamp(s.at, s.n, 0, 0)
		s.ph.Add(s.at, s.n, o.ph, o.at)
		return
	}
	copy(s.b, o.b)
}

// word is its first eight bytes; phantom memory has none.
func (s span) word() uint64     { return binary.LittleEndian.Uint64(s.b) }
func (s span) putWord(v uint64) { binary.LittleEndian.PutUint64(s.b, v) }

// alloc gives an end memory, without bytes where the whole fabric can do with that.
func (n *nic) alloc(size int, kind verbs.MemoryKind, bytes bool) (verbs.Memory, error) {
	if n.phantom && !bytes {
		return n.Device.(verbs.PhantomDevice).AllocPhantom(size, kind)
	}
	return n.Device.AllocMemory(size, kind)
}

// phantoms says that every NIC can give phantom memory: content has no bytes that another could take.
func phantoms(nics []NIC) bool {
	for _, n := range nics {
		if d, ok := n.Device.(verbs.PhantomDevice); !ok || !d.Phantom() {
			return false
		}
	}
	return true
}
