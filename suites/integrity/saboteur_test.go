package integrity_test

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// saboteur stands between the engine and real devices, and spoils one message on its way. It knows all memory that
// the devices gave out, so it finds what a remote address means.
type saboteur struct {
	spoil int  // which data-carrying send work request, from 1, on all devices together
	how   deed // what to do to it

	mu    sync.Mutex
	count int
	prey  struct {
		from, to qpRef
		id       uint64
		imm      uint32
		in       verbs.GID // the device that it ends up at
		addr     uint64    // where its data ends up
		length   int
		told     bool // the receiver gets a completion of it
	}
	chosen, done bool
	slots        map[slot]verbs.SGE // of the responder of a send workload
	memory       map[verbs.GID][]verbs.Memory
}

// qpRef is a queue pair. Every device counts QP numbers from the same one, and every lane of a
// collective its units from zero: without the device, a completion is easily another's.
type qpRef struct {
	gid verbs.GID
	num uint32
}

// slot is a receive.
type slot struct {
	qp qpRef
	id uint64
}

type deed int

const (
	flip  deed = iota // a byte of the data, once it has arrived
	after             // the byte behind the data, once it has arrived
	skip              // the data is never sent, but the work request succeeds
)

func (s *saboteur) device(d verbs.Device, gid verbs.GID) verbs.Device { return &device{d, gid, s} }

// post sees a send work request before it is posted, and may change it.
func (s *saboteur) post(from, to qpRef, wr *verbs.SendWR) {
	if len(wr.SGL) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count != s.spoil {
		return
	}
	s.chosen = true
	s.prey.from, s.prey.to = from, to
	s.prey.id, s.prey.imm, s.prey.length = wr.ID, wr.Imm, int(wr.SGL[0].Length)
	s.prey.told = wr.Op == verbs.OpRDMAWriteWithImm
	switch wr.Op {
	case verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicCmpAndSwp:
		s.prey.in, s.prey.addr = from.gid, wr.SGL[0].Addr
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		s.prey.in, s.prey.addr = to.gid, wr.RemoteAddr
	}
	if s.how == skip {
		s.done = true
		wr.SGL = nil
	}
}

// polled sees a completion before the engine does. The requester's says that a WRITE of RC
// is placed or a READ is here; the receiver's, that a message with immediate or a SEND is.
func (s *saboteur) polled(gid verbs.GID, wc *verbs.WC) {
	if wc.Status != verbs.Success {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.chosen || s.done {
		return
	}
	qp := qpRef{gid, wc.QPN}
	switch wc.Op {
	case verbs.WCRecvRDMAWithImm:
		if qp != s.prey.to || wc.Imm != s.prey.imm {
			return
		}
	case verbs.WCRecv: // SENDs carry no number: this one, or one before it that is still on its way
		g, ok := s.slots[slot{qp, wc.ID}]
		if qp != s.prey.to || !ok {
			return
		}
		s.prey.in, s.prey.addr, s.prey.length = gid, g.Addr, int(wc.ByteLen)
	case verbs.WCRDMAWrite, verbs.WCRDMARead, verbs.WCFetchAdd, verbs.WCCompSwap:
		// On UC the requester's completion says only that the data was sent: what is spoilt before
		// it arrives is made good by its arrival.
		if qp != s.prey.from || wc.ID != s.prey.id || s.prey.told {
			return
		}
	default:
		return
	}
	at := s.prey.length / 2
	if s.how == after {
		at = s.prey.length
	}
	s.at(s.prey.in, s.prey.addr+uint64(at))[0] ^= 0x40
	s.done = true
}

// at is a device's memory from an address on.
func (s *saboteur) at(gid verbs.GID, addr uint64) []byte {
	for _, m := range slices.Backward(s.memory[gid]) { // an address may have been another's before
		if off := addr - m.Addr(); off < uint64(m.Len()) {
			return m.Bytes()[off:]
		}
	}
	panic(fmt.Sprintf("device %v has given out no memory at %#x", gid, addr))
}

type device struct {
	verbs.Device
	gid verbs.GID
	s   *saboteur
}

func (d *device) AllocMemory(size int, kind verbs.MemoryKind) (verbs.Memory, error) {
	m, err := d.Device.AllocMemory(size, kind)
	if err == nil {
		d.s.mu.Lock()
		defer d.s.mu.Unlock()
		if d.s.memory == nil {
			d.s.memory = map[verbs.GID][]verbs.Memory{}
		}
		d.s.memory[d.gid] = append(d.s.memory[d.gid], m)
	}
	return m, err
}

func (d *device) AllocPD(done func(verbs.PD, error)) {
	d.Device.AllocPD(func(p verbs.PD, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&pd{p, d}, nil)
	})
}

func (d *device) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	d.Device.CreateCQ(depth, onEvent, func(c verbs.CQ, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&cq{c, d}, nil)
	})
}

type pd struct {
	verbs.PD
	d *device
}

func (p *pd) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	init.SendCQ, init.RecvCQ = init.SendCQ.(*cq).CQ, init.RecvCQ.(*cq).CQ
	p.PD.CreateQP(init, func(q verbs.QP, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&qp{QP: q, d: p.d}, nil)
	})
}

func (p *pd) CreateAH(attr verbs.AHAttr, done func(verbs.AH, error)) {
	p.PD.CreateAH(attr, func(a verbs.AH, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&ah{a, attr.DGID}, nil)
	})
}

type ah struct {
	verbs.AH
	gid verbs.GID
}

type cq struct {
	verbs.CQ
	d *device
}

func (c *cq) Poll(wcs []verbs.WC) int {
	n := c.CQ.Poll(wcs)
	for i := range wcs[:n] {
		c.d.s.polled(c.d.gid, &wcs[i])
	}
	return n
}

type qp struct {
	verbs.QP
	d    *device
	peer qpRef
}

func (q *qp) ref() qpRef { return qpRef{q.d.gid, q.Num()} }

func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask, done func(error)) {
	if mask&verbs.MaskDestQPN != 0 {
		q.peer = qpRef{attr.AH.DGID, attr.DestQPN}
	}
	q.QP.Modify(attr, mask, done)
}

func (q *qp) PostSend(wrs ...verbs.SendWR) error {
	for i := range wrs {
		to := q.peer
		if a, ok := wrs[i].AH.(*ah); ok {
			to = qpRef{a.gid, wrs[i].RemoteQPN}
			wrs[i].AH = a.AH
		}
		q.d.s.post(q.ref(), to, &wrs[i])
	}
	return q.QP.PostSend(wrs...)
}

func (q *qp) PostRecv(wrs ...verbs.RecvWR) error {
	s := q.d.s
	s.mu.Lock()
	for _, wr := range wrs {
		if len(wr.SGL) > 0 {
			if s.slots == nil {
				s.slots = map[slot]verbs.SGE{}
			}
			s.slots[slot{q.ref(), wr.ID}] = wr.SGL[0]
		}
	}
	s.mu.Unlock()
	return q.QP.PostRecv(wrs...)
}
