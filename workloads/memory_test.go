package workloads

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// memNet is verbs within this process, so that the engine's own logic can be tested, and
// provoked, without a fabric: what it does over real queue pairs is proved elsewhere. A
// message is copied out of the sender's memory when it is posted, executed on the
// responder's loop, and completed back on the requester's.
type memNet struct {
	mu   sync.Mutex
	devs map[netip.Addr]*memDevice
	// faults, called on the responder's loop before a message is executed; may change it.
	meddle func(m *memMsg)
}

type memMsg struct {
	wr       verbs.SendWR
	payload  []byte
	from, to *memQP
	drop     bool         // never arrives: RC gives up, UC and UD lose it
	twice    bool         // UC, UD: arrives twice
	skip     bool         // acknowledged, but not placed
	after    func([]byte) // what else happens to the memory it was placed in
	status   verbs.Status // fail with this
	finish   func(verbs.Status, []byte)
}

func (n *memNet) device(name string, addr netip.Addr, l loop.Loop) *memDevice {
	d := &memDevice{net: n, name: name, addr: addr, l: l, qps: map[uint32]*memQP{}, next: 0x11}
	n.mu.Lock()
	n.devs[addr] = d
	n.mu.Unlock()
	return d
}

type memDevice struct {
	net  *memNet
	name string
	addr netip.Addr
	l    loop.Loop
	qps  map[uint32]*memQP
	mrs  []*memMR
	next uint32
	live int // objects not destroyed
	// allocated is all memory that was ever asked for, in bytes.
	allocated uint64
	refuseQP  error
}

func (d *memDevice) Name() string    { return d.name }
func (d *memDevice) Loop() loop.Loop { return d.l }
func (d *memDevice) Attr() verbs.DeviceAttr {
	return verbs.DeviceAttr{MaxQPRDAtomic: 16, MaxQPInitRDAtomic: 16, Atomics: true}
}
func (d *memDevice) Port() verbs.PortAttr {
	return verbs.PortAttr{Active: true, ActiveMTU: 4096, MaxMTU: 4096, MaxMsg: 1 << 30}
}
func (d *memDevice) GIDs() []verbs.GID              { return []verbs.GID{d.addr} }
func (d *memDevice) OnAsync(func(verbs.AsyncEvent)) {}
func (d *memDevice) Close(done func(error))         { done(nil) }
func (d *memDevice) later(fn func())                { d.l.Arm(&loop.Timer{Fire: fn}, d.l.Now()) }

func (d *memDevice) AllocMemory(size int, kind verbs.MemoryKind) (verbs.Memory, error) {
	d.live++
	d.allocated += uint64(size)
	words := make([]uint64, (size+7)/8)
	return &memMemory{d, words, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size), kind}, nil
}

func (d *memDevice) AllocPD(done func(verbs.PD, error)) {
	d.live++
	d.later(func() { done(&memPD{d}, nil) })
}

func (d *memDevice) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	d.live++
	d.later(func() { done(&memCQ{d: d, depth: depth, onEvent: onEvent}, nil) })
}

func (d *memDevice) gone(done func(error)) {
	d.live--
	d.later(func() { done(nil) })
}

type memMemory struct {
	d     *memDevice
	words []uint64
	b     []byte
	kind  verbs.MemoryKind
}

func (m *memMemory) Addr() uint64           { return uint64(uintptr(unsafe.Pointer(&m.b[0]))) }
func (m *memMemory) Len() int               { return len(m.b) }
func (m *memMemory) Bytes() []byte          { return m.b }
func (m *memMemory) Kind() verbs.MemoryKind { return m.kind }
func (m *memMemory) Free() error            { m.d.live--; return nil }

type memPD struct{ d *memDevice }

func (p *memPD) Dealloc(done func(error)) { p.d.gone(done) }
func (p *memPD) RegMR(mem verbs.Memory, off, length int, access verbs.Access, done func(verbs.MR, error)) {
	mr := &memMR{p.d, mem.(*memMemory), access, uint32(len(p.d.mrs) + 1)}
	p.d.mrs = append(p.d.mrs, mr)
	p.d.live++
	p.d.later(func() { done(mr, nil) })
}
func (p *memPD) AllocMW(verbs.MWType, func(verbs.MW, error))     { panic("not used") }
func (p *memPD) CreateSRQ(verbs.SRQInit, func(verbs.SRQ, error)) { panic("not used") }
func (p *memPD) CreateAH(a verbs.AHAttr, done func(verbs.AH, error)) {
	p.d.live++
	p.d.later(func() { done(&memAH{p.d, a}, nil) })
}
func (p *memPD) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	if p.d.refuseQP != nil {
		p.d.later(func() { done(nil, p.d.refuseQP) })
		return
	}
	q := &memQP{d: p.d, num: p.d.next, init: init}
	p.d.next++
	p.d.live++
	p.d.qps[q.num] = q
	p.d.later(func() { done(q, nil) })
}

type memAH struct {
	d *memDevice
	a verbs.AHAttr
}

func (a *memAH) Destroy(done func(error)) { a.d.gone(done) }

type memMR struct {
	d      *memDevice
	mem    *memMemory
	access verbs.Access
	key    uint32
}

func (m *memMR) LKey() uint32           { return m.key }
func (m *memMR) RKey() uint32           { return m.key }
func (m *memMR) Addr() uint64           { return m.mem.Addr() }
func (m *memMR) Len() int               { return len(m.mem.b) }
func (m *memMR) Memory() verbs.Memory   { return m.mem }
func (m *memMR) Dereg(done func(error)) { m.d.gone(done) }

// at is n bytes of registered memory, or nil.
func (d *memDevice) at(key uint32, addr uint64, n int, need verbs.Access) []byte {
	if key == 0 || int(key) > len(d.mrs) {
		return nil
	}
	mr := d.mrs[key-1]
	off := addr - mr.Addr()
	if mr.access&need != need || off+uint64(n) > uint64(len(mr.mem.b)) {
		return nil
	}
	return mr.mem.b[off : off+uint64(n)]
}

type memCQ struct {
	d       *memDevice
	depth   int
	onEvent func(verbs.CQ)
	wcs     []verbs.WC
	armed   bool
}

func (c *memCQ) Poll(wcs []verbs.WC) int {
	n := copy(wcs, c.wcs)
	c.wcs = c.wcs[n:]
	return n
}
func (c *memCQ) ReqNotify(bool) error     { c.armed = true; return nil }
func (c *memCQ) Destroy(done func(error)) { c.d.gone(done) }
func (c *memCQ) push(wc verbs.WC) {
	if len(c.wcs) >= c.depth {
		panic("completion queue overrun")
	}
	c.wcs = append(c.wcs, wc)
	if c.armed {
		c.armed = false
		c.d.later(func() { c.onEvent(c) })
	}
}

type memQP struct {
	d       *memDevice
	num     uint32
	init    verbs.QPInit
	attr    verbs.QPAttr
	state   verbs.QPState
	sq      []*memSend
	rq      []verbs.RecvWR
	waiting []*memMsg // at the responder, for a receive
	deaf    bool      // RC: a message was lost, and nothing behind it gets through
}

type memSend struct {
	wr   verbs.SendWR
	done bool
	wc   verbs.WC
}

func (q *memQP) Num() uint32                          { return q.num }
func (q *memQP) Type() verbs.QPType                   { return q.init.Type }
func (q *memQP) State() verbs.QPState                 { return q.state }
func (q *memQP) Query(done func(verbs.QPAttr, error)) { done(q.attr, nil) }
func (q *memQP) Destroy(done func(error)) {
	delete(q.d.qps, q.num)
	q.d.gone(done)
}

func (q *memQP) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask, done func(error)) {
	q.d.later(func() {
		if mask&verbs.MaskAH != 0 {
			q.attr.AH = attr.AH
		}
		if mask&verbs.MaskDestQPN != 0 {
			q.attr.DestQPN = attr.DestQPN
		}
		if mask&verbs.MaskRNRRetry != 0 {
			q.attr.RNRRetry = attr.RNRRetry
		}
		if q.state = attr.State; q.state == verbs.Err {
			q.flush()
		}
		done(nil)
	})
}

func (q *memQP) flush() {
	for _, s := range q.sq {
		if !s.done {
			s.done, s.wc = true, verbs.WC{ID: s.wr.ID, Status: verbs.WRFlushErr, QPN: q.num}
		}
	}
	q.reap()
	for _, r := range q.rq {
		q.init.RecvCQ.(*memCQ).push(verbs.WC{ID: r.ID, Status: verbs.WRFlushErr, QPN: q.num})
	}
	q.rq = nil
}

// reap completes sends in order.
func (q *memQP) reap() {
	for len(q.sq) > 0 && q.sq[0].done {
		s := q.sq[0]
		q.sq = q.sq[1:]
		if s.wc.Status == verbs.Success && s.wr.Flags&verbs.Signaled == 0 {
			continue
		}
		q.init.SendCQ.(*memCQ).push(s.wc)
		if s.wc.Status != verbs.Success && q.state != verbs.Err {
			q.state = verbs.Err
			q.flush()
			return
		}
	}
}

func (q *memQP) PostRecv(wrs ...verbs.RecvWR) error {
	if len(q.rq)+len(wrs) > q.init.MaxRecvWR {
		return &verbs.PostError{Err: errors.New("receive queue full")}
	}
	for _, wr := range wrs {
		wr.SGL = append([]verbs.SGE(nil), wr.SGL...)
		q.rq = append(q.rq, wr)
	}
	waiting := q.waiting
	q.waiting = nil
	for _, m := range waiting {
		q.execute(m)
	}
	return nil
}

func (q *memQP) PostSend(wrs ...verbs.SendWR) error {
	for i, wr := range wrs {
		if len(q.sq) >= q.init.MaxSendWR {
			return &verbs.PostError{Posted: i, Err: errors.New("send queue full")}
		}
		s := &memSend{wr: wr}
		q.sq = append(q.sq, s)
		if q.state == verbs.Err {
			q.flush()
			continue
		}
		m := &memMsg{wr: wr, from: q}
		for _, g := range wr.SGL {
			b := q.d.at(g.LKey, g.Addr, int(g.Length), 0)
			if b == nil {
				return fmt.Errorf("bad local key %d", g.LKey)
			}
			m.payload = append(m.payload, b...)
		}
		q.transmit(m, s)
	}
	return nil
}
