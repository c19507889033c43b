package rnic

import (
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// await starts the local ACK timer anew (9.7.6.1.3). The loop's timer is armed once: it finds the
// deadline that holds when it fires.
func (r *requester) await(now loop.Time) {
	q := r.q
	if q.attr.Timeout == 0 {
		return
	}
	r.deadline = q.dev.tick(now.Add(verbs.AckTimeout(q.attr.Timeout)))
	if !r.timer.Armed() {
		q.dev.loop.Arm(&r.timer, r.deadline)
	}
}

// tick rounds a time up to the profile's timer tick.
func (d *Device) tick(at loop.Time) loop.Time {
	if t := loop.Time(d.cfg.Profile.TimerTick); t > 0 {
		return (at + t - 1) / t * t
	}
	return at
}

func (r *requester) expire() {
	now := r.q.dev.loop.Now()
	switch {
	case r.deadline == 0:
	case now < r.deadline:
		r.q.dev.loop.Arm(&r.timer, r.deadline)
	default:
		r.q.dev.count.LocalAckTimeoutErr++
		r.q.path.resolve(r.q.dev)
		r.retry(now)
		r.kick()
	}
}

// endless is the retry_cnt that some devices take for ever (Profile.EndlessRetry).
const endless = 7

// retry goes back to the oldest PSN that is not acknowledged, unless it has done so as often as it may
// without any progress (9.9.2.1.1).
func (r *requester) retry(at loop.Time) {
	if r.retries == 0 {
		r.q.dev.count.RetryExceeded++
		r.fail(verbs.RetryExcErr, at)
		return
	}
	r.q.dev.count.Retries++
	if r.q.attr.RetryCnt != endless || !r.q.dev.cfg.Profile.EndlessRetry {
		r.retries--
	}
	r.deaf = r.q.dev.cfg.Profile.OneNAK && r.sel == nil
	r.rewind()
}

// rewind makes the oldest PSN that is not acknowledged the next one.
func (r *requester) rewind() {
	r.q.dev.port.forget(&r.port)
	r.deadline, r.asked = 0, 0
	if r.sel != nil {
		r.again()
		return
	}
	w := r.oldest()
	if r.q.dev.cfg.Profile.Recovery == GoBack0 {
		r.una = w.first
	}
	r.psn, r.cur, r.due = r.una, r.ring.head, r.una
}

// reopens says that a NAK goes back behind what was acknowledged already: go-back-0's do, to the
// message's start.
func (r *requester) reopens(psn roce.PSN, p *roce.Packet) bool {
	return r.q.dev.cfg.Profile.Recovery == GoBack0 && p.AETH.Syndrome == roce.NAK(roce.NAKPSNSequenceError) &&
		p.BTH.Opcode == roce.RCAcknowledge && r.una.Before(r.high) && psn == r.oldest().first
}

// implied is a response that shows that another was lost: an implied NAK (9.7.5.1.1). Those of what is
// under way while the requester goes back say nothing new.
func (r *requester) implied(at loop.Time) {
	if r.rewound || r.deaf {
		return
	}
	r.q.dev.count.ImpliedNakSeqErr++
	r.rewound = true
	r.retry(at)
}

// refused is a NAK of a PSN; what is before it has been done.
func (r *requester) refused(psn roce.PSN, code roce.NAKCode, at loop.Time) {
	count := &r.q.dev.count
	if code == roce.NAKPSNSequenceError {
		count.PacketSeqErr++
	}
	if !r.passedBy(psn, at) {
		return
	}
	if code == roce.NAKPSNSequenceError {
		switch {
		case r.q.dev.cfg.Profile.Recovery == GoBack0:
			r.rewind() // an answer is an answer: nobody counts how often the message begins anew
			r.retries = r.q.attr.RetryCnt
		case !r.rewound && !r.deaf: // else it is on its way already, or waits for the timer
			r.rewound = true
			r.retry(at)
		}
		return
	}
	r.fail(nakStatus(code), at)
}

// passedBy is acked for a NAK. A requester that is deaf to them (Profile.OneNAK) hears again only if a message is done by that.
func (r *requester) passedBy(psn roce.PSN, at loop.Time) bool {
	deaf, head := r.deaf, r.ring.head
	if !r.acked(psn, at) {
		return false
	}
	r.deaf = deaf && r.ring.head == head
	return true
}

// nakStatus is what a request that is refused for good completes with.
func nakStatus(code roce.NAKCode) verbs.Status {
	switch code {
	case roce.NAKInvalidRequest:
		return verbs.RemInvReqErr
	case roce.NAKRemoteAccessError:
		return verbs.RemAccessErr
	case roce.NAKRemoteOperationalError:
		return verbs.RemOpErr
	}
	return verbs.BadRespErr
}

// forEver is the RNR retry count that is none (9.7.5.2.8).
const forEver = 7

// notReady is an RNR NAK of a PSN.
func (r *requester) notReady(psn roce.PSN, code uint8, at loop.Time) {
	r.q.dev.count.RNRNakRetryErr++
	if !r.passedBy(psn, at) {
		return
	}
	r.rewind()
	r.rewound = true
	r.holdOff(r.oldest(), code, at)
}

// holdOff waits before a request that found no receive is sent again, or gives it up.
func (r *requester) holdOff(w *wqe, code uint8, at loop.Time) {
	q := r.q
	if q.attr.RNRRetry != forEver {
		if r.rnr == 0 {
			q.dev.count.RNRRetryExceeded++
			w.status = verbs.RNRRetryExcErr
			r.retire(at)
			return
		}
		r.rnr--
	}
	if q.dev.cfg.Bugs&BugRNRNoWait != 0 {
		return
	}
	q.dev.port.forget(&r.port)
	r.waiting, r.deadline = true, 0
	q.dev.loop.Arm(&r.delay, q.dev.tick(q.dev.loop.Now().Add(verbs.RNRDelay[code])))
}

func (r *requester) resumeAfterRNR() {
	r.waiting = false
	if r.sel != nil && r.una.Before(r.due) {
		// What was refused may have been taken meanwhile, of an earlier copy. Then it isn't sent again, and no packet starts the timer.
		r.await(r.q.dev.loop.Now())
	}
	r.kick()
}
