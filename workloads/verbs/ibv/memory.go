//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
	"golang.org/x/sys/unix"
)

// memory is an anonymous mapping.
type memory struct {
	dev   *device
	bytes []byte
	kind  verbs.MemoryKind
}

// AllocMemory implements verbs.Device.
func (d *device) AllocMemory(size int, kind verbs.MemoryKind) (verbs.Memory, error) {
	if d.closed {
		return nil, d.fail("allocate memory", errClosed)
	}
	if size <= 0 {
		return nil, d.fail(fmt.Sprintf("allocate %d bytes of %v memory", size, kind), unix.EINVAL)
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, d.fail(fmt.Sprintf("allocate %d bytes of %v memory", size, kind), err)
	}
	m := &memory{dev: d, bytes: b, kind: kind}
	d.work.do(func() { d.born(m) })
	return m, nil
}

func (m *memory) Addr() uint64           { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.bytes)))) }
func (m *memory) Len() int               { return len(m.bytes) }
func (m *memory) Bytes() []byte          { return m.bytes }
func (m *memory) Kind() verbs.MemoryKind { return m.kind }

// Free unmaps at once: nothing may use the memory any more. Regions on it keep their pages
// in the kernel until they are deregistered.
func (m *memory) Free() error {
	err := m.destroy()
	if err == nil && !m.dev.closed {
		m.dev.work.do(func() { delete(m.dev.leftover, m) })
	}
	return err
}

func (m *memory) destroy() error {
	if m.bytes == nil {
		return nil
	}
	if err := unix.Munmap(m.bytes); err != nil {
		return m.dev.fail("free memory", err)
	}
	m.bytes = nil
	return nil
}

type pd struct {
	life
	dev *device
	c   *C.struct_ibv_pd
}

// AllocPD implements verbs.Device.
func (d *device) AllocPD(done func(verbs.PD, error)) {
	call(d, func() (verbs.PD, error) {
		c, err := C.ibv_alloc_pd(d.ctx)
		if c == nil {
			return nil, d.fail("allocate PD", err)
		}
		p := &pd{dev: d, c: c}
		d.born(p)
		return p, nil
	}, done)
}

func (p *pd) Dealloc(done func(error)) { p.dev.kill(p, &p.life, done) }

func (p *pd) destroy() error {
	return p.dev.fail("deallocate PD", errnoOf(C.rb_errno(C.ibv_dealloc_pd(p.c))))
}

type mr struct {
	life
	pd     *pd
	c      *C.struct_ibv_mr
	mem    *memory
	addr   uint64
	length int
	lkey   uint32
	rkey   uint32
}

// RegMR implements verbs.PD.
func (p *pd) RegMR(mem verbs.Memory, off, length int, access verbs.Access, done func(verbs.MR, error)) {
	d := p.dev
	m, ours := mem.(*memory)
	op := fmt.Sprintf("register %d bytes at offset %d as %v", length, off, access)
	if !ours || off < 0 || length < 0 || off > m.Len() || length > m.Len()-off {
		err := fmt.Errorf("%w: not within memory of this provider", unix.EINVAL)
		d.lp.Post(func() { done(nil, d.fail(op, err)) })
		return
	}
	// The address is taken from the mapping, not from Go memory, so C may keep it.
	start := unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.bytes)), off)
	call(d, func() (verbs.MR, error) {
		c, err := C.rb_reg_mr(p.c, start, C.size_t(length), C.int(access))
		if c == nil {
			return nil, d.fail(op, err)
		}
		r := &mr{pd: p, c: c, mem: m, addr: uint64(uintptr(start)), length: length, lkey: uint32(c.lkey), rkey: uint32(c.rkey)}
		d.born(r)
		return r, nil
	}, done)
}

func (r *mr) LKey() uint32           { return r.lkey }
func (r *mr) RKey() uint32           { return r.rkey }
func (r *mr) Addr() uint64           { return r.addr }
func (r *mr) Len() int               { return r.length }
func (r *mr) Memory() verbs.Memory   { return r.mem }
func (r *mr) Dereg(done func(error)) { r.pd.dev.kill(r, &r.life, done) }

func (r *mr) destroy() error {
	return r.pd.dev.fail("deregister MR", errnoOf(C.rb_errno(C.ibv_dereg_mr(r.c))))
}

type mw struct {
	life
	pd   *pd
	c    *C.struct_ibv_mw
	kind verbs.MWType
}

// AllocMW implements verbs.PD.
func (p *pd) AllocMW(kind verbs.MWType, done func(verbs.MW, error)) {
	d := p.dev
	call(d, func() (verbs.MW, error) {
		c, err := C.rb_alloc_mw(p.c, C.int(kind))
		if c == nil {
			return nil, d.fail(fmt.Sprintf("allocate type %d memory window", kind), err)
		}
		w := &mw{pd: p, c: c, kind: kind}
		d.born(w)
		return w, nil
	}, done)
}

func (w *mw) RKey() uint32             { return uint32(w.c.rkey) }
func (w *mw) Dealloc(done func(error)) { w.pd.dev.kill(w, &w.life, done) }

func (w *mw) destroy() error {
	return w.pd.dev.fail("deallocate memory window", errnoOf(C.rb_dealloc_mw(w.c)))
}

// nextRKey changes the key's low byte, which belongs to the consumer (ibv_inc_rkey).
func nextRKey(rkey uint32) uint32 { return rkey&^0xff | uint32(uint8(rkey)+1) }
