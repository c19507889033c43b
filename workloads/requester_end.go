package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// note handles word from the responder.
func (q *requester) note(n note) {
	switch n.kind {
	case noteCredit:
		if n.n > q.credit {
			q.credit = n.n
		}
		if q.state == active {
			q.work()
		}
	case noteDone, noteFailed:
		q.peerOver = true
		if q.state == ending {
			q.over()
		} else {
			q.fail("", "the responder gave up: "+n.text)
		}
	}
}

// finish ends the flow when everything is sent and completed.
func (q *requester) finish() {
	if q.state != active || q.retired < q.next || q.next < q.f.total && (!q.stopping || q.tail()) {
		return
	}
	q.state = ending
	q.end.l.Disarm(&q.until)
	q.end.l.Disarm(&q.turn)
	q.end.l.Disarm(&q.release)
	q.stall.move()
	q.toPeer.send(note{kind: noteEnd, n: q.completed})
}

// failed handles a completion with an error.
func (q *requester) failed(wc *verbs.WC) {
	q.t.errors++
	if q.state == active {
		// Work requests before this one have succeeded, signalled or not.
		for ; q.completed < wc.ID && q.f.op != OpRead; q.completed++ {
			q.t.messages++
			q.t.bytes += uint64(q.f.size)
			if q.f.op == OpAtomic {
				q.returned(q.completed)
			}
		}
		q.fail(wc.Status.String(), fmt.Sprintf("message %d: %s (vendor error %#x)", wc.ID, wc.Status, wc.VendorErr))
	}
}

// drainID is the work request posted behind all others once the QP is in the error state: when
// it has been flushed, so have they, signalled or not.
const drainID = 1<<64 - 1

// fail gives the flow up: the QP goes to error, and what is outstanding is flushed.
func (q *requester) fail(status, why string) {
	if q.state == broken || q.state == through {
		return
	}
	q.state = broken
	q.t.status, q.t.failure = status, why
	q.t.end = q.end.l.Now()
	q.end.l.Disarm(&q.until)
	q.end.l.Disarm(&q.turn)
	q.end.l.Disarm(&q.release)
	q.end.fail(q.f.r.e.cfg.ControlTimeout, func(err error) {
		if err == nil {
			err = q.qp.PostSend(verbs.SendWR{ID: drainID, Op: verbs.OpSend, Flags: verbs.Signaled, AH: q.ah, RemoteQPN: q.peer.qpn, RemoteQKey: q.peer.qkey})
		}
		if err != nil {
			q.t.failure += fmt.Sprintf("; can't wait for the flush: %v", err)
			q.flushed()
		}
	})
}

// flushed is called when nothing is outstanding any more, or never will be known to be.
func (q *requester) flushed() {
	if q.state != broken {
		return
	}
	q.state = ending
	q.stall.move()
	q.toPeer.send(note{kind: noteBroken, n: q.completed})
	if q.peerOver {
		q.over()
	}
}

// stalled gives up when nothing has moved for too long, and says what was waited for.
func (q *requester) stalled() {
	limit := q.stall.limit
	switch q.state {
	case active:
		what := fmt.Sprintf("the completion of message %d (%d posted)", q.completed, q.next)
		switch {
		case q.retired < q.completed:
			what = fmt.Sprintf("the check of message %d", q.retired)
		case q.next == q.completed && q.next >= q.credit:
			what = fmt.Sprintf("the responder to be ready for message %d", q.next)
		}
		q.stall.start()
		q.fail("", fmt.Sprintf("nothing moved for %v while waiting for %s", limit, what))
	case broken:
		q.t.failure += fmt.Sprintf("; the flush of %d messages did not come within %v", q.next-q.completed, limit)
		q.stall.start()
		q.flushed()
	case ending:
		q.t.failure = join(q.t.failure, fmt.Sprintf("no word from the responder for %v after the last message", limit))
		q.over()
	}
}

func (q *requester) over() {
	if q.state == through {
		return
	}
	q.state = through
	q.stall.stop()
	q.report(&q.t)
}

// abort gives up from outside.
func (q *requester) abort(why string) {
	if q.state == active || q.state == idle {
		q.end.l.Disarm(&q.turn)
		q.stall.start()
		q.fail("", why)
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
