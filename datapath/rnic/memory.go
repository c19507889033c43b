package rnic

import (
	"fmt"
	"slices"
	"sort"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// Virtual addresses are given out from here on, a page apart, the same ones in every run.
const (
	firstAddr = 0x7000_0000_0000
	pageSize  = 4096
)

// memory is bytes at a virtual address of the host, or what stands for them.
type memory struct {
	dev     *Device
	addr    uint64
	size    int
	bytes   []byte
	phantom *extents // instead of bytes
	kind    verbs.MemoryKind
}

// AllocMemory implements verbs.Device. The bytes are ordinary ones; the address means something to
// the device alone.
func (d *Device) AllocMemory(size int, kind verbs.MemoryKind) (verbs.Memory, error) {
	m, err := d.alloc(size, kind)
	if err != nil {
		return nil, err
	}
	m.bytes = make([]byte, size)
	return m, nil
}

// AdoptMemory is AllocMemory with bytes that are there already, which others may share. They must stay until the
// memory is freed or the device closed.
func (d *Device) AdoptMemory(b []byte, kind verbs.MemoryKind) (verbs.Memory, error) {
	m, err := d.alloc(len(b), kind)
	if err != nil {
		return nil, err
	}
	m.bytes = b
	return m, nil
}

// alloc gives memory its addresses.
func (d *Device) alloc(size int, kind verbs.MemoryKind) (*memory, error) {
	op := fmt.Sprintf("allocate %d bytes of %v memory", size, kind)
	if d.closed {
		return nil, d.fail(op, ErrClosed)
	}
	if size <= 0 {
		return nil, d.fail(op, ErrInvalid)
	}
	m := &memory{dev: d, addr: d.space, size: size, kind: kind}
	d.space += (uint64(size)+pageSize-1)&^(pageSize-1) + pageSize
	d.mems = append(d.mems, m)
	return m, nil
}

func (m *memory) Addr() uint64           { return m.addr }
func (m *memory) Len() int               { return m.size }
func (m *memory) Bytes() []byte          { return m.bytes }
func (m *memory) Kind() verbs.MemoryKind { return m.kind }

// Free implements verbs.Memory. Regions on it find nothing there from now on.
func (m *memory) Free() error {
	m.release()
	if i := slices.Index(m.dev.mems, m); i >= 0 {
		m.dev.mems = slices.Delete(m.dev.mems, i, i+1)
	}
	return nil
}

// release makes the memory empty: regions on it find nothing there.
func (m *memory) release() { m.bytes, m.phantom, m.size = nil, nil, 0 }

// lookup is n bytes at a virtual address, as the host's processor finds them; false when there is nothing.
func (d *Device) lookup(addr, n uint64) ([]byte, bool) {
	i := sort.Search(len(d.mems), func(i int) bool { return d.mems[i].addr > addr }) - 1
	if i < 0 {
		return nil, false
	}
	m := d.mems[i]
	from := addr - m.addr
	if from > uint64(len(m.bytes)) || n > uint64(len(m.bytes))-from {
		return nil, false
	}
	return m.bytes[from : from+n], true
}
