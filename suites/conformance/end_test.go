//go:build linux

package conformance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/workloads/verbs"
	"github.com/rocebed/rocebed/workloads/verbs/ibv"
)

// end is one side of a benchmark: a QP with a CQ and a region.
type end struct {
	dev  verbs.Device
	loop loop.Loop
	gid  verbs.GID
	sgid int
	mr   verbs.MR
	cq   verbs.CQ
	qp   verbs.QP

	onWC func(verbs.WC) // on the loop
	wcs  [32]verbs.WC
}

// call runs an asynchronous call on a loop and waits for its result.
func call[V any](b *testing.B, l loop.Loop, start func(done func(V, error))) V {
	b.Helper()
	var v V
	err := bed.Wait("call", func(done func(error)) {
		l.Post(func() { start(func(got V, err error) { v = got; done(err) }) })
	})
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func callErr(b *testing.B, l loop.Loop, start func(done func(error))) {
	b.Helper()
	call(b, l, func(done func(struct{}, error)) { start(func(err error) { done(struct{}{}, err) }) })
}

func newEnd(b *testing.B, f *kernel.Fabric, host, size int) *end {
	b.Helper()
	h := f.Hosts()[host]
	nic := h.NICs()[0]
	d, err := ibv.Open(h.Loop(), f.DeviceName(nic.Port), ibv.Options{Dilation: f.Dilation()})
	if err != nil {
		b.Fatal(err)
	}
	e := &end{dev: d, loop: h.Loop(), gid: nic.GID, sgid: nic.GIDIndex}
	b.Cleanup(func() { callErr(b, e.loop, d.Close) })
	pd := call(b, e.loop, d.AllocPD)
	mem := call(b, e.loop, func(done func(verbs.Memory, error)) { done(d.AllocMemory(size, verbs.HostMemory)) })
	e.mr = call(b, e.loop, func(done func(verbs.MR, error)) {
		pd.RegMR(mem, 0, size, verbs.LocalWrite|verbs.RemoteWrite, done)
	})
	e.cq = call(b, e.loop, func(done func(verbs.CQ, error)) { d.CreateCQ(512, e.poll, done) })
	callErr(b, e.loop, func(done func(error)) { done(e.cq.ReqNotify(false)) })
	e.qp = call(b, e.loop, func(done func(verbs.QP, error)) {
		pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}, done)
	})
	return e
}

func (e *end) poll(cq verbs.CQ) {
	e.drain()
	// What came between the last poll and the request makes no event: poll again.
	if cq.ReqNotify(false) == nil {
		e.drain()
	}
}

func (e *end) drain() {
	for n := e.cq.Poll(e.wcs[:]); n > 0; n = e.cq.Poll(e.wcs[:]) {
		for _, wc := range e.wcs[:n] {
			e.onWC(wc)
		}
	}
}

// join connects the two QPs.
func join(b *testing.B, x, y *end) {
	b.Helper()
	for _, p := range [][2]*end{{x, y}, {y, x}} {
		e, peer := p[0], p[1]
		for _, s := range []struct {
			a verbs.QPAttr
			m verbs.QPAttrMask
		}{
			{verbs.QPAttr{State: verbs.Init, Access: verbs.RemoteWrite}, verbs.MaskState | verbs.MaskAccess},
			{verbs.QPAttr{State: verbs.RTR, PathMTU: 4096, DestQPN: peer.qp.Num(), MaxDestRDAtomic: 1, MinRNRTimer: 12, AH: verbs.AHAttr{DGID: peer.gid, SGIDIndex: e.sgid}},
				verbs.MaskState | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN | verbs.MaskMaxDestRDAtomic | verbs.MaskMinRNRTimer | verbs.MaskAH},
			{verbs.QPAttr{State: verbs.RTS, Timeout: 20, RetryCnt: 6, RNRRetry: 7, MaxRDAtomic: 1},
				verbs.MaskState | verbs.MaskSQPSN | verbs.MaskTimeout | verbs.MaskRetryCnt | verbs.MaskRNRRetry | verbs.MaskMaxRDAtomic},
		} {
			callErr(b, e.loop, func(done func(error)) { e.qp.Modify(s.a, s.m, done) })
		}
	}
}

// signalEvery is how many requests share a completion in a stream.
const signalEvery = 16

// stream posts count requests, at most depth outstanding, and says how long they took.
func (e *end) stream(b *testing.B, wr verbs.SendWR, count, depth int) time.Duration {
	b.Helper()
	begun := time.Now()
	err := bed.Wait("stream", func(done func(error)) {
		posted, completed := 0, 0
		var batch []verbs.SendWR
		pump := func() {
			batch = batch[:0]
			for posted < count && posted-completed < depth {
				posted++
				wr.ID, wr.Flags = uint64(posted), 0
				if posted%signalEvery == 0 || posted == count {
					wr.Flags = verbs.Signaled
				}
				batch = append(batch, wr)
			}
			if err := e.qp.PostSend(batch...); err != nil {
				done(err)
			}
		}
		e.onWC = func(wc verbs.WC) {
			if wc.Status != verbs.Success {
				done(fmt.Errorf("request %d: %v", wc.ID, wc.Status))
				return
			}
			if completed = int(wc.ID); completed == count {
				done(nil)
				return
			}
			pump()
		}
		e.loop.Post(pump)
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

// recv is the list of one receive of a ping-pong.
func (e *end) recv() []verbs.RecvWR {
	return []verbs.RecvWR{{ID: 1, SGL: []verbs.SGE{{Addr: e.mr.Addr() + 64, Length: 8, LKey: e.mr.LKey()}}}}
}

// pingPong sends eight bytes to and fro, inline. Each side has a receive posted before and after.
func pingPong(b *testing.B, x, y *end, rounds int) time.Duration {
	b.Helper()
	ping := func(e *end) []verbs.SendWR {
		return []verbs.SendWR{{ID: 2, Op: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, SGL: []verbs.SGE{{Addr: e.mr.Addr(), Length: 8}}}}
	}
	begun := time.Now()
	err := bed.Wait("ping-pong", func(done func(error)) {
		// answer posts the next receive and, while there is more to say, the next ping.
		answer := func(e *end, more func() bool) func(verbs.WC) {
			recv, send := e.recv(), ping(e)
			return func(wc verbs.WC) {
				if wc.Status != verbs.Success {
					done(fmt.Errorf("%v", wc.Status))
					return
				}
				if wc.Op != verbs.WCRecv {
					return
				}
				err := e.qp.PostRecv(recv...)
				if err == nil && more() {
					err = e.qp.PostSend(send...)
				}
				if err != nil {
					done(err)
				}
			}
		}
		n := 0
		answerX := answer(x, func() bool {
			if n++; n == rounds {
				done(nil)
			}
			return n < rounds
		})
		first := ping(x)
		y.loop.Post(func() {
			y.onWC = answer(y, func() bool { return true })
			x.loop.Post(func() {
				x.onWC = answerX
				if err := x.qp.PostSend(first...); err != nil {
					done(err)
				}
			})
		})
	})
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}
