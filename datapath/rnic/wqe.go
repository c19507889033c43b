package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// wqe is a send work request in its queue. Its slices are kept from one use of the slot to the next.
type wqe struct {
	id     uint64
	ready  loop.Time // when the device has it
	op     verbs.Opcode
	flags  verbs.SendFlags
	status verbs.Status // what it fails with, once everything before it is done

	started bool // PSNs are assigned; local work is done
	first   roce.PSN
	packets int // PSNs that it takes; 0: none
	length  uint32

	rkey   uint32
	raddr  uint64
	imm    uint32 // or the key to invalidate
	cmpAdd uint64
	swap   uint64

	sgl    []sge
	inline []byte // with the flag Inline
	gram   datagram
	bind   bindMW
}

// datagram is where a UD send goes.
type datagram struct {
	ah   *ah
	qpn  uint32
	qkey uint32
}

// bindMW is what a binding says.
type bindMW struct {
	mw     *mw
	mr     *mr
	addr   uint64
	length uint64
	access verbs.Access
}

// responds says that the response to it carries data, so that no ACK stands for it.
func (w *wqe) responds() bool {
	return w.op == verbs.OpRDMARead || w.op == verbs.OpAtomicCmpAndSwp || w.op == verbs.OpAtomicFetchAndAdd
}

// local says that it makes no packet.
func (w *wqe) local() bool { return w.op == verbs.OpBindMW || w.op == verbs.OpLocalInv }

// end is the PSN after its last.
func (w *wqe) end() roce.PSN { return w.first.Add(w.packets) }

// recvWQE is a receive work request.
type recvWQE struct {
	id     uint64
	length uint32
	bad    bool // a key isn't good
	sgl    []sge
}

// sge is a piece of a scatter-gather list, and where its bytes are once resolve has found them.
type sge struct {
	addr   uint64
	length uint32
	key    uint32
	off    uint64
	mem    *memory
}

// setSGL copies a list and returns its length in bytes.
func setSGL(to []sge, from []verbs.SGE) ([]sge, uint64) {
	to = to[:0]
	var n uint64
	for _, s := range from {
		n += uint64(s.Length)
		to = append(to, sge{addr: s.Addr, length: s.Length, key: s.LKey})
	}
	return to, n
}

// resolve finds the memory of a list and says whether all of it may be used; pieces of no bytes need no key.
func (p *pd) resolve(list []sge, access verbs.Access) bool {
	for i := range list {
		s := &list[i]
		if s.length == 0 {
			continue
		}
		r := p.dev.keys.find(s.key)
		if r == nil || r.mw != nil || r.pd != p || r.access&access != access || !r.live() || !r.holds(s.addr, uint64(s.length)) {
			return false
		}
		s.mem, s.off = r.mem, r.off+s.addr-r.addr
	}
	return true
}

// piece is the bytes of s from an offset on, at most n; none when the memory was freed.
func (s *sge) piece(off, n uint32) []byte {
	n = min(n, s.length-off)
	from := s.off + uint64(off)
	if uint64(len(s.mem.bytes)) < from+uint64(n) {
		return nil
	}
	return s.mem.bytes[from : from+uint64(n)]
}

// gather gives a frame the n bytes from an offset of a list on: a reference when they lie in one piece
// and may be referred to, else a copy. It says where the first of them comes from: 0 for none.
func gather(f *link.Frame, list []sge, off, n uint32, refer bool) (addr uint64, kind verbs.MemoryKind) {
	f.Packet.Payload = nil
	if n == 0 {
		return 0, 0
	}
	var buf []byte
	for i := range list {
		s := &list[i]
		if off >= s.length {
			off -= s.length
			continue
		}
		if addr == 0 {
			addr, kind = s.mem.addr+s.off+uint64(off), s.mem.kind
		}
		if s.mem.phantom != nil {
			f.Content = contents(f.Content[:0], buf, list[i:], off, n)
			return addr, kind
		}
		b := s.piece(off, n)
		if buf == nil {
			if refer && uint32(len(b)) == n {
				f.Packet.Payload = b
				return addr, kind
			}
			buf = room(f, int(n))[:0]
		}
		buf = append(buf, b...)
		if n -= uint32(len(b)); n == 0 || b == nil {
			break
		}
		off = 0
	}
	f.Packet.Payload = buf[:f.Packet.PayloadLen]
	return addr, kind
}

// room is n bytes that the frame owns.
func room(f *link.Frame, n int) []byte {
	if cap(f.Buf) < n {
		f.Buf = make([]byte, max(n, 4096))
	}
	return f.Buf[:n]
}

// scatter writes what a packet carries, bytes or content, to a list, from an offset of it on. It says where the first of
// them goes to: 0 for none.
func scatter(list []sge, off uint32, b []byte, content []link.Extent) (addr uint64, kind verbs.MemoryKind) {
	left := uint32(len(b)) + length(content)
	for i := range list {
		if left == 0 {
			break
		}
		s := &list[i]
		if off >= s.length {
			off -= s.length
			continue
		}
		n := min(s.length-off, left)
		if addr == 0 {
			addr, kind = s.mem.addr+s.off+uint64(off), s.mem.kind
		}
		if s.mem.phantom != nil || len(content) > 0 {
			b, content = s.mem.scatter(s.off+uint64(off), n, b, content)
		} else {
			copy(s.piece(off, n), b[:n])
			b = b[n:]
		}
		left -= n
		off = 0
	}
	return addr, kind
}
