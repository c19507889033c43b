package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// sentAt keeps when host 0 sends its requests.
func (l *lab) sentAt(keep *[]loop.Time, pass bool) {
	l.wires[0].tap = func(f *link.Frame) bool {
		if f.Packet.Info().Any(roce.Request) {
			*keep = append(*keep, l.v.Now())
		}
		return pass
	}
}

// write is a WRITE of n bytes to the start of the other end's region.
func (e *end) write(to *end, id uint64, n int) verbs.SendWR {
	return verbs.SendWR{ID: id, Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: e.sge(0, n), RemoteAddr: to.mem.addr, RKey: to.mr.was}
}

func (e *end) post(t testing.TB, wrs ...verbs.SendWR) {
	t.Helper()
	if err := e.qp.PostSend(wrs...); err != nil {
		t.Fatal(err)
	}
}

func (e *end) recv(t testing.TB, wrs ...verbs.RecvWR) {
	t.Helper()
	if err := e.qp.PostRecv(wrs...); err != nil {
		t.Fatal(err)
	}
}

func TestARequestThatNobodyAnswersIsSentRetryCntTimesAgainAndATimeoutApart(t *testing.T) {
	for cnt := range uint8(8) {
		l := newLab(false)
		e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.RetryCnt, a.Timeout = cnt, 3 })
		var sent []loop.Time
		l.sentAt(&sent, false)
		e[0].post(t, e[0].write(e[1], 1, 100), e[0].write(e[1], 2, 100))
		wcs := l.await(t, e[0], 2)
		if wcs[0].ID != 1 || wcs[0].Status != verbs.RetryExcErr || wcs[1].Status != verbs.WRFlushErr {
			t.Fatalf("retry_cnt %d: completions %+v", cnt, wcs)
		}
		if len(sent) != 2*(int(cnt)+1) {
			t.Fatalf("retry_cnt %d: two requests are sent %d times together", cnt, len(sent))
		}
		for i := 2; i < len(sent); i += 2 {
			if d := sent[i].Sub(sent[i-1]); d != verbs.AckTimeout(3) {
				t.Errorf("retry_cnt %d: try %d after %v, the timeout is %v", cnt, i/2, d, verbs.AckTimeout(3))
			}
		}
		if c := e[0].count; c.LocalAckTimeoutErr != uint64(cnt)+1 || c.RetransmittedPackets != 2*uint64(cnt) {
			t.Errorf("retry_cnt %d: %d timeouts and %d packets again are counted", cnt, c.LocalAckTimeoutErr, c.RetransmittedPackets)
		}
	}
}

func TestTimersAreRoundedUpToTheProfilesTick(t *testing.T) {
	const tick = 4 * time.Millisecond
	l := newLab(false)
	l.config = func(c *Config) { c.Profile.TimerTick = tick }
	e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.RetryCnt, a.Timeout = 3, 3 })
	var sent []loop.Time
	l.sentAt(&sent, false)
	e[0].post(t, e[0].write(e[1], 1, 100))
	l.await(t, e[0], 1)
	for i, at := range sent[1:] {
		if at%loop.Time(tick) != 0 || at.Sub(sent[i]) < verbs.AckTimeout(3) {
			t.Errorf("try %d at %v, the one before it at %v", i+1, at, sent[i])
		}
	}
}

func TestASendWithoutAReceiveIsTriedRNRRetryTimesAgainAndWaitsAsLongAsTheNAKSays(t *testing.T) {
	for _, c := range []struct{ retry, timer uint8 }{{0, 1}, {1, 1}, {3, 9}, {6, 14}, {6, 0}} {
		l := newLab(false)
		e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) {
			a.RNRRetry, a.MinRNRTimer, a.Timeout = c.retry, c.timer, 0
		})
		var sent []loop.Time
		l.sentAt(&sent, true)
		e[0].post(t, verbs.SendWR{ID: 1, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: e[0].sge(0, 100)})
		if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.RNRRetryExcErr {
			t.Fatalf("rnr_retry %d: %v", c.retry, wc.Status)
		}
		if n := e[0].Counters().RNRRetryExceeded; n != 1 {
			t.Errorf("rnr_retry %d: counted %d that gave up, want 1", c.retry, n)
		}
		if len(sent) != int(c.retry)+1 {
			t.Errorf("rnr_retry %d: the SEND is sent %d times", c.retry, len(sent))
		}
		for i := 1; i < len(sent); i++ {
			if d, least := sent[i].Sub(sent[i-1]), verbs.RNRDelay[c.timer]; d < least || d > least+10*labDelay {
				t.Errorf("RNR timer %d: try %d after %v, the delay is %v", c.timer, i, d, least)
			}
		}
	}
}

func TestProgressGivesAllRetriesBack(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 1<<16, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.RetryCnt = 1 })
	seen := map[roce.PSN]bool{} // each packet is lost the first time
	l.wires[0].tap = func(f *link.Frame) bool {
		psn := f.Packet.BTH.PSN
		was := seen[psn]
		seen[psn] = true
		return was
	}
	e[0].post(t, e[0].write(e[1], 1, 1<<16))
	if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success {
		t.Errorf("64 packets, each lost once, with one retry: %v", wc.Status)
	}
}

func TestPacketsToAnAddressThatNobodyHasGoNowhereAndTheRequestRetriesOut(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) {
		a.AH.DGID, a.RetryCnt, a.Timeout = verbs.GID(roce.Addr4([4]byte{10, 9, 9, 9}).Netip()), 2, 3
	})
	went := 0
	l.wires[0].tap = func(f *link.Frame) bool {
		if f.Dst != link.NoDst {
			went++
		}
		return true
	}
	e[0].post(t, e[0].write(e[1], 1, 100))
	if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.RetryExcErr || went != 0 {
		t.Errorf("%v; %d packets had a destination", wc.Status, went)
	}
}

func TestAnswersToWhatIsNotOutstandingAreCountedAndChangeNothing(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.Timeout = 14 })
	held := false // the second WRITE's packet is held back
	l.wires[0].tap = func(*link.Frame) bool { return !held }
	e[0].post(t, e[0].write(e[1], 1, 100))
	l.await(t, e[0], 1)
	held = true
	e[0].post(t, e[0].write(e[1], 2, 100))
	q := e[0].qp
	for _, psn := range []roce.PSN{q.tx.una.Add(-1), q.tx.una.Add(-1000), q.tx.high, q.tx.high.Add(5)} {
		for _, s := range []roce.Syndrome{roce.ACK(31), roce.RNRNAK(5), roce.NAK(roce.NAKPSNSequenceError), roce.NAK(roce.NAKRemoteAccessError)} {
			f := e[1].frame(&e[1].qp.path, roce.RCAcknowledge, q.num, psn, 0)
			f.Packet.AETH.Syndrome = s
			before := e[0].count.GhostACKs
			e[0].Receive(f)
			if e[0].count.GhostACKs != before+1 || q.state != verbs.RTS || q.tx.waiting || len(e[0].poll()) != 0 {
				t.Errorf("%v of PSN %#x, outstanding is %#x alone: counted %d, state %v", s, psn, q.tx.una, e[0].count.GhostACKs-before, q.state)
			}
		}
	}
	held = false
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 2 || wc.Status != verbs.Success {
		t.Errorf("the WRITE: %+v", wc)
	}
}

// Between two packets that ask lie 2.7 ms of the line here, five timeouts.
func TestAMessageSlowerThanItsTimeoutIsNotSentAgain(t *testing.T) {
	for _, how := range []Recovery{GoBackN, GoBack0, SelectiveRepeat} {
		l := recovering(how, func(c *Config) { c.Rate, c.Profile.AckRequestEvery = 50e6, 16 })
		e := l.pairOf(t, verbs.RC, 1<<16, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.Timeout = 7 })
		e[0].post(t, e[0].write(e[1], 1, 1<<16))
		if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success || e[0].count.LocalAckTimeoutErr != 0 {
			t.Errorf("%s: %v after %d timeouts", how, wc.Status, e[0].count.LocalAckTimeoutErr)
		}
	}
}

func TestAStrayCopyOfAREADsRequestHarmsNobodyOnceItsWindowIsClosed(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	w := l.window(t, e[1], verbs.MWType2)
	if s := l.bind(t, e[1], e[1].qp, w, 0, 4096, verbs.RemoteRead); s != verbs.Success {
		t.Fatal(s)
	}
	var stray *link.Frame
	l.wires[0].tap = func(f *link.Frame) bool {
		if f.Packet.BTH.Opcode == roce.RCRDMAReadRequest {
			stray = l.frames.Get()
			stray.Packet, stray.Kind, stray.Len = f.Packet, f.Kind, f.Len
		}
		return true
	}
	read := e[0].write(e[1], 1, 4096)
	read.Op, read.RKey = verbs.OpRDMARead, w.key
	closing := verbs.SendWR{ID: 2, Op: verbs.OpSendWithInv, Flags: verbs.Signaled | verbs.Fence, InvRKey: w.key}
	e[1].recv(t, verbs.RecvWR{})
	e[0].post(t, read, closing)
	l.await(t, e[0], 2)
	e[1].Receive(stray)
	l.v.RunUntil(l.v.Now().Add(time.Millisecond))
	e[0].post(t, e[0].write(e[1], 3, 100))
	if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success || e[1].qp.state != verbs.RTS {
		t.Errorf("%v, the responder is in %v", wc.Status, e[1].qp.state)
	}
}
