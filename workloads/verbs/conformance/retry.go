package conformance

import (
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

func retryCases() []Case {
	cases := []Case{
		{Name: "RC a request to a QP that is not yet RTR fails with RETRY_EXC_ERR", run: notReady},
		{Name: "RC a request to a QP that there is not fails with RETRY_EXC_ERR", run: noSuchQP},
		{Name: "RC a request that is answered before the retries are used up succeeds", run: lateRTR},
		{Name: "RC a SEND without a receive fails with RNR_RETRY_EXC_ERR when its RNR retries are used up", run: rnrExhausted},
		{Name: "RC a SEND without a receive succeeds when one is posted in time", run: rnrInTime},
		{Name: "RC with rnr_retry 7 a SEND waits for its receive for ever", run: rnrForEver},
		{Name: "RC a WRITE with immediate without a receive fails with RNR_RETRY_EXC_ERR", run: rnrImm},
		{Name: "RC retry_cnt 7 is seven retries", run: sevenRetries},
		{Name: "a query returns the timers that were set", run: timersBack},
	}
	for i := range cases {
		cases[i].Timers = true
	}
	return cases
}

// quick makes a QP give up soon: three tries of at least 67 ms.
var quick = options{Type: verbs.RC, Timeout: 14, RetryCnt: 2}

func notReady(t T, s *Suite) {
	for _, st := range []verbs.QPState{verbs.Reset, verbs.Init} {
		o := quick
		o.StopB, o.BState = true, st
		p := newPair(t, s, o)
		begun := p.a.time()
		p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000), p.wr(2, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000))
		p.a.sends.one(1, verbs.RetryExcErr)
		p.a.sends.one(2, verbs.WRFlushErr)
		// The timer may run up to four times its value (9.7.6.1.3), but not less, give or take the
		// tick of a device's clock.
		tries := time.Duration(o.RetryCnt) + 1
		if took, least := p.a.time().Sub(begun), tries*verbs.AckTimeout(o.Timeout); took < least*8/10 {
			t.Errorf("gave up after %v of fabric time, %d timeouts are %v", took, tries, least)
		}
		p.check("WRITEs to a QP in %v", st)
	}
}

func noSuchQP(t T, s *Suite) {
	p := newPair(t, s, quick)
	p.b.destroyQP(p.b.qp)
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMARead, p.a.sge(0, 100), 1000), p.wr(2, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000))
	p.a.sends.one(1, verbs.RetryExcErr)
	p.a.sends.one(2, verbs.WRFlushErr)
	p.check("a READ from a QP that is gone")
}

func lateRTR(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, Timeout: 15, RetryCnt: 6, StopB: true, BState: verbs.Init})
	for i := range 10 {
		p.a.send(p.a.qp, p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(i*3000, 3000), 100000+i*3000))
	}
	p.bringB(verbs.RTS)
	for i := range 10 {
		p.a.sends.one(uint64(i), verbs.Success)
	}
	p.b.scatter([]span{{100000, 30000}}, p.a.gather([]span{{0, 30000}}))
	p.check("ten WRITEs to a QP that came up late")
	p.prove("a QP that came up late")
}

func rnrExhausted(t T, s *Suite) {
	for _, retry := range []uint8{0, 1, 3} {
		p := newPair(t, s, options{Type: verbs.RC, RNRRetry: retry, ZeroRNRRetry: retry == 0})
		p.a.send(p.a.qp, p.wr(1, verbs.OpSend, p.a.sge(0, 3000), 0), p.wr(2, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000))
		p.a.sends.one(1, verbs.RNRRetryExcErr)
		p.a.sends.one(2, verbs.WRFlushErr)
		p.check("a SEND without a receive, rnr_retry %d", retry)
		// The responder has not failed.
		if st := p.b.query(p.b.qp).State; st != verbs.RTS {
			t.Errorf("rnr_retry %d: B's QP is in %v", retry, st)
		}
	}
}

func rnrImm(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, RNRRetry: 1})
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWriteWithImm, p.a.sge(0, 100), 1000))
	p.a.sends.one(1, verbs.RNRRetryExcErr)
	// Of a message of one packet nothing is written before its receive is found.
	p.check("a WRITE with immediate without a receive")
}

func rnrInTime(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, RNRRetry: 6, MinRNRTimer: 26}) // 82 ms each
	p.lateReceive("rnr_retry 6")
}

func rnrForEver(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, RNRRetry: 7, MinRNRTimer: 1}) // 10 µs each
	p.lateReceive("rnr_retry 7")
}

// lateReceive sends, waits until B has had time to refuse, and posts the receives.
func (p *pair) lateReceive(what string) {
	p.t.Helper()
	const n, count = 3000, 4
	for i := range count {
		p.a.send(p.a.qp, p.wr(uint64(i), verbs.OpSend, p.a.sge(i*n, n), 0))
	}
	p.a.sends.none(what + ", before the receive")
	for range 20 {
		p.b.pause()
	}
	for i := range count {
		p.b.recv(p.b.qp, verbs.RecvWR{ID: uint64(i), SGL: p.b.sge(100000+i*n, n)})
	}
	for i := range count {
		p.a.sends.one(uint64(i), verbs.Success)
		p.b.recvs.one(uint64(i), verbs.Success)
	}
	p.b.scatter([]span{{100000, count * n}}, p.a.gather([]span{{0, count * n}}))
	p.check("%d SENDs before their receives, %s", count, what)
}

func flushCases() []Case {
	return []Case{
		{Name: "RC a QP in ERR flushes what is posted, on both queues, in order", run: flush},
		{Name: "RC what is posted to a QP in ERR is flushed", run: flushLate},
		{Name: "UD and UC QPs in ERR flush what is posted", run: flushUnreliable},
	}
}

func flush(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC, StopB: true, BState: verbs.Init})
	for i := range 5 {
		p.a.recv(p.a.qp, verbs.RecvWR{ID: uint64(50 + i), SGL: p.a.sge(0, 10)})
		wr := p.wr(uint64(i), verbs.OpRDMAWrite, p.a.sge(0, 10), 0)
		if i == 2 {
			wr.Flags = 0 // a failure completes in any case
		}
		p.a.send(p.a.qp, wr)
	}
	p.a.toErr(p.a.qp)
	for i := range 5 {
		p.a.sends.one(uint64(i), verbs.WRFlushErr)
		p.a.recvs.one(uint64(50+i), verbs.WRFlushErr)
	}
	p.check("a flush")
}

func flushLate(t T, s *Suite) {
	p := newPair(t, s, options{Type: verbs.RC})
	p.flushPosted("RC")
}

func flushUnreliable(t T, s *Suite) {
	for _, kind := range []verbs.QPType{verbs.UC, verbs.UD} {
		newPair(t, s, options{Type: kind}).flushPosted(kind.String())
	}
}

func (p *pair) flushPosted(what string) {
	p.t.Helper()
	p.a.recv(p.a.qp, verbs.RecvWR{ID: 1})
	p.a.toErr(p.a.qp)
	p.a.recvs.one(1, verbs.WRFlushErr)
	p.a.recv(p.a.qp, verbs.RecvWR{ID: 2})
	late := p.a.departs(LateReceiveNotFlushed)
	if late {
		p.a.pause()
		p.a.recvs.none(what + " receive posted to a QP in ERR, and nothing since")
	} else {
		p.a.recvs.one(2, verbs.WRFlushErr)
	}
	p.a.send(p.a.qp, p.wr(3, verbs.OpSend, p.a.sge(0, 10), 0), p.wr(4, verbs.OpSend, p.a.sge(0, 10), 0))
	p.a.sends.one(3, verbs.WRFlushErr)
	p.a.sends.one(4, verbs.WRFlushErr)
	if late {
		p.a.recvs.one(2, verbs.WRFlushErr)
	}
	p.check("%s posted to a QP in ERR", what)
}

// sevenRetries has B come up after four times what seven retries may take.
func sevenRetries(t T, s *Suite) {
	o := options{Type: verbs.RC, Timeout: 8, RetryCnt: 7, StopB: true, BState: verbs.Init}
	p := newPair(t, s, o)
	p.a.send(p.a.qp, p.wr(1, verbs.OpRDMAWrite, p.a.sge(0, 100), 1000))
	if !p.a.departs(SevenRetriesForEver) {
		p.a.sends.one(1, verbs.RetryExcErr)
		p.check("eight tries")
		return
	}
	// A timer tick of rxe's device is 4 ms of wall time, more than this timeout's 1 ms.
	for until := p.a.time().Add(8 * 4 * max(verbs.AckTimeout(o.Timeout), 5*time.Millisecond)); p.a.time() < until; {
		p.a.pause()
	}
	p.a.sends.none("retries without an answer, declared as endless")
	p.bringB(verbs.RTS)
	p.a.sends.one(1, verbs.Success)
	p.b.scatter([]span{{1000, 100}}, p.a.gather([]span{{0, 100}}))
	p.check("a WRITE to a QP that came up very late")
}

func timersBack(t T, s *Suite) {
	for _, o := range []options{
		{Type: verbs.RC, MinRNRTimer: 1, Timeout: 14, RetryCnt: 1, RNRRetry: 1},
		{Type: verbs.RC, MinRNRTimer: 14, Timeout: 18, RetryCnt: 6, RNRRetry: 7},
	} {
		p := newPair(t, s, o)
		a := p.a.query(p.a.qp)
		if a.MinRNRTimer != o.MinRNRTimer || a.Timeout != o.Timeout || a.RetryCnt != o.RetryCnt || a.RNRRetry != o.RNRRetry {
			t.Errorf("queried %+v, set %+v", a, o)
		}
	}
}
