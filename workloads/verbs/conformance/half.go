package conformance

import (
	"bytes"
	"fmt"
	"math/rand"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// half is one side of a pair of QPs: its memory, what that memory must hold, its queues.
type half struct {
	t     T
	suite *Suite
	end   Endpoint
	dev   verbs.Device
	async *asyncLog

	pd       verbs.PD
	mem      verbs.Memory
	mr       verbs.MR
	want     []byte // what mem must hold
	sends    *queue
	recvs    *queue
	srq      verbs.SRQ
	qp       verbs.QP
	existing map[verbs.QP]bool
}

// memSize is the size of each half's region, bytes. It holds the largest message beside guards.
const memSize = 1 << 18

const everyAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic | verbs.MWBind

// options shape a pair. Zero values are taken as in fill.
type options struct {
	Type         verbs.QPType
	MTU          int
	Depth        int // work requests in each queue
	SGEs         int
	Inline       int
	QPAccess     verbs.Access
	NoQPAccess   bool
	SignalAll    bool
	SRQ          bool
	ManualRecv   bool // the receive CQ is armed by the case
	CQDepth      int
	Timeout      uint8
	RetryCnt     uint8
	RNRRetry     uint8
	ZeroRNRRetry bool
	MinRNRTimer  uint8
	MaxRDAtomic  int
	MaxDestRD    int
	StopB        bool          // B's QP is brought to BState only, not to RTS
	BState       verbs.QPState // with StopB
	TrafficClass uint8
}

func (o *options) fill() {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&o.MTU, 1024)
	set(&o.Depth, 64)
	set(&o.SGEs, 8)
	set(&o.MaxRDAtomic, 4)
	set(&o.MaxDestRD, 4)
	set(&o.CQDepth, 4*o.Depth)
	o.MaxDestRD = max(o.MaxDestRD, 0) // −1 asks for none
	if o.QPAccess == 0 && !o.NoQPAccess {
		o.QPAccess = verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	}
	if o.Timeout == 0 {
		o.Timeout = 17 // 0.5 s: a busy machine does not make it expire
	}
	if o.RetryCnt == 0 {
		o.RetryCnt = 6
	}
	if o.RNRRetry == 0 && !o.ZeroRNRRetry {
		o.RNRRetry = 6
	}
	if o.MinRNRTimer == 0 {
		o.MinRNRTimer = 12
	}
	if !o.StopB {
		o.BState = verbs.RTS
	}
}

// must makes a call that completes by callback and fails the case when that fails.
func must[V any](h *half, what string, start func(done func(V, error))) V {
	h.t.Helper()
	v, err := try(h, what, start)
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
	return v
}

// try makes a call that completes by callback.
func try[V any](h *half, what string, start func(done func(V, error))) (V, error) {
	h.t.Helper()
	var v V
	var err error
	if werr := h.suite.on(h.dev, func(done func()) {
		start(func(got V, e error) { v, err = got, e; done() })
	}); werr != nil {
		h.t.Fatalf("%s: %s: %v", h.dev.Name(), what, werr)
	}
	return v, err
}

// tryErr is try for calls that complete with an error alone.
func (h *half) tryErr(what string, start func(done func(error))) error {
	h.t.Helper()
	_, err := try(h, what, func(done func(struct{}, error)) {
		start(func(err error) { done(struct{}{}, err) })
	})
	return err
}

func (h *half) mustErr(what string, start func(done func(error))) {
	h.t.Helper()
	if err := h.tryErr(what, start); err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
}

// now runs fn on the loop and fails the case on its error.
func (h *half) now(what string, fn func() error) {
	h.t.Helper()
	if err := h.attempt(fn); err != nil {
		h.t.Fatalf("%s: %s: %v", h.dev.Name(), what, err)
	}
}

// attempt runs fn on the loop and returns its error.
func (h *half) attempt(fn func() error) error {
	h.t.Helper()
	var err error
	if werr := h.suite.on(h.dev, func(done func()) { err = fn(); done() }); werr != nil {
		h.t.Fatalf("%s: %v", h.dev.Name(), werr)
	}
	return err
}

// newHalf makes everything but the QP. What is made is destroyed when the case ends.
func newHalf(t T, s *Suite, host int, o *options) *half {
	t.Helper()
	end := s.ends[host]
	h := &half{t: t, suite: s, end: end, dev: end.Device, async: s.async[host], existing: map[verbs.QP]bool{}}
	h.async.clear(t)
	h.pd = must(h, "allocate PD", h.dev.AllocPD)
	h.cleanup("deallocate PD", func(done func(error)) { h.pd.Dealloc(done) })
	h.mem, h.mr = h.region(memSize, everyAccess)
	h.want = make([]byte, memSize)
	rand.New(rand.NewSource(int64(host) + 1)).Read(h.want)
	copy(h.mem.Bytes(), h.want)
	h.sends = newQueue(h, "send", o.CQDepth, false)
	h.cleanup("destroy send CQ", func(done func(error)) { h.sends.cq.Destroy(done) })
	h.recvs = newQueue(h, "receive", o.CQDepth, o.ManualRecv)
	h.cleanup("destroy receive CQ", func(done func(error)) { h.recvs.cq.Destroy(done) })
	if o.SRQ {
		h.srq = must(h, "create SRQ", func(done func(verbs.SRQ, error)) {
			h.pd.CreateSRQ(verbs.SRQInit{MaxWR: o.Depth, MaxSGE: o.SGEs}, done)
		})
		h.cleanup("destroy SRQ", func(done func(error)) { h.srq.Destroy(done) })
	}
	return h
}

// region allocates memory and registers it whole.
func (h *half) region(size int, access verbs.Access) (verbs.Memory, verbs.MR) {
	h.t.Helper()
	var mem verbs.Memory
	h.now("allocate memory", func() (err error) { mem, err = h.dev.AllocMemory(size, verbs.HostMemory); return err })
	h.t.Cleanup(func() { h.now("free memory", mem.Free) })
	mr := must(h, "register memory", func(done func(verbs.MR, error)) { h.pd.RegMR(mem, 0, size, access, done) })
	h.cleanup("deregister memory", mr.Dereg)
	return mem, mr
}

func (h *half) cleanup(what string, destroy func(done func(error))) {
	h.t.Cleanup(func() {
		if err := h.tryErr(what, destroy); err != nil {
			h.t.Errorf("clean up: %s: %v", what, err)
		}
	})
}

// newQP makes a QP on the half's queues, in RESET.
func (h *half) newQP(o *options) verbs.QP {
	h.t.Helper()
	qp := must(h, "create QP", func(done func(verbs.QP, error)) {
		h.pd.CreateQP(verbs.QPInit{
			Type: o.Type, SendCQ: h.sends.cq, RecvCQ: h.recvs.cq, SRQ: h.srq,
			MaxSendWR: o.Depth, MaxRecvWR: o.Depth, MaxSendSGE: o.SGEs, MaxRecvSGE: o.SGEs,
			MaxInlineData: o.Inline, SignalAll: o.SignalAll,
		}, done)
	})
	h.existing[qp] = true
	h.t.Cleanup(func() { h.destroyQP(qp) })
	return qp
}

func (h *half) destroyQP(qp verbs.QP) {
	h.t.Helper()
	if h.existing[qp] {
		delete(h.existing, qp)
		h.mustErr("destroy QP", qp.Destroy)
	}
}

// sgl lays pieces of the given lengths out from an offset of the half's region on, with a
// guard of a few bytes before each. It returns the list and the ranges it covers.
func (h *half) sgl(off int, lengths []int) ([]verbs.SGE, []span) {
	var list []verbs.SGE
	var spans []span
	for i, n := range lengths {
		off += 3 + i%5
		list = append(list, verbs.SGE{Addr: h.mr.Addr() + uint64(off), Length: uint32(n), LKey: h.mr.LKey()})
		spans = append(spans, span{off, n})
		off += n
	}
	return list, spans
}

// sge is one piece of the half's region.
func (h *half) sge(off, n int) []verbs.SGE {
	return []verbs.SGE{{Addr: h.mr.Addr() + uint64(off), Length: uint32(n), LKey: h.mr.LKey()}}
}

func (h *half) addr(off int) uint64 { return h.mr.Addr() + uint64(off) }

// span is a range of a half's region.
type span struct{ off, n int }

// gather is what the spans of a region must hold, in order.
func (h *half) gather(spans []span) []byte {
	var b []byte
	for _, s := range spans {
		b = append(b, h.want[s.off:s.off+s.n]...)
	}
	return b
}

// scatter says that data must be found in the spans from now on.
func (h *half) scatter(spans []span, data []byte) {
	for _, s := range spans {
		data = data[copy(h.want[s.off:s.off+s.n], data):]
	}
}

// check compares the whole region with what it must hold.
func (h *half) check(what string, args ...any) {
	h.t.Helper()
	got := h.mem.Bytes()
	if bytes.Equal(got, h.want) {
		return
	}
	first, last, wrong := -1, 0, 0
	for i := range got {
		if got[i] != h.want[i] {
			if first < 0 {
				first = i
			}
			last = i
			wrong++
		}
	}
	h.t.Fatalf("%s: memory of %s: %d bytes are wrong, from %d to %d: %#x for %#x first",
		fmt.Sprintf(what, args...), h.dev.Name(), wrong, first, last, got[first], h.want[first])
}

// settle takes what the region holds as right. It is for bytes that the specification leaves open.
func (h *half) settle(spans ...span) {
	for _, s := range spans {
		copy(h.want[s.off:s.off+s.n], h.mem.Bytes()[s.off:])
	}
}

func (h *half) send(qp verbs.QP, wrs ...verbs.SendWR) {
	h.t.Helper()
	h.now("post send", func() error { return qp.PostSend(wrs...) })
}

func (h *half) recv(qp verbs.QP, wrs ...verbs.RecvWR) {
	h.t.Helper()
	h.now("post receive", func() error {
		if h.srq != nil {
			return h.srq.PostRecv(wrs...)
		}
		return qp.PostRecv(wrs...)
	})
}

func (h *half) query(qp verbs.QP) verbs.QPAttr {
	h.t.Helper()
	return must(h, "query QP", qp.Query)
}

// state is the state that the provider believes the QP to be in.
func (h *half) state(qp verbs.QP) verbs.QPState {
	h.t.Helper()
	var st verbs.QPState
	h.now("read QP state", func() error { st = qp.State(); return nil })
	return st
}

// toErr moves a QP to ERR.
func (h *half) toErr(qp verbs.QP) {
	h.t.Helper()
	h.mustErr("modify QP to ERR", func(done func(error)) {
		qp.Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, done)
	})
}

// sees waits a little for a word of the region to become v. Only a lost packet makes it fail.
func (h *half) sees(off int, v uint64) bool {
	h.t.Helper()
	for range 500 {
		if h.word(off) == v {
			return true
		}
		h.pause()
	}
	return false
}

// time is the loop's.
func (h *half) time() loop.Time {
	h.t.Helper()
	var now loop.Time
	h.now("read the clock", func() error { now = h.dev.Loop().Now(); return nil })
	return now
}

// pause lets the loop run for a little while, in fabric time.
func (h *half) pause() {
	h.t.Helper()
	if err := h.suite.on(h.dev, func(done func()) { loop.After(h.dev.Loop(), pollEvery, done) }); err != nil {
		h.t.Fatalf("%s: %v", h.dev.Name(), err)
	}
}
