//go:build linux

package remote

import (
	"errors"

	"github.com/rocebed/rocebed/workloads/verbs"
)

type cq struct {
	d       *device
	id      uint32
	onEvent func(verbs.CQ)
	dead    bool
	awaited bool       // an answer to Poll has not come in time; those after it would overtake it
	found   []verbs.WC // what it brought
}

// Poll implements verbs.CQ.
func (q *cq) Poll(wcs []verbs.WC) int {
	if q.dead || q.d.closed || len(wcs) == 0 {
		return 0
	}
	if len(q.found) > 0 {
		n := copy(wcs, q.found)
		q.found = q.found[n:]
		return n
	}
	if q.awaited {
		return 0
	}
	a, err := q.d.c.ask(&request{Op: opPoll, ID: q.id, N: len(wcs)}, patience, func(a *answer) {
		q.awaited = false
		if q.found = append(q.found, a.WCs...); len(q.found) > 0 && !q.dead && q.onEvent != nil {
			q.onEvent(q)
		}
	})
	q.awaited = errors.Is(err, errSilent)
	if err != nil {
		return 0
	}
	return copy(wcs, a.WCs)
}

// ReqNotify implements verbs.CQ.
func (q *cq) ReqNotify(solicitedOnly bool) error {
	if q.dead || q.d.closed {
		return q.d.fail("request notification", errDead)
	}
	_, err := q.d.c.ask(&request{Op: opNotify, ID: q.id, Flag: solicitedOnly}, patience, func(*answer) {})
	if errors.Is(err, errSilent) {
		return nil // it is asked when it goes on
	}
	return err
}

func (q *cq) Destroy(done func(error)) { q.d.destroy("destroy CQ", opDestroyCQ, q.id, &q.dead, done) }

type srq struct {
	d    *device
	id   uint32
	dead bool
}

// PostRecv implements verbs.SRQ.
func (q *srq) PostRecv(wrs ...verbs.RecvWR) error {
	return q.d.postRecv(&request{Op: opPostSRQ, ID: q.id, Recvs: wrs}, q.dead)
}

func (q *srq) SetLimit(limit int, done func(error)) {
	if q.dead {
		q.d.later(done, q.d.fail("set SRQ limit", errDead))
		return
	}
	q.d.c.call(&request{Op: opSetLimit, ID: q.id, N: limit}, func(_ *answer, err error) { done(err) })
}

func (q *srq) Destroy(done func(error)) {
	q.d.destroy("destroy SRQ", opDestroySRQ, q.id, &q.dead, done)
}

func (d *device) postRecv(r *request, dead bool) error {
	if dead || d.closed {
		return &verbs.PostError{Err: d.fail("post receive", errDead)}
	}
	if len(r.Recvs) == 0 {
		return nil
	}
	a, err := d.c.ask(r, patience, func(a *answer) { d.refusedLate(a, nil) })
	return postError(a, err)
}

// refusedLate is for work requests that were taken for posted and are refused now.
func (d *device) refusedLate(a *answer, q *qp) {
	switch {
	case !a.Failed:
	case q != nil:
		d.event(verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: q})
	default:
		d.event(verbs.AsyncEvent{Type: verbs.EventDeviceFatal})
	}
}

// postError is nil where the process doesn't answer: it takes the work requests when it goes on.
func postError(a *answer, err error) error {
	if err == nil || errors.Is(err, errSilent) {
		return nil
	}
	return &verbs.PostError{Posted: a.Posted, Err: err}
}

type qp struct {
	d     *device
	id    uint32
	num   uint32
	kind  verbs.QPType
	state verbs.QPState
	dead  bool
}

func (q *qp) Num() uint32          { return q.num }
func (q *qp) Type() verbs.QPType   { return q.kind }
func (q *qp) State() verbs.QPState { return q.state }

// Modify implements verbs.QP.
func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask, done func(error)) {
	if q.dead {
		q.d.later(done, q.d.fail("modify QP", errDead))
		return
	}
	q.d.c.call(&request{Op: opModify, ID: q.id, Attr: attr, Mask: mask}, func(_ *answer, err error) { done(err) })
}

// Query implements verbs.QP.
func (q *qp) Query(done func(verbs.QPAttr, error)) {
	if q.dead {
		err := q.d.fail("query QP", errDead)
		q.d.c.loop.Post(func() { done(verbs.QPAttr{}, err) })
		return
	}
	q.d.c.call(&request{Op: opQuery, ID: q.id}, func(a *answer, err error) { done(a.Attr, err) })
}

// PostSend implements verbs.QP.
func (q *qp) PostSend(wrs ...verbs.SendWR) error {
	if q.dead || q.d.closed {
		return &verbs.PostError{Err: q.d.fail("post send", errDead)}
	}
	if len(wrs) == 0 {
		return nil
	}
	r := &request{Op: opPostSend, Device: q.d.n, ID: q.id, Sends: make([]send, len(wrs))}
	for i := range wrs {
		s := &r.Sends[i]
		s.WR = wrs[i]
		s.WR.AH, s.WR.Bind = nil, nil
		if s.WR.Flags&verbs.Inline != 0 {
			s.Inline = q.d.gather(s.WR.SGL)
		}
		if h, ok := wrs[i].AH.(*ah); ok && !h.dead && h.d == q.d {
			s.AH = h.id
		}
		if b := wrs[i].Bind; b != nil {
			s.Bind, s.Addr, s.Length, s.Access = true, b.Addr, b.Length, b.Access
			if m, ok := b.MW.(*mw); ok && !m.dead {
				s.MW = m.id
			}
			if m, ok := b.MR.(*mr); ok && !m.dead {
				s.MR = m.id
			}
		}
	}
	a, err := q.d.c.ask(r, patience, func(a *answer) { q.d.refusedLate(a, q) })
	return postError(a, err)
}

// PostRecv implements verbs.QP.
func (q *qp) PostRecv(wrs ...verbs.RecvWR) error {
	return q.d.postRecv(&request{Op: opPostRecv, ID: q.id, Recvs: wrs}, q.dead)
}

func (q *qp) Destroy(done func(error)) { q.d.destroy("destroy QP", opDestroyQP, q.id, &q.dead, done) }
