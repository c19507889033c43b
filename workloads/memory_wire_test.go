package workloads

import (
	"time"
	"unsafe"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func (q *memQP) transmit(m *memMsg, s *memSend) {
	dst, qpn := q.attr.AH.DGID, q.attr.DestQPN
	if q.init.Type == verbs.UD {
		dst, qpn = m.wr.AH.(*memAH).a.DGID, m.wr.RemoteQPN
	}
	q.d.net.mu.Lock()
	d := q.d.net.devs[dst]
	q.d.net.mu.Unlock()
	// finish runs on the requester's loop.
	finish := func(st verbs.Status, back []byte) {
		q.d.l.Post(func() {
			if s.done {
				return
			}
			s.done = true
			s.wc = verbs.WC{ID: m.wr.ID, Status: st, QPN: q.num, Op: verbs.WCSend}
			if back != nil && st == verbs.Success {
				g := m.wr.SGL[0]
				copy(q.d.at(g.LKey, g.Addr, int(g.Length), verbs.LocalWrite), back)
			}
			q.reap()
		})
	}
	if q.init.Type != verbs.RC {
		finish(verbs.Success, nil)
		finish = func(verbs.Status, []byte) {}
	}
	m.finish = finish
	d.l.Post(func() {
		if q.d.net.meddle != nil {
			q.d.net.meddle(m)
		}
		if m.to = d.qps[qpn]; m.to != nil && m.to.deaf {
			return // behind one that is lost
		}
		if m.to == nil || m.drop {
			if m.to != nil {
				m.to.deaf = q.init.Type == verbs.RC
			}
			loop.After(d.l, time.Millisecond, func() { finish(verbs.RetryExcErr, nil) })
			return
		}
		m.to.execute(m)
		if m.twice {
			m.to.execute(m)
		}
	})
}

// execute runs on the responder's loop.
func (q *memQP) execute(m *memMsg) {
	if m.status != verbs.Success {
		m.finish(m.status, nil)
		return
	}
	d := q.d
	needsRecv := m.wr.Op == verbs.OpSend || m.wr.Op == verbs.OpSendWithImm || m.wr.Op == verbs.OpRDMAWriteWithImm
	if needsRecv && len(q.rq) == 0 {
		switch {
		case q.init.Type != verbs.RC: // dropped
		case m.from.attr.RNRRetry == 7:
			q.waiting = append(q.waiting, m)
		default:
			loop.After(d.l, time.Millisecond, func() { m.finish(verbs.RNRRetryExcErr, nil) })
		}
		return
	}
	wc := verbs.WC{QPN: q.num, ByteLen: uint32(len(m.payload)), Op: verbs.WCRecv}
	var placed, back []byte
	switch m.wr.Op {
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		if len(m.payload) > 0 {
			placed = d.at(m.wr.RKey, m.wr.RemoteAddr, len(m.payload), verbs.RemoteWrite)
			if placed == nil {
				m.finish(verbs.RemAccessErr, nil)
				return
			}
		}
	case verbs.OpSend, verbs.OpSendWithImm:
		g := q.rq[0].SGL[0]
		placed = d.at(g.LKey, g.Addr, int(g.Length), verbs.LocalWrite)
		if q.init.Type == verbs.UD {
			placed, wc.ByteLen = placed[grh:], wc.ByteLen+grh
		}
	case verbs.OpRDMARead:
		src := d.at(m.wr.RKey, m.wr.RemoteAddr, len(m.payload), verbs.RemoteRead)
		back = append(back, src...)
		if m.after != nil {
			m.after(back)
		}
	case verbs.OpAtomicFetchAndAdd, verbs.OpAtomicCmpAndSwp:
		word := (*uint64)(unsafe.Pointer(&d.at(m.wr.RKey, m.wr.RemoteAddr, 8, verbs.RemoteAtomic)[0]))
		back = make([]byte, 8)
		*(*uint64)(unsafe.Pointer(&back[0])) = *word
		if m.wr.Op == verbs.OpAtomicFetchAndAdd {
			*word += m.wr.CompareAdd
		} else if *word == m.wr.CompareAdd {
			*word = m.wr.Swap
		}
		if m.twice {
			m.twice = false
			*word += m.wr.CompareAdd
		}
	}
	if placed != nil && !m.skip {
		copy(placed, m.payload)
	}
	if m.after != nil && placed != nil {
		m.after(placed)
	}
	if needsRecv {
		wc.ID, wc.Imm, wc.Flags = q.rq[0].ID, m.wr.Imm, verbs.WithImm
		q.rq = q.rq[1:]
		q.init.RecvCQ.(*memCQ).push(wc)
	}
	m.finish(verbs.Success, back)
}
