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

type qp struct {
	life
	pd             *pd
	c              *C.struct_ibv_qp
	num            uint32
	kind           verbs.QPType
	sendCQ, recvCQ *cq
	state          verbs.QPState // owned by the loop
	minRNR         uint8         // as last set, in fabric time: its image on the device may be rounded
}

// CreateQP implements verbs.PD.
func (p *pd) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	d := p.dev
	op := fmt.Sprintf("create %v QP", init.Type)
	send, ok1 := init.SendCQ.(*cq)
	recv, ok2 := init.RecvCQ.(*cq)
	shared, ok3 := init.SRQ.(*srq)
	if !ok1 || !ok2 || init.SRQ != nil && !ok3 {
		err := fmt.Errorf("%w: it needs a send and a receive CQ of this provider", unix.EINVAL)
		d.lp.Post(func() { done(nil, d.fail(op, err)) })
		return
	}
	call(d, func() (*qp, error) {
		a := C.struct_ibv_qp_init_attr{
			send_cq: send.c,
			recv_cq: recv.c,
			qp_type: qpType(init.Type),
		}
		a.cap.max_send_wr = C.uint32_t(init.MaxSendWR)
		a.cap.max_recv_wr = C.uint32_t(init.MaxRecvWR)
		a.cap.max_send_sge = C.uint32_t(init.MaxSendSGE)
		a.cap.max_recv_sge = C.uint32_t(init.MaxRecvSGE)
		a.cap.max_inline_data = C.uint32_t(init.MaxInlineData)
		if shared != nil {
			a.srq = shared.c
		}
		if init.SignalAll {
			a.sq_sig_all = 1
		}
		c, err := C.ibv_create_qp(p.c, &a)
		if c == nil {
			return nil, d.fail(op, err)
		}
		q := &qp{pd: p, c: c, num: uint32(c.qp_num), kind: init.Type, sendCQ: send, recvCQ: recv}
		d.enroll(unsafe.Pointer(c), q)
		d.born(q)
		return q, nil
	}, func(q *qp, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		d.qps[q.num] = q
		done(q, nil)
	})
}

func qpType(t verbs.QPType) uint32 {
	switch t {
	case verbs.UC:
		return C.IBV_QPT_UC
	case verbs.UD:
		return C.IBV_QPT_UD
	}
	return C.IBV_QPT_RC
}

func (q *qp) Num() uint32          { return q.num }
func (q *qp) Type() verbs.QPType   { return q.kind }
func (q *qp) State() verbs.QPState { return q.state }

// failed follows the state when a completion says that work failed. A failed send moves UC
// and UD QPs to SQE and everything else moves a QP to ERR (InfiniBand specification 10.3.1);
// where one CQ serves both queues of a UC or UD QP, ERR is assumed.
func (q *qp) failed(on *cq) {
	if q.kind != verbs.RC && q.sendCQ != q.recvCQ && on == q.sendCQ && q.state == verbs.RTS && !q.pd.dev.rxe {
		q.state = verbs.SQE
		return
	}
	q.state = verbs.Err
}

// Modify implements verbs.QP.
func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask, done func(error)) {
	d := q.pd.dev
	op := fmt.Sprintf("modify QP %#x (%v)", q.num, mask)
	if mask&verbs.MaskState != 0 {
		op = fmt.Sprintf("modify QP %#x from %v to %v", q.num, q.state, attr.State)
	}
	a, m, err := q.attrToC(attr, mask)
	if err == nil && q.dead {
		err = errDead
	}
	if err != nil {
		d.lp.Post(func() { done(d.fail(op, err)) })
		return
	}
	call(d, func() (struct{}, error) {
		return struct{}{}, d.fail(op, errnoOf(C.rb_errno(C.ibv_modify_qp(q.c, a, m))))
	}, func(_ struct{}, err error) {
		if err == nil {
			if mask&verbs.MaskState != 0 {
				q.state = attr.State
			}
			if mask&verbs.MaskMinRNRTimer != 0 {
				q.minRNR = attr.MinRNRTimer
			}
		}
		done(err)
	})
}

// Query implements verbs.QP.
func (q *qp) Query(done func(verbs.QPAttr, error)) {
	d := q.pd.dev
	if q.dead {
		d.lp.Post(func() { done(verbs.QPAttr{}, d.fail("query QP", errDead)) })
		return
	}
	call(d, func() (verbs.QPAttr, error) {
		var a C.struct_ibv_qp_attr
		var init C.struct_ibv_qp_init_attr
		if err := errnoOf(C.rb_errno(C.ibv_query_qp(q.c, &a, queryMask, &init))); err != nil {
			return verbs.QPAttr{}, d.fail(fmt.Sprintf("query QP %#x", q.num), err)
		}
		return q.attrFromC(&a), nil
	}, func(a verbs.QPAttr, err error) {
		if err == nil {
			q.state = a.State
			a.MinRNRTimer = q.minRNR
		}
		done(a, err)
	})
}

func (q *qp) Destroy(done func(error)) {
	d := q.pd.dev
	if !q.dead {
		delete(d.qps, q.num)
	}
	d.kill(q, &q.life, func(err error) {
		if !q.dead {
			d.qps[q.num] = q
		}
		if done != nil {
			done(err)
		}
	})
}

func (q *qp) destroy() error {
	d := q.pd.dev
	d.strike(unsafe.Pointer(q.c))
	if err := errnoOf(C.rb_errno(C.ibv_destroy_qp(q.c))); err != nil {
		d.enroll(unsafe.Pointer(q.c), q)
		return d.fail(fmt.Sprintf("destroy QP %#x", q.num), err)
	}
	return nil
}
