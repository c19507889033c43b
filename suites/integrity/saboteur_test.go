//go:build linux

package integrity_test

import (
	"sync"
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// saboteur stands between the engine and real devices, and spoils one message on its way. All
// memory is this process's, so a remote address is an address here too.
type saboteur struct {
	spoil int  // which data-carrying send work request, from 1, on all devices together
	how   deed // what to do to it

	mu    sync.Mutex
	count int
	prey  struct {
		qpn    uint32
		id     uint64
		imm    uint32
		addr   uint64 // where its data ends up
		length int
	}
	chosen, done bool
	slots        map[uint64]verbs.SGE // receives by ID, of the responder of a send workload
}

type deed int

const (
	flip  deed = iota // a byte of the data, once it has arrived
	after             // the byte behind the data, once it has arrived
	skip              // the data is never sent, but the work request succeeds
)

func (s *saboteur) device(d verbs.Device) verbs.Device { return &device{d, s} }

// post sees a send work request before it is posted, and may change it.
func (s *saboteur) post(qpn uint32, wr *verbs.SendWR) {
	if len(wr.SGL) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count != s.spoil {
		return
	}
	s.chosen = true
	s.prey.qpn, s.prey.id, s.prey.imm, s.prey.length = qpn, wr.ID, wr.Imm, int(wr.SGL[0].Length)
	switch wr.Op {
	case verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicCmpAndSwp:
		s.prey.addr = wr.SGL[0].Addr
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		s.prey.addr = wr.RemoteAddr
	}
	if s.how == skip {
		s.done = true
		wr.SGL = nil
	}
}

// polled sees a completion before the engine does. The requester's says that a WRITE is placed
// or a READ is here; the receiver's, that a message with immediate or a SEND is.
func (s *saboteur) polled(wc *verbs.WC) {
	if wc.Status != verbs.Success {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.chosen || s.done {
		return
	}
	switch {
	case wc.Op == verbs.WCRecvRDMAWithImm && wc.Imm == s.prey.imm && s.prey.addr != 0:
	case wc.Op == verbs.WCRecv:
		g, ok := s.slots[wc.ID]
		if !ok {
			return
		}
		s.prey.addr, s.prey.length = g.Addr, int(wc.ByteLen)
	case wc.Op == verbs.WCRDMAWrite && s.prey.imm == 0, wc.Op == verbs.WCRDMARead, wc.Op == verbs.WCFetchAdd, wc.Op == verbs.WCCompSwap:
		if wc.QPN != s.prey.qpn || wc.ID != s.prey.id {
			return
		}
	default:
		return
	}
	at := s.prey.length / 2
	if s.how == after {
		at = s.prey.length
	}
	b := unsafe.Slice(pointer(s.prey.addr), at+1)
	b[at] ^= 0x40
	s.done = true
}

// pointer is the address of memory outside the Go heap.
func pointer(addr uint64) *byte { return *(**byte)(unsafe.Pointer(&addr)) }

type device struct {
	verbs.Device
	s *saboteur
}

func (d *device) AllocPD(done func(verbs.PD, error)) {
	d.Device.AllocPD(func(p verbs.PD, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&pd{p, d.s}, nil)
	})
}

func (d *device) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	d.Device.CreateCQ(depth, onEvent, func(c verbs.CQ, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&cq{c, d.s}, nil)
	})
}

type pd struct {
	verbs.PD
	s *saboteur
}

func (p *pd) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	init.SendCQ, init.RecvCQ = init.SendCQ.(*cq).CQ, init.RecvCQ.(*cq).CQ
	p.PD.CreateQP(init, func(q verbs.QP, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&qp{q, p.s}, nil)
	})
}

type cq struct {
	verbs.CQ
	s *saboteur
}

func (c *cq) Poll(wcs []verbs.WC) int {
	n := c.CQ.Poll(wcs)
	for i := range wcs[:n] {
		c.s.polled(&wcs[i])
	}
	return n
}

type qp struct {
	verbs.QP
	s *saboteur
}

func (q *qp) PostSend(wrs ...verbs.SendWR) error {
	for i := range wrs {
		q.s.post(q.Num(), &wrs[i])
	}
	return q.QP.PostSend(wrs...)
}

func (q *qp) PostRecv(wrs ...verbs.RecvWR) error {
	q.s.mu.Lock()
	for _, wr := range wrs {
		if len(wr.SGL) > 0 {
			if q.s.slots == nil {
				q.s.slots = map[uint64]verbs.SGE{}
			}
			q.s.slots[wr.ID] = wr.SGL[0]
		}
	}
	q.s.mu.Unlock()
	return q.QP.PostRecv(wrs...)
}
