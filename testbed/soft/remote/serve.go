//go:build linux

package remote

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

var errNone = errors.New("there is no such object")

// handle does what a request asks, on the loop.
func (s *Server) handle(r *request) {
	a := &answer{Seq: r.Seq}
	refuse := func() { a.fail(fmt.Errorf("object %d: %w", r.ID, errNone)); s.say(a) }
	switch r.Op {
	case opAllocMemory:
		m, err := s.adopt(r)
		if a.fail(err); err == nil {
			s.mems[r.New], a.Addr = m, m.Addr()
		}
		s.say(a)
	case opFreeMemory:
		if m := s.mems[r.ID]; m != nil {
			delete(s.mems, r.ID)
			a.fail(m.free())
			s.say(a)
			return
		}
		refuse()
	case opAllocPD:
		s.devices[r.Device].AllocPD(made(s, r.Seq, func(pd verbs.PD, _ *answer) { s.pds[r.New] = pd }))
	case opCreateCQ:
		onEvent := func(cq verbs.CQ) { s.say(&answer{CQ: r.New}) }
		s.devices[r.Device].CreateCQ(r.N, onEvent, made(s, r.Seq, func(cq verbs.CQ, _ *answer) { s.cqs[r.New], s.cqIDs[cq] = cq, r.New }))
	case opCloseDevice:
		s.devices[r.Device].Close(s.done(r.Seq, nil))
	case opOther:
		s.other(r.Other, func(b []byte, err error) {
			a.Other = b
			a.fail(err)
			s.say(a)
		})
	case opPoll, opNotify, opDestroyCQ:
		if cq := s.cqs[r.ID]; cq != nil {
			s.onCQ(cq, r, a)
			return
		}
		refuse()
	case opModify, opQuery, opPostSend, opPostRecv, opDestroyQP:
		if q := s.qps[r.ID]; q != nil {
			s.onQP(q, r, a)
			return
		}
		refuse()
	case opPostSRQ, opSetLimit, opDestroySRQ:
		if q := s.srqs[r.ID]; q != nil {
			s.onSRQ(q, r, a)
			return
		}
		refuse()
	case opDeregMR:
		if m := s.mrs[r.ID]; m != nil {
			m.Dereg(s.done(r.Seq, func() { delete(s.mrs, r.ID) }))
			return
		}
		refuse()
	case opDeallocMW:
		if m := s.mws[r.ID]; m != nil {
			m.Dealloc(s.done(r.Seq, func() {
				delete(s.mws, r.ID)
				delete(s.keys, r.ID)
			}))
			return
		}
		refuse()
	case opDestroyAH:
		if h := s.ahs[r.ID]; h != nil {
			h.Destroy(s.done(r.Seq, func() { delete(s.ahs, r.ID) }))
			return
		}
		refuse()
	default:
		if pd := s.pds[r.ID]; pd != nil {
			s.onPD(pd, r)
			return
		}
		refuse()
	}
}

func (s *Server) onPD(pd verbs.PD, r *request) {
	switch r.Op {
	case opRegMR:
		var mem verbs.Memory
		if m := s.mems[r.Memory]; m != nil {
			mem = m.Memory
		}
		pd.RegMR(mem, r.N, r.M, r.Access, made(s, r.Seq, func(m verbs.MR, a *answer) {
			s.mrs[r.New] = m
			a.LKey, a.RKey, a.Addr = m.LKey(), m.RKey(), m.Addr()
		}))
	case opAllocMW:
		pd.AllocMW(verbs.MWType(r.Kind), made(s, r.Seq, func(m verbs.MW, a *answer) {
			s.mws[r.New], s.keys[r.New], a.RKey = m, m.RKey(), m.RKey()
		}))
	case opCreateQP:
		init := r.QP.Init
		init.SendCQ, init.RecvCQ = s.cqs[r.QP.SendCQ], s.cqs[r.QP.RecvCQ]
		if q := s.srqs[r.QP.SRQ]; q != nil {
			init.SRQ = q
		}
		pd.CreateQP(init, made(s, r.Seq, func(q verbs.QP, a *answer) {
			s.qps[r.New], s.qpIDs[q], s.byNum[q.Num()] = q, r.New, r.New
			a.Num = q.Num()
		}))
	case opCreateSRQ:
		pd.CreateSRQ(verbs.SRQInit{MaxWR: r.N, MaxSGE: r.M}, made(s, r.Seq, func(q verbs.SRQ, _ *answer) { s.srqs[r.New], s.srqID[q] = q, r.New }))
	case opCreateAH:
		pd.CreateAH(r.AH, made(s, r.Seq, func(h verbs.AH, _ *answer) { s.ahs[r.New] = h }))
	case opDeallocPD:
		pd.Dealloc(s.done(r.Seq, func() { delete(s.pds, r.ID) }))
	}
}

func (s *Server) onCQ(cq verbs.CQ, r *request, a *answer) {
	switch r.Op {
	case opPoll:
		if len(s.wcs) < r.N {
			s.wcs = make([]verbs.WC, r.N)
		}
		a.WCs = s.wcs[:cq.Poll(s.wcs[:r.N])]
		for i := range a.WCs {
			if wc := &a.WCs[i]; wc.Status != verbs.Success {
				id := s.byNum[wc.QPN]
				if q := s.qps[id]; q != nil {
					a.States = append(a.States, qpState{id, q.State()})
				}
			}
		}
		s.newKeys(a)
	case opNotify:
		a.fail(cq.ReqNotify(r.Flag))
	case opDestroyCQ:
		cq.Destroy(s.done(r.Seq, func() {
			delete(s.cqs, r.ID)
			delete(s.cqIDs, cq)
		}))
		return
	}
	s.say(a)
}

// newKeys notes the windows whose keys the client doesn't know.
func (s *Server) newKeys(a *answer) {
	for id, m := range s.mws {
		if key := m.RKey(); key != s.keys[id] {
			s.keys[id] = key
			a.Keys = append(a.Keys, windowKey{id, key})
		}
	}
}

func (s *Server) onQP(q verbs.QP, r *request, a *answer) {
	switch r.Op {
	case opModify:
		q.Modify(r.Attr, r.Mask, func(err error) {
			a.fail(err)
			a.States = []qpState{{r.ID, q.State()}}
			s.say(a)
		})
		return
	case opQuery:
		q.Query(func(attr verbs.QPAttr, err error) {
			a.Attr = attr
			a.fail(err)
			a.States = []qpState{{r.ID, q.State()}}
			s.say(a)
		})
		return
	case opDestroyQP:
		q.Destroy(s.done(r.Seq, func() {
			delete(s.qps, r.ID)
			delete(s.qpIDs, q)
			if s.byNum[q.Num()] == r.ID {
				delete(s.byNum, q.Num())
			}
		}))
		return
	case opPostSend:
		wrs := make([]verbs.SendWR, len(r.Sends))
		if err := s.layInline(r); err != nil {
			a.posted(err, 0)
			break
		}
		for i := range r.Sends {
			p := &r.Sends[i]
			wrs[i] = p.WR
			if h := s.ahs[p.AH]; h != nil {
				wrs[i].AH = h
			}
			if p.Bind {
				b := &verbs.BindMW{Addr: p.Addr, Length: p.Length, Access: p.Access}
				if m := s.mws[p.MW]; m != nil {
					b.MW = m
				}
				if m := s.mrs[p.MR]; m != nil {
					b.MR = m
				}
				wrs[i].Bind = b
			}
		}
		a.posted(q.PostSend(wrs...), len(wrs))
		s.newKeys(a)
	case opPostRecv:
		a.posted(q.PostRecv(r.Recvs...), len(r.Recvs))
	}
	a.States = []qpState{{r.ID, q.State()}}
	s.say(a)
}

// layInline puts the inline data of a request into memory of the device, and makes the lists refer to it there: posting copies
// it, and what lies where the client had it may be other bytes by now.
func (s *Server) layInline(r *request) error {
	n := 0
	for i := range r.Sends {
		n += len(r.Sends[i].Inline)
	}
	if n == 0 {
		return nil
	}
	m := s.inline[r.Device]
	if m == nil || m.Len() < n {
		if m != nil {
			delete(s.inline, r.Device)
			if err := m.Free(); err != nil {
				return err
			}
		}
		var err error
		if m, err = s.devices[r.Device].AllocMemory(max(n, 4096), verbs.HostMemory); err != nil {
			return err
		}
		s.inline[r.Device] = m
	}
	at := 0
	for i := range r.Sends {
		p := &r.Sends[i]
		var want int
		for _, e := range p.WR.SGL {
			want += int(e.Length)
		}
		if p.WR.Flags&verbs.Inline == 0 || want != len(p.Inline) {
			continue
		}
		copy(m.Bytes()[at:], p.Inline)
		for j := range p.WR.SGL {
			p.WR.SGL[j].Addr = m.Addr() + uint64(at)
			at += int(p.WR.SGL[j].Length)
		}
	}
	return nil
}

func (s *Server) onSRQ(q verbs.SRQ, r *request, a *answer) {
	switch r.Op {
	case opPostSRQ:
		a.posted(q.PostRecv(r.Recvs...), len(r.Recvs))
		s.say(a)
	case opSetLimit:
		q.SetLimit(r.N, s.done(r.Seq, nil))
	case opDestroySRQ:
		q.Destroy(s.done(r.Seq, func() {
			delete(s.srqs, r.ID)
			delete(s.srqID, q)
		}))
	}
}

// posted notes how many of n work requests were taken.
func (a *answer) posted(err error, n int) {
	a.Posted = n
	var pe *verbs.PostError
	if errors.As(err, &pe) {
		a.Posted = pe.Posted
	}
	a.fail(err)
}
