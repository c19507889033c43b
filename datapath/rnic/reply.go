package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// owe is told that a request asked for an ACK. One answers several, as the profile has it.
func (r *responder) owe(at loop.Time) {
	every, wait := r.q.dev.ackPolicy()
	if r.owed++; r.owed > 1 && r.q.dev.faulty.AckEvery > 0 {
		r.q.dev.faulty.count.AcksLeftOut++
	}
	if r.owed >= every || wait <= 0 {
		r.ack(at)
		return
	}
	if r.ackBy == 0 {
		r.ackBy = r.q.dev.loop.Now().Add(wait)
		if !r.ackTimer.Armed() {
			r.q.dev.loop.Arm(&r.ackTimer, r.ackBy)
		}
	}
}

func (r *responder) ackDue() {
	now := r.q.dev.loop.Now()
	switch {
	case r.ackBy == 0:
	case now < r.ackBy:
		r.q.dev.loop.Arm(&r.ackTimer, r.ackBy)
	default:
		r.ack(now)
	}
}

// ack acknowledges all that has been executed.
func (r *responder) ack(at loop.Time) {
	psn := r.epsn.Add(-1)
	if r.q.dev.cfg.Bugs&BugAckAhead != 0 {
		psn = r.epsn
	}
	r.answer(psn, roce.ACK(roce.CreditsInvalid), at)
}

// answer sends an ACK or a NAK, not before a time. It waits for the responses of what came before it:
// it would say of them that they are lost.
func (r *responder) answer(psn roce.PSN, s roce.Syndrome, at loop.Time) {
	r.owed, r.ackBy = 0, 0
	if r.late(psn, s, at) {
		return
	}
	r.sendAnswer(psn, s, at)
}

func (r *responder) sendAnswer(psn roce.PSN, s roce.Syndrome, at loop.Time) {
	if r.pending > 0 || r.port.held != nil {
		if r.reply.due && r.reply.syndrome.Kind() != roce.SyndromeACK && s.Kind() == roce.SyndromeACK {
			return // a NAK of what is expected says more
		}
		r.reply = reply{true, psn, s}
		r.port.spent = false
		return
	}
	r.q.dev.port.control(r.acknowledge(psn, s), at)
}

// acknowledge makes an ACK or a NAK.
func (r *responder) acknowledge(psn roce.PSN, s roce.Syndrome) *link.Frame {
	q := r.q
	f := q.dev.frame(&q.path, roce.RCAcknowledge, q.attr.DestQPN, psn, 0)
	f.Packet.Payload = nil
	f.Packet.AETH = roce.AETH{Syndrome: s, MSN: r.msn}
	q.dev.count.AcksSent++
	return f
}

// notReady is a request that finds no receive: the peer is to come again later.
func (r *responder) notReady(at loop.Time) {
	r.q.dev.count.OutOfBuffer++
	r.q.dev.count.RNRNakSent++
	r.told = true
	r.answer(r.epsn, roce.RNRNAK(r.q.attr.MinRNRTimer), at)
}

// denied is an access that the key doesn't give.
func (r *responder) denied(at loop.Time) {
	r.q.dev.count.RespRemoteAccess++
	r.end(roce.NAKRemoteAccessError, verbs.EventQPAccessErr, at)
}

// refuse is a request that is no valid one.
func (r *responder) refuse(code roce.NAKCode, at loop.Time) {
	r.end(code, verbs.EventQPReqErr, at)
}

// spoil is a receive that can't take its message: it says so itself, without an event.
func (r *responder) spoil(status verbs.Status, at loop.Time) {
	count := &r.q.dev.count
	count.RespCQEError++
	code := roce.NAKRemoteOperationalError
	if status == verbs.LocLenErr {
		count.RespLocalLengthError++
		code = roce.NAKInvalidRequest
	}
	r.received(&verbs.WC{Status: status}, true, at)
	r.close(code, at)
}

// end fails the QP and tells its owner by an event.
func (r *responder) end(code roce.NAKCode, e verbs.AsyncEventType, at loop.Time) {
	r.q.dev.event(verbs.AsyncEvent{Type: e, QP: r.q})
	r.close(code, at)
}

// close sends a NAK of what is expected as the last word, after which the QP is in ERR.
func (r *responder) close(code roce.NAKCode, at loop.Time) {
	if r.closing || r.q.state == verbs.Err {
		return
	}
	r.closing = true
	r.answer(r.epsn, roce.NAK(code), at)
	if !r.reply.due {
		r.q.fail(at)
	}
}

// duplicate is a request that was executed before. It is not executed again but for READs; an atomic gets
// the answer that it had (9.7.5.1.5).
func (r *responder) duplicate(f *link.Frame, info *roce.Info, at loop.Time) {
	p := &f.Packet
	r.q.dev.count.DuplicateRequest++
	if r.q.dev.cfg.Bugs != 0 {
		r.redo(f, info, at)
	}
	switch info.Operation {
	case roce.OpRDMAReadRequest, roce.OpCmpSwap, roce.OpFetchAdd:
		r.replay(p, info, at)
	default:
		if p.BTH.AckReq && !r.closing {
			r.ack(at)
		}
	}
}
