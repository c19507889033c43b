//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
#include <stdlib.h>

#cgo noescape rb_post_send
#cgo nocallback rb_post_send
#cgo noescape rb_post_recv
#cgo nocallback rb_post_recv
#cgo noescape rb_post_srq_recv
#cgo nocallback rb_post_srq_recv
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
	"golang.org/x/sys/unix"
)

// scratch is C memory in which lists of work requests are laid out for one call. It grows
// to the longest list and is used on the loop alone.
type scratch struct {
	sends []C.struct_rb_send_wr
	recvs []C.struct_rb_recv_wr
	sges  []C.struct_ibv_sge
}

func grow[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	n = max(n, 2*len(s), 64)
	var zero T
	C.free(unsafe.Pointer(unsafe.SliceData(s)))
	p := C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(zero)))
	return unsafe.Slice((*T)(p), n)
}

func (s *scratch) free() {
	C.free(unsafe.Pointer(unsafe.SliceData(s.sends)))
	C.free(unsafe.Pointer(unsafe.SliceData(s.recvs)))
	C.free(unsafe.Pointer(unsafe.SliceData(s.sges)))
	*s = scratch{}
}

func putSGL(to []C.struct_ibv_sge, sgl []verbs.SGE) {
	for i, e := range sgl {
		to[i] = C.struct_ibv_sge{addr: C.uint64_t(e.Addr), length: C.uint32_t(e.Length), lkey: C.uint32_t(e.LKey)}
	}
}

// PostSend implements verbs.QP.
func (q *qp) PostSend(wrs ...verbs.SendWR) error {
	d := q.pd.dev
	if q.dead || d.closed {
		return &verbs.PostError{Err: d.fail("post send", errDead)}
	}
	if len(wrs) == 0 {
		if err := errnoOf(C.rb_ring(q.c)); err != nil {
			return &verbs.PostError{Err: d.fail("ring the doorbell of", err)}
		}
		return nil
	}
	pieces := 0
	for i := range wrs {
		pieces += len(wrs[i].SGL)
	}
	s := &d.post
	s.sends, s.sges = grow(s.sends, len(wrs)), grow(s.sges, max(pieces, 1))
	piece, first := 0, 0
	for i := range wrs {
		wr := &wrs[i]
		if err := q.putSend(&s.sends[i], wr); err != nil {
			if perr := q.flushSends(first, i); perr != nil {
				return perr
			}
			return q.postFailed(i, wr, err)
		}
		s.sends[i].first_sge = C.uint32_t(piece)
		putSGL(s.sges[piece:], wr.SGL)
		piece += len(wr.SGL)
		if wr.Op == verbs.OpBindMW {
			if err := q.flushSends(first, i); err != nil {
				return err
			}
			if err := q.bind(&s.sends[i], wr); err != nil {
				return q.postFailed(i, wr, err)
			}
			first = i + 1
		}
	}
	return q.flushSends(first, len(wrs))
}

// flushSends posts the requests laid out from first to end.
func (q *qp) flushSends(first, end int) error {
	if first == end {
		return nil
	}
	s := &q.pd.dev.post
	r := C.rb_post_send(q.c, &s.sends[first], C.int(end-first), &s.sges[0])
	if r.err == 0 {
		return nil
	}
	return &verbs.PostError{
		Posted: first + int(r.taken),
		Err:    q.pd.dev.fail(fmt.Sprintf("QP %#x: post send", q.num), errnoOf(r.err)),
	}
}

func (q *qp) postFailed(i int, wr *verbs.SendWR, err error) error {
	return &verbs.PostError{Posted: i, Err: q.pd.dev.fail(fmt.Sprintf("QP %#x: post %v", q.num, wr.Op), err)}
}

// opcodes has libibverbs' opcodes by ours.
var opcodes = [...]C.uint32_t{
	verbs.OpSend:              C.IBV_WR_SEND,
	verbs.OpSendWithImm:       C.IBV_WR_SEND_WITH_IMM,
	verbs.OpSendWithInv:       C.IBV_WR_SEND_WITH_INV,
	verbs.OpRDMAWrite:         C.IBV_WR_RDMA_WRITE,
	verbs.OpRDMAWriteWithImm:  C.IBV_WR_RDMA_WRITE_WITH_IMM,
	verbs.OpRDMARead:          C.IBV_WR_RDMA_READ,
	verbs.OpAtomicCmpAndSwp:   C.IBV_WR_ATOMIC_CMP_AND_SWP,
	verbs.OpAtomicFetchAndAdd: C.IBV_WR_ATOMIC_FETCH_AND_ADD,
	verbs.OpBindMW:            C.IBV_WR_BIND_MW,
	verbs.OpLocalInv:          C.IBV_WR_LOCAL_INV,
}

// putSend lays out all of a work request but its scatter-gather list.
func (q *qp) putSend(to *C.struct_rb_send_wr, wr *verbs.SendWR) error {
	if int(wr.Op) >= len(opcodes) {
		return unix.EINVAL
	}
	*to = C.struct_rb_send_wr{
		wr_id:       C.uint64_t(wr.ID),
		remote_addr: C.uint64_t(wr.RemoteAddr),
		compare_add: C.uint64_t(wr.CompareAdd),
		swap:        C.uint64_t(wr.Swap),
		opcode:      opcodes[wr.Op],
		send_flags:  C.uint32_t(wr.Flags), // the same bits
		num_sge:     C.uint32_t(len(wr.SGL)),
		rkey:        C.uint32_t(wr.RKey),
		imm:         C.uint32_t(wr.Imm),
		inv_rkey:    C.uint32_t(wr.InvRKey),
		remote_qpn:  C.uint32_t(wr.RemoteQPN),
		remote_qkey: C.uint32_t(wr.RemoteQKey),
	}
	if q.kind == verbs.UD {
		// ibv_send_wr keeps the address handle where other operations keep theirs, and rdma-core's rxe follows it
		// whatever the operation.
		if wr.Op != verbs.OpSend && wr.Op != verbs.OpSendWithImm && wr.Op != verbs.OpLocalInv && wr.Op != verbs.OpBindMW {
			return fmt.Errorf("%w: UD has SENDs alone", unix.EINVAL)
		}
		h, ok := wr.AH.(*ah)
		if !ok || h.dead {
			return fmt.Errorf("%w: a UD send needs a living address handle", unix.EINVAL)
		}
		to.ah = h.c
	}
	return nil
}

// bind posts a memory window's binding: a type 1 window by its own verb, which chooses the
// key, a type 2 window as a work request with the next key.
func (q *qp) bind(to *C.struct_rb_send_wr, wr *verbs.SendWR) error {
	if wr.Bind == nil {
		return fmt.Errorf("%w: BIND_MW without its parameters", unix.EINVAL)
	}
	w, ok1 := wr.Bind.MW.(*mw)
	r, ok2 := wr.Bind.MR.(*mr)
	if !ok1 || !ok2 || w.dead || r.dead {
		return fmt.Errorf("%w: BIND_MW needs a living window and region", unix.EINVAL)
	}
	to.mw, to.bind_mr = w.c, r.c
	to.bind_addr, to.bind_length = C.uint64_t(wr.Bind.Addr), C.uint64_t(wr.Bind.Length)
	to.bind_access = C.uint32_t(wr.Bind.Access)
	if w.kind == verbs.MWType1 {
		return errnoOf(C.rb_bind_mw(q.c, to))
	}
	key := nextRKey(w.RKey())
	to.bind_rkey = C.uint32_t(key)
	res := C.rb_post_send(q.c, to, 1, &q.pd.dev.post.sges[0])
	if res.err == 0 {
		w.c.rkey = C.uint32_t(key)
	}
	return errnoOf(res.err)
}

// putRecvs lays out receive work requests.
func (s *scratch) putRecvs(wrs []verbs.RecvWR) {
	pieces := 0
	for i := range wrs {
		pieces += len(wrs[i].SGL)
	}
	s.recvs, s.sges = grow(s.recvs, len(wrs)), grow(s.sges, max(pieces, 1))
	piece := 0
	for i := range wrs {
		s.recvs[i] = C.struct_rb_recv_wr{
			wr_id:     C.uint64_t(wrs[i].ID),
			first_sge: C.uint32_t(piece),
			num_sge:   C.uint32_t(len(wrs[i].SGL)),
		}
		putSGL(s.sges[piece:], wrs[i].SGL)
		piece += len(wrs[i].SGL)
	}
}

// PostRecv implements verbs.QP.
func (q *qp) PostRecv(wrs ...verbs.RecvWR) error {
	d := q.pd.dev
	if q.dead || d.closed {
		return &verbs.PostError{Err: d.fail("post receive", errDead)}
	}
	if len(wrs) == 0 {
		return nil
	}
	d.post.putRecvs(wrs)
	r := C.rb_post_recv(q.c, &d.post.recvs[0], C.int(len(wrs)), &d.post.sges[0])
	if r.err != 0 {
		return &verbs.PostError{Posted: int(r.taken), Err: d.fail(fmt.Sprintf("QP %#x: post receive", q.num), errnoOf(r.err))}
	}
	return nil
}

// PostRecv implements verbs.SRQ.
func (s *srq) PostRecv(wrs ...verbs.RecvWR) error {
	d := s.pd.dev
	if s.dead || d.closed {
		return &verbs.PostError{Err: d.fail("post receive", errDead)}
	}
	if len(wrs) == 0 {
		return nil
	}
	d.post.putRecvs(wrs)
	r := C.rb_post_srq_recv(s.c, &d.post.recvs[0], C.int(len(wrs)), &d.post.sges[0])
	if r.err != 0 {
		return &verbs.PostError{Posted: int(r.taken), Err: d.fail("SRQ: post receive", errnoOf(r.err))}
	}
	return nil
}
