//go:build linux

package remote

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

var (
	errDead   = errors.New("the object was destroyed")
	errClosed = errors.New("the device is closed")
	errTheirs = errors.New("an object of another device")
)

// device is a verbs.Device that is elsewhere.
type device struct {
	c       *Client
	n       int
	about   About
	onAsync func(verbs.AsyncEvent)
	closed  bool
	mems    map[*memory]struct{}
}

func (d *device) Name() string                      { return d.about.Name }
func (d *device) Loop() loop.Loop                   { return d.c.loop }
func (d *device) Attr() verbs.DeviceAttr            { return d.about.Attr }
func (d *device) Port() verbs.PortAttr              { return d.about.Port }
func (d *device) GIDs() []verbs.GID                 { return d.about.GIDs }
func (d *device) OnAsync(fn func(verbs.AsyncEvent)) { d.onAsync = fn }
func (d *device) fail(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", d.about.Name, what, err)
}
func (d *device) later(done func(error), err error) { d.c.loop.Post(func() { done(err) }) }
func (d *device) event(e verbs.AsyncEvent) {
	if d.onAsync != nil && !d.closed {
		d.onAsync(e)
	}
}

// destroy asks for an object's end; the object is dead at once, and alive again when that fails.
func (d *device) destroy(what string, o op, id uint32, dead *bool, done func(error)) {
	if *dead || d.closed {
		d.later(done, d.fail(what, errDead))
		return
	}
	*dead = true
	d.c.call(&request{Op: o, ID: id, Device: d.n}, func(_ *answer, err error) {
		if err != nil {
			*dead = false
		} else {
			delete(d.c.objects, id)
		}
		done(err)
	})
}

// make asks for a new object.
func create[V any](d *device, what string, r *request, err error, built func(a *answer) V, done func(V, error)) {
	var none V
	if d.closed {
		err = errClosed
	}
	if err != nil {
		err = d.fail(what, err)
		d.c.loop.Post(func() { done(none, err) })
		return
	}
	r.Device, r.New = d.n, d.c.newID()
	d.c.call(r, func(a *answer, err error) {
		if err != nil {
			done(none, err)
			return
		}
		v := built(a)
		d.c.objects[r.New] = v
		done(v, nil)
	})
}

// memory is a file in memory that both processes have mapped.
type memory struct {
	d     *device
	id    uint32
	addr  uint64
	bytes []byte
	kind  verbs.MemoryKind
}

func (m *memory) Addr() uint64           { return m.addr }
func (m *memory) Len() int               { return len(m.bytes) }
func (m *memory) Bytes() []byte          { return m.bytes }
func (m *memory) Kind() verbs.MemoryKind { return m.kind }

// Free implements verbs.Memory.
func (m *memory) Free() error {
	if m.bytes == nil {
		return m.d.fail("free memory", errDead)
	}
	var err error
	if !m.d.closed {
		_, err = m.d.c.ask(&request{Op: opFreeMemory, ID: m.id, Device: m.d.n}, longPatience, func(*answer) {})
	}
	return errors.Join(err, m.unmap())
}

func (m *memory) unmap() error {
	err := unix.Munmap(m.bytes)
	m.bytes = nil
	delete(m.d.mems, m)
	return err
}

// gather copies what a list says, whatever its keys. It is short where there is no memory: the device says so.
func (d *device) gather(list []verbs.SGE) (out []byte) {
	for _, s := range list {
		for m := range d.mems {
			if off := s.Addr - m.addr; s.Addr >= m.addr && off+uint64(s.Length) <= uint64(len(m.bytes)) {
				out = append(out, m.bytes[off:off+uint64(s.Length)]...)
				break
			}
		}
	}
	return out
}

// AllocMemory implements verbs.Device.
func (d *device) AllocMemory(size int, kind verbs.MemoryKind) (_ verbs.Memory, err error) {
	defer func() {
		if err != nil {
			err = d.fail(fmt.Sprintf("allocate %d bytes of %v memory", size, kind), err)
		}
	}()
	if d.closed {
		return nil, errClosed
	}
	if size <= 0 {
		return nil, unix.EINVAL
	}
	fd, err := unix.MemfdCreate("rocebed", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, err
	}
	m := &memory{d: d, id: d.c.newID(), kind: kind}
	if m.bytes, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, err
	}
	if d.mems == nil {
		d.mems = map[*memory]struct{}{}
	}
	d.mems[m] = struct{}{}
	if _, _, err = d.c.files.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil); err != nil {
		return nil, errors.Join(err, m.unmap())
	}
	a, err := d.c.ask(&request{Op: opAllocMemory, Device: d.n, New: m.id, N: size, Kind: uint8(kind)}, longPatience, func(*answer) {})
	if err != nil {
		return nil, errors.Join(err, m.unmap())
	}
	m.addr = a.Addr
	return m, nil
}

// Close implements verbs.Device.
func (d *device) Close(done func(error)) {
	if d.closed {
		d.later(done, d.fail("close", errClosed))
		return
	}
	d.closed = true
	d.c.call(&request{Op: opCloseDevice, Device: d.n}, func(_ *answer, err error) {
		for m := range d.mems {
			err = errors.Join(err, m.unmap())
		}
		done(err)
	})
}

// AllocPD implements verbs.Device.
func (d *device) AllocPD(done func(verbs.PD, error)) {
	r := &request{Op: opAllocPD}
	create(d, "allocate PD", r, nil, func(*answer) verbs.PD { return &pd{d: d, id: r.New} }, done)
}

// CreateCQ implements verbs.Device.
func (d *device) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	r := &request{Op: opCreateCQ, N: depth}
	create(d, "create CQ", r, nil, func(*answer) verbs.CQ { return &cq{d: d, id: r.New, onEvent: onEvent} }, done)
}

type pd struct {
	d    *device
	id   uint32
	dead bool
}

func (p *pd) alive() error {
	if p.dead {
		return errDead
	}
	return nil
}

func (p *pd) RegMR(mem verbs.Memory, off, length int, access verbs.Access, done func(verbs.MR, error)) {
	err := p.alive()
	m, ok := mem.(*memory)
	if err == nil && (!ok || m.d != p.d || m.bytes == nil) {
		err = errTheirs
	}
	r := &request{Op: opRegMR, ID: p.id, N: off, M: length, Access: access}
	if ok {
		r.Memory = m.id
	}
	create(p.d, "register memory", r, err, func(a *answer) verbs.MR {
		return &mr{d: p.d, id: r.New, lkey: a.LKey, rkey: a.RKey, addr: a.Addr, length: length, mem: mem}
	}, done)
}

func (p *pd) AllocMW(kind verbs.MWType, done func(verbs.MW, error)) {
	r := &request{Op: opAllocMW, ID: p.id, Kind: uint8(kind)}
	create(p.d, "allocate window", r, p.alive(), func(a *answer) verbs.MW { return &mw{d: p.d, id: r.New, rkey: a.RKey} }, done)
}

func (p *pd) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	err := p.alive()
	r := &request{Op: opCreateQP, ID: p.id}
	for _, l := range []struct {
		from verbs.CQ
		to   *uint32
	}{{init.SendCQ, &r.QP.SendCQ}, {init.RecvCQ, &r.QP.RecvCQ}} {
		if l.from == nil {
			continue
		}
		q, ok := l.from.(*cq)
		if !ok || q.d != p.d || q.dead {
			err = errTheirs
			continue
		}
		*l.to = q.id
	}
	if init.SRQ != nil {
		if q, ok := init.SRQ.(*srq); ok && q.d == p.d && !q.dead {
			r.QP.SRQ = q.id
		} else {
			err = errTheirs
		}
	}
	r.QP.Init = init
	r.QP.Init.SendCQ, r.QP.Init.RecvCQ, r.QP.Init.SRQ = nil, nil, nil
	create(p.d, "create QP", r, err, func(a *answer) verbs.QP { return &qp{d: p.d, id: r.New, num: a.Num, kind: init.Type} }, done)
}

func (p *pd) CreateSRQ(init verbs.SRQInit, done func(verbs.SRQ, error)) {
	r := &request{Op: opCreateSRQ, ID: p.id, N: init.MaxWR, M: init.MaxSGE}
	create(p.d, "create SRQ", r, p.alive(), func(*answer) verbs.SRQ { return &srq{d: p.d, id: r.New} }, done)
}

func (p *pd) CreateAH(attr verbs.AHAttr, done func(verbs.AH, error)) {
	r := &request{Op: opCreateAH, ID: p.id, AH: attr}
	create(p.d, "create AH", r, p.alive(), func(*answer) verbs.AH { return &ah{d: p.d, id: r.New} }, done)
}

func (p *pd) Dealloc(done func(error)) {
	p.d.destroy("deallocate PD", opDeallocPD, p.id, &p.dead, done)
}

type mr struct {
	d          *device
	id         uint32
	lkey, rkey uint32
	addr       uint64
	length     int
	mem        verbs.Memory
	dead       bool
}

func (m *mr) LKey() uint32         { return m.lkey }
func (m *mr) RKey() uint32         { return m.rkey }
func (m *mr) Addr() uint64         { return m.addr }
func (m *mr) Len() int             { return m.length }
func (m *mr) Memory() verbs.Memory { return m.mem }
func (m *mr) Dereg(done func(error)) {
	m.d.destroy("deregister memory", opDeregMR, m.id, &m.dead, done)
}

type mw struct {
	d    *device
	id   uint32
	rkey uint32
	dead bool
}

func (m *mw) RKey() uint32 { return m.rkey }
func (m *mw) Dealloc(done func(error)) {
	m.d.destroy("deallocate window", opDeallocMW, m.id, &m.dead, done)
}

type ah struct {
	d    *device
	id   uint32
	dead bool
}

func (h *ah) Destroy(done func(error)) { h.d.destroy("destroy AH", opDestroyAH, h.id, &h.dead, done) }
