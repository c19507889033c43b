//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
#include <arpa/inet.h>

#cgo noescape rb_poll
#cgo nocallback rb_poll
#cgo noescape rb_req_notify
#cgo nocallback rb_req_notify
*/
import "C"

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// pollBatch is how many completions are taken in one crossing into C.
const pollBatch = 64

type cq struct {
	life
	dev     *device
	c       *C.struct_ibv_cq
	onEvent func(verbs.CQ)
	arrived bool // guarded by dev.mu: an event is waiting to be delivered
}

// CreateCQ implements verbs.Device.
func (d *device) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	call(d, func() (verbs.CQ, error) {
		c, err := C.ibv_create_cq(d.ctx, C.int(depth), nil, d.channel, 0)
		if c == nil {
			return nil, d.fail(fmt.Sprintf("create CQ of %d entries", depth), err)
		}
		q := &cq{dev: d, c: c, onEvent: onEvent}
		d.enroll(unsafe.Pointer(c), q)
		d.born(q)
		return q, nil
	}, done)
}

// Poll implements verbs.CQ.
func (q *cq) Poll(wcs []verbs.WC) int {
	taken := 0
	for taken < len(wcs) && !q.dead && !q.dev.closed {
		want := min(len(wcs)-taken, pollBatch)
		n := int(C.rb_poll(q.c, C.int(want), &q.dev.wcs[0]))
		for i := range max(n, 0) {
			q.convert(&q.dev.wcs[i], &wcs[taken+i])
		}
		taken += max(n, 0)
		if n < want {
			break
		}
	}
	return taken
}

func (q *cq) convert(from *C.struct_ibv_wc, to *verbs.WC) {
	*to = verbs.WC{
		ID:        uint64(from.wr_id),
		Status:    verbs.Status(from.status),
		VendorErr: uint32(from.vendor_err),
		QPN:       uint32(from.qp_num),
	}
	if from.status != C.IBV_WC_SUCCESS {
		if p := q.dev.qps[to.QPN]; p != nil {
			p.failed(q)
		}
		return
	}
	to.Op = wcOpcode(from.opcode)
	to.ByteLen = uint32(from.byte_len)
	to.SrcQPN = uint32(from.src_qp)
	word := *(*uint32)(unsafe.Pointer(&from.anon0[0]))
	switch {
	case from.wc_flags&C.IBV_WC_WITH_IMM != 0:
		to.Flags |= verbs.WithImm
		to.Imm = bits.ReverseBytes32(word)
		if bigEndian {
			to.Imm = word
		}
	case from.wc_flags&C.IBV_WC_WITH_INV != 0, q.dev.rxe && from.wc_flags&rxeWithInv != 0:
		to.Flags |= verbs.WithInv
		to.InvRKey = word
	}
	if from.wc_flags&C.IBV_WC_GRH != 0 {
		to.Flags |= verbs.WithGRH
	}
}

// rxeWithInv is the kernel's own IB_WC_WITH_INVALIDATE (include/rdma/ib_verbs.h), which rxe
// hands to user space (rxe_resp.c do_complete) where libibverbs has another bit for it.
const rxeWithInv = 1 << 2

var bigEndian = func() bool { x := uint16(1); return *(*byte)(unsafe.Pointer(&x)) == 0 }()

func wcOpcode(op uint32) verbs.WCOpcode {
	switch op {
	case C.IBV_WC_RECV:
		return verbs.WCRecv
	case C.IBV_WC_RECV_RDMA_WITH_IMM:
		return verbs.WCRecvRDMAWithImm
	}
	return verbs.WCOpcode(op) // the others have libibverbs' values
}

// ReqNotify implements verbs.CQ.
func (q *cq) ReqNotify(solicitedOnly bool) error {
	if q.dead || q.dev.closed {
		return q.dev.fail("request CQ notification", errDead)
	}
	only := C.int(0)
	if solicitedOnly {
		only = 1
	}
	return q.dev.fail("request CQ notification", errnoOf(C.rb_req_notify(q.c, only)))
}

func (q *cq) Destroy(done func(error)) { q.dev.kill(q, &q.life, done) }

func (q *cq) destroy() error {
	q.dev.strike(unsafe.Pointer(q.c))
	if err := errnoOf(C.rb_errno(C.ibv_destroy_cq(q.c))); err != nil {
		q.dev.enroll(unsafe.Pointer(q.c), q)
		return q.dev.fail("destroy CQ", err)
	}
	return nil
}
