package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// region is what a key stands for: a memory region, or a memory window that is bound.
type region struct {
	key    uint32 // 0: no longer good
	pd     *pd
	qp     *qp // a type 2 window: the one QP that it opens for
	addr   uint64
	len    uint64
	access verbs.Access
	mem    *memory
	off    uint64 // of addr in mem
	mw     *mw    // of a window
}

// holds says whether n bytes from an address on lie in the region.
func (r *region) holds(addr, n uint64) bool {
	return addr >= r.addr && n <= r.len && addr-r.addr <= r.len-n
}

// store writes the payload of the packet at hand to an address on, where the region has room for it.
func (r *region) store(addr uint64, p *roce.Packet) {
	from, n := r.off+addr-r.addr, uint64(p.PayloadLen)
	if r.mem.phantom == nil {
		copy(r.mem.bytes[from:from+n], p.Payload)
		return
	}
	r.mem.place(from, n, p.Payload, r.mem.dev.content)
}

// load gives a frame the n bytes from an address on, which the region holds: a copy, as others may write there before
// it arrives, and on another processor.
func (r *region) load(f *link.Frame, addr, n uint64) {
	if r.mem.phantom != nil {
		f.Content = r.mem.phantom.get(f.Content[:0], r.off+addr-r.addr, n)
		return
	}
	f.Packet.Payload = room(f, int(n))
	copy(f.Packet.Payload, r.bytes(addr, n))
}

// bytes are n bytes from an address on, which the region holds.
func (r *region) bytes(addr, n uint64) []byte {
	from := r.off + addr - r.addr
	return r.mem.bytes[from : from+n : from+n]
}

// place is where an address of the region is in its device's address space: zero-based ones begin at 0.
func (r *region) place(addr uint64) uint64 { return r.mem.addr + r.off + addr - r.addr }

// live says that the region is still good and its memory still there.
func (r *region) live() bool { return r.key != 0 && r.mem.size > 0 }

// keyTable finds regions by their keys. A key is an index, and eight bits that differ from one
// use of the index to the next, so that a key that is no longer good is not good for another.
type keyTable struct {
	seed  uint64
	table []*region // by index; index 0 is never used
	gens  []uint32
	free  []uint32
}

// add gives a region a key.
func (t *keyTable) add(r *region) bool {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		if len(t.table) == 0 {
			t.table, t.gens = append(t.table, nil), append(t.gens, 0)
		}
		if len(t.table) == maxKeys {
			return false
		}
		i = uint32(len(t.table))
		t.table, t.gens = append(t.table, nil), append(t.gens, 0)
	}
	r.key = i<<8 | t.tag(i)
	t.table[i] = r
	return true
}

// tag is the key's lower eight bits: never 0xff, whose successor would be another index's first.
func (t *keyTable) tag(i uint32) uint32 {
	z := (t.seed ^ uint64(i)) * 0x9e3779b97f4a7c15
	return uint32((z>>32 + uint64(t.gens[i])*151) % 255)
}

// remove makes a region's key bad.
func (t *keyTable) remove(r *region) {
	if r.key == 0 {
		return
	}
	i := r.key >> 8
	t.table[i] = nil
	t.gens[i]++
	t.free = append(t.free, i)
	r.key = 0
}

// find is the region of a key, nil when there is none.
func (t *keyTable) find(key uint32) *region {
	if i := key >> 8; int(i) < len(t.table) {
		if r := t.table[i]; r != nil && r.key == key {
			return r
		}
	}
	return nil
}

func (t *keyTable) clear() {
	for _, r := range t.table {
		if r != nil {
			r.key = 0
		}
	}
	t.table, t.gens, t.free = nil, nil, nil
}
