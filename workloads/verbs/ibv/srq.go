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
)

type srq struct {
	life
	pd *pd
	c  *C.struct_ibv_srq
}

// CreateSRQ implements verbs.PD.
func (p *pd) CreateSRQ(init verbs.SRQInit, done func(verbs.SRQ, error)) {
	d := p.dev
	call(d, func() (verbs.SRQ, error) {
		var a C.struct_ibv_srq_init_attr
		a.attr.max_wr = C.uint32_t(init.MaxWR)
		a.attr.max_sge = C.uint32_t(init.MaxSGE)
		c, err := C.ibv_create_srq(p.c, &a)
		if c == nil {
			return nil, d.fail(fmt.Sprintf("create SRQ of %d receives", init.MaxWR), err)
		}
		s := &srq{pd: p, c: c}
		d.enroll(unsafe.Pointer(c), s)
		d.born(s)
		return s, nil
	}, done)
}

// SetLimit implements verbs.SRQ.
func (s *srq) SetLimit(limit int, done func(error)) {
	d := s.pd.dev
	op := fmt.Sprintf("set SRQ limit %d", limit)
	if s.dead {
		d.lp.Post(func() { done(d.fail(op, errDead)) })
		return
	}
	call(d, func() (struct{}, error) {
		a := C.struct_ibv_srq_attr{srq_limit: C.uint32_t(limit)}
		return struct{}{}, d.fail(op, errnoOf(C.rb_errno(C.ibv_modify_srq(s.c, &a, C.IBV_SRQ_LIMIT))))
	}, func(_ struct{}, err error) { done(err) })
}

func (s *srq) Destroy(done func(error)) { s.pd.dev.kill(s, &s.life, done) }

func (s *srq) destroy() error {
	d := s.pd.dev
	d.strike(unsafe.Pointer(s.c))
	if err := errnoOf(C.rb_errno(C.ibv_destroy_srq(s.c))); err != nil {
		d.enroll(unsafe.Pointer(s.c), s)
		return d.fail("destroy SRQ", err)
	}
	return nil
}

type ah struct {
	life
	pd *pd
	c  *C.struct_ibv_ah
}

// CreateAH implements verbs.PD.
func (p *pd) CreateAH(attr verbs.AHAttr, done func(verbs.AH, error)) {
	d := p.dev
	op := fmt.Sprintf("create address handle to %v", attr.DGID)
	a, err := ahToC(attr)
	if err != nil {
		d.lp.Post(func() { done(nil, d.fail(op, err)) })
		return
	}
	call(d, func() (verbs.AH, error) {
		c, err := C.ibv_create_ah(p.c, &a)
		if c == nil {
			return nil, d.fail(op, err)
		}
		h := &ah{pd: p, c: c}
		d.born(h)
		return h, nil
	}, done)
}

func (h *ah) Destroy(done func(error)) { h.pd.dev.kill(h, &h.life, done) }

func (h *ah) destroy() error {
	return h.pd.dev.fail("destroy address handle", errnoOf(C.rb_errno(C.ibv_destroy_ah(h.c))))
}
