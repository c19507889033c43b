package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// srq is a shared receive queue.
type srq struct {
	object
	pd    *pd
	init  verbs.SRQInit
	queue recvQueue
	limit int // of the event; 0: not armed
}

// CreateSRQ implements verbs.PD.
func (p *pd) CreateSRQ(init verbs.SRQInit, done func(verbs.SRQ, error)) {
	d := p.dev
	op := fmt.Sprintf("create SRQ of %d receives", init.MaxWR)
	err := p.ok()
	if err == nil && (init.MaxWR < 1 || init.MaxWR > maxSRQWR || init.MaxSGE < 0 || init.MaxSGE > maxSGE) {
		err = fmt.Errorf("%w: 1 to %d of at most %d pieces are possible", ErrInvalid, maxSRQWR, maxSGE)
	}
	if err != nil {
		answer[verbs.SRQ](d, op, nil, err, done)
		return
	}
	p.uses++
	answer[verbs.SRQ](d, op, &srq{object: object{dev: d}, pd: p, init: init}, nil, done)
}

// PostRecv implements verbs.SRQ.
func (s *srq) PostRecv(wrs ...verbs.RecvWR) error {
	for i := range wrs {
		err := s.ok()
		if err == nil {
			err = s.queue.post(&wrs[i], s.init.MaxWR, s.init.MaxSGE)
		}
		if err != nil {
			return &verbs.PostError{Posted: i, Err: s.dev.fail("post a receive to SRQ", err)}
		}
	}
	return nil
}

// SetLimit implements verbs.SRQ. Where fewer receives than that are left already the event comes at once.
func (s *srq) SetLimit(limit int, done func(error)) {
	op := fmt.Sprintf("set SRQ limit %d", limit)
	err := s.ok()
	if err == nil && (limit < 0 || limit > s.init.MaxWR) {
		err = fmt.Errorf("%w: the queue holds %d", ErrInvalid, s.init.MaxWR)
	}
	if err == nil {
		s.limit = limit
		s.watch()
	}
	s.dev.fails(op, err, done)
}

// watch makes the limit event when it is due.
func (s *srq) watch() {
	if s.limit > 0 && int(s.queue.len()) < s.limit {
		s.limit = 0
		s.dev.event(verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: s})
	}
}

// Destroy implements verbs.SRQ.
func (s *srq) Destroy(done func(error)) {
	s.kill("destroy SRQ", func() { s.pd.uses-- }, done)
}
