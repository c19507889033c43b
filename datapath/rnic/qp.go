package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// firstQPN is the first queue pair's number: 0 and 1 are InfiniBand's own, rxe begins here as well.
const firstQPN = 0x11

// qp is a queue pair. Its requester sends what is in the send queue, its responder answers the peer's.
type qp struct {
	object
	num   uint32
	state verbs.QPState
	kind  verbs.QPType
	pd    *pd
	init  verbs.QPInit
	attr  verbs.QPAttr
	path  path // connected transports
	mtu   uint32

	selective bool // both ends repeat selectively

	sendCQ *compQueue
	recvCQ *compQueue
	srq    *srq
	pace   *pace // of requester and READ responses; nil before the first CNP

	tx requester
	rx responder
}

// CreateQP implements verbs.PD.
func (p *pd) CreateQP(init verbs.QPInit, done func(verbs.QP, error)) {
	d := p.dev
	op := fmt.Sprintf("create %v QP", init.Type)
	q := &qp{object: object{dev: d}, pd: p, kind: init.Type, init: init, mtu: uint32(d.mtu)}
	err := p.ok()
	if err == nil {
		err = q.prepare()
	}
	if err != nil {
		answer[verbs.QP](d, op, nil, err, done)
		return
	}
	answer[verbs.QP](d, op, q, nil, done)
}

func (q *qp) prepare() error {
	d, i := q.dev, &q.init
	var ok1, ok2, ok3 bool
	q.sendCQ, ok1 = i.SendCQ.(*compQueue)
	q.recvCQ, ok2 = i.RecvCQ.(*compQueue)
	q.srq, ok3 = i.SRQ.(*srq)
	switch {
	case i.Type > verbs.UD:
		return fmt.Errorf("%w: there is no such transport", ErrInvalid)
	case !ok1, !ok2, i.SRQ != nil && !ok3:
		return fmt.Errorf("%w: it needs a send and a receive CQ of this device", ErrInvalid)
	case q.sendCQ.dev != d, q.recvCQ.dev != d, q.srq != nil && q.srq.dev != d:
		return fmt.Errorf("%w: its queues are another device's", ErrInvalid)
	case q.sendCQ.dead, q.recvCQ.dead, q.srq != nil && q.srq.dead:
		return ErrDead
	case i.MaxSendWR < 0 || i.MaxSendWR > maxQPWR || i.MaxRecvWR < 0 || i.MaxRecvWR > maxQPWR:
		return fmt.Errorf("%w: %d sends and %d receives, %d are possible", ErrInvalid, i.MaxSendWR, i.MaxRecvWR, maxQPWR)
	case i.MaxSendSGE < 0 || i.MaxSendSGE > maxSGE || i.MaxRecvSGE < 0 || i.MaxRecvSGE > maxSGE:
		return fmt.Errorf("%w: %d and %d pieces in a list, %d are possible", ErrInvalid, i.MaxSendSGE, i.MaxRecvSGE, maxSGE)
	case i.MaxInlineData < 0 || i.MaxInlineData > maxInline:
		return fmt.Errorf("%w: %d bytes inline, %d are possible", ErrInvalid, i.MaxInlineData, maxInline)
	case !d.enroll(q):
		return fmt.Errorf("%w: there are %d QPs", ErrFull, maxQPs-firstQPN)
	}
	q.pd.uses++
	q.sendCQ.uses++
	q.recvCQ.uses++
	if q.srq != nil {
		q.srq.uses++
	}
	q.tx.init(q)
	q.rx.init(q)
	return nil
}

// enroll gives a QP a number: an index, above which a count says how often it was used before, so
// that packets to a QP that is gone don't find its successor.
func (d *Device) enroll(q *qp) bool {
	if n := len(d.freeQPs); n > 0 {
		q.num = (d.freeQPs[n-1] + maxQPs) & 0xffffff
		d.freeQPs = d.freeQPs[:n-1]
	} else {
		if len(d.qps) == maxQPs {
			return false
		}
		for len(d.qps) < firstQPN {
			d.qps = append(d.qps, nil)
		}
		q.num = uint32(len(d.qps))
		d.qps = append(d.qps, nil)
	}
	d.qps[q.num&(maxQPs-1)] = q
	return true
}

func (q *qp) Num() uint32          { return q.num }
func (q *qp) Type() verbs.QPType   { return q.kind }
func (q *qp) State() verbs.QPState { return q.state }

// Query implements verbs.QP.
func (q *qp) Query(done func(verbs.QPAttr, error)) {
	if err := q.ok(); err != nil {
		answer(q.dev, "query QP", verbs.QPAttr{}, err, done)
		return
	}
	a := q.attr
	a.State, a.CurState = q.state, q.state
	a.RQPSN, a.SQPSN = uint32(q.rx.epsn), uint32(q.tx.psn)
	a.SQDraining = q.state == verbs.SQD && !q.tx.idle()
	answer(q.dev, "query QP", a, nil, done)
}

// Destroy implements verbs.QP.
func (q *qp) Destroy(done func(error)) { q.kill(q.name("destroy"), q.bury, done) }

func (q *qp) name(op string) string { return fmt.Sprintf("%s %v QP %#x", op, q.kind, q.num) }

// bury takes back all that the QP holds.
func (q *qp) bury() {
	q.reset()
	q.dead = true
	q.pd.uses--
	q.sendCQ.uses--
	q.recvCQ.uses--
	if q.srq != nil {
		q.srq.uses--
	}
	d := q.dev
	d.qps[q.num&(maxQPs-1)] = nil
	d.freeQPs = append(d.freeQPs, q.num)
}

// reset is the state RESET: nothing is left of what was posted, completed or under way.
func (q *qp) reset() {
	q.state, q.selective = verbs.Reset, false
	q.tx.reset()
	q.rx.reset()
	q.pace, q.tx.port.pace, q.rx.port.pace = nil, nil, nil
	q.sendCQ.drop(q.num)
	q.recvCQ.drop(q.num)
	q.attr = verbs.QPAttr{}
}

// receive takes a packet that arrived for the QP.
func (q *qp) receive(f *link.Frame) {
	d := q.dev
	p := &f.Packet
	info := p.Info()
	at := d.checked
	marked := f.ECN() == roce.CE
	if marked {
		d.count.ECNMarked++
	}
	if info.Transport != transports[q.kind] && !(q.kind == verbs.RC && info.Transport == roce.TransportManufacturer && info.Known()) || p.BTH.PKey&0x7fff != roce.DefaultPKey&0x7fff {
		d.count.StrayPackets++
		return
	}
	if q.kind != verbs.UD && p.Src != q.path.addr {
		d.count.StrayPackets++
		return
	}
	if marked && q.state >= verbs.RTR && q.state != verbs.Err {
		d.marked(q, f, at)
	}
	switch {
	case info.Any(roce.Response):
		if q.state == verbs.RTS || q.state == verbs.SQD {
			q.tx.response(f, info, at)
			return
		}
	case q.state >= verbs.RTR && q.state <= verbs.SQE:
		q.rx.request(f, info, at)
		return
	}
	d.count.StrayPackets++
}

var transports = [...]roce.Transport{verbs.RC: roce.TransportRC, verbs.UC: roce.TransportUC, verbs.UD: roce.TransportUD}

// fail takes the QP to ERR: what is in its queues is flushed, and nothing leaves or is taken any more.
func (q *qp) fail(at loop.Time) {
	if q.state == verbs.Err || q.state == verbs.Reset {
		return
	}
	q.state = verbs.Err
	q.tx.flush(at)
	q.rx.flush(at)
	if q.srq != nil {
		q.dev.event(verbs.AsyncEvent{Type: verbs.EventQPLastWQEReached, QP: q})
	}
}

// complete makes a completion of the QP on one of its queues.
func (q *qp) complete(c *compQueue, wc *verbs.WC, at loop.Time, solicited bool) {
	wc.QPN = q.num
	if !c.push(wc, at.Add(q.dev.hw.st.CQEWrite), solicited || wc.Status != verbs.Success) && q.state != verbs.Err && q.state != verbs.Reset {
		q.dev.event(verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: q})
		q.fail(at)
	}
}
