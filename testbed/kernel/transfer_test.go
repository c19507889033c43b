//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// A transfer is WRITEs over one RC QP, posted back to back: what this room's tests need of
// traffic. Real workloads are the engine's.
type transfer struct {
	src, dst *endpoint
	size     int  // bytes of a message
	depth    int  // messages outstanding
	reads    bool // READs by src from dst instead
}

// endpoint is one side: its objects on one NIC. Its methods block, and are called off the loop.
type endpoint struct {
	loop *loop.Real
	nic  fabric.NIC
	pd   verbs.PD
	mr   verbs.MR
	mem  verbs.Memory
	cq   verbs.CQ
	qp   verbs.QP

	onCompletion func(verbs.WC) // on the loop
}

// await runs an asynchronous call on a loop and waits for its result.
func await[T any](ctx context.Context, l *loop.Real, call func(done func(T, error))) (v T, err error) {
	type result struct {
		v   T
		err error
	}
	got := make(chan result, 1)
	if err := l.Do(ctx, func() { call(func(v T, err error) { got <- result{v, err} }) }); err != nil {
		return v, err
	}
	select {
	case r := <-got:
		return r.v, r.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// awaitErr is await for calls that have no result.
func awaitErr(ctx context.Context, l *loop.Real, call func(done func(error))) error {
	_, err := await(ctx, l, func(done func(struct{}, error)) { call(func(err error) { done(struct{}{}, err) }) })
	return err
}

func newEndpoint(ctx context.Context, h *host, nic fabric.NIC, memory, depth int) (_ *endpoint, err error) {
	e := &endpoint{loop: h.loop, nic: nic}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%v: %w", nic.Port, err), e.close(context.WithoutCancel(ctx)))
		}
	}()
	if e.pd, err = await(ctx, e.loop, nic.Device.AllocPD); err != nil {
		return e, err
	}
	if err = e.loop.Do(ctx, func() { e.mem, err = nic.Device.AllocMemory(memory, verbs.HostMemory) }); err != nil {
		return e, err
	}
	e.mr, err = await(ctx, e.loop, func(done func(verbs.MR, error)) {
		e.pd.RegMR(e.mem, 0, memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead, done)
	})
	if err != nil {
		return e, err
	}
	e.cq, err = await(ctx, e.loop, func(done func(verbs.CQ, error)) { nic.Device.CreateCQ(2*depth+2, e.poll, done) })
	if err != nil {
		return e, err
	}
	e.qp, err = await(ctx, e.loop, func(done func(verbs.QP, error)) {
		e.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: depth + 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SignalAll: true}, done)
	})
	return e, err
}

// poll hands completions on and asks for the next event.
func (e *endpoint) poll(cq verbs.CQ) {
	var wcs [16]verbs.WC
	_ = cq.ReqNotify(false)
	for n := cq.Poll(wcs[:]); n > 0; n = cq.Poll(wcs[:]) {
		for _, wc := range wcs[:n] {
			e.onCompletion(wc)
		}
	}
}

// connect takes the QP to RTS. timeout is the exponent of the local ACK timeout, fabric time.
func (e *endpoint) connect(ctx context.Context, to *endpoint, timeout, retries uint8) error {
	mtu := min(e.nic.Device.Port().ActiveMTU, to.nic.Device.Port().ActiveMTU)
	const psn = 1000
	for _, step := range []struct {
		attr verbs.QPAttr
		mask verbs.QPAttrMask
	}{
		{verbs.QPAttr{State: verbs.Init, Access: verbs.RemoteWrite | verbs.RemoteRead}, verbs.MaskState | verbs.MaskAccess},
		{verbs.QPAttr{State: verbs.RTR, PathMTU: mtu, DestQPN: to.qp.Num(), RQPSN: psn, MaxDestRDAtomic: 1, MinRNRTimer: 12,
			AH: verbs.AHAttr{DGID: to.nic.GID, SGIDIndex: e.nic.GIDIndex, TrafficClass: 106}},
			verbs.MaskState | verbs.MaskAH | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN | verbs.MaskMaxDestRDAtomic | verbs.MaskMinRNRTimer},
		{verbs.QPAttr{State: verbs.RTS, SQPSN: psn, Timeout: timeout, RetryCnt: retries, RNRRetry: 6, MaxRDAtomic: 1},
			verbs.MaskState | verbs.MaskSQPSN | verbs.MaskTimeout | verbs.MaskRetryCnt | verbs.MaskRNRRetry | verbs.MaskMaxRDAtomic},
	} {
		if err := awaitErr(ctx, e.loop, func(done func(error)) { e.qp.Modify(step.attr, step.mask, done) }); err != nil {
			return fmt.Errorf("%v: connect QP: %w", e.nic.Port, err)
		}
	}
	return nil
}

func (e *endpoint) close(ctx context.Context) error {
	var errs []error
	if e.qp != nil {
		errs = append(errs, awaitErr(ctx, e.loop, e.qp.Destroy))
	}
	if e.cq != nil {
		errs = append(errs, awaitErr(ctx, e.loop, e.cq.Destroy))
	}
	if e.mr != nil {
		errs = append(errs, awaitErr(ctx, e.loop, e.mr.Dereg))
	}
	if e.mem != nil {
		errs = append(errs, e.loop.Do(ctx, func() { errs = append(errs, e.mem.Free()) }))
	}
	if e.pd != nil {
		errs = append(errs, awaitErr(ctx, e.loop, e.pd.Dealloc))
	}
	return errors.Join(errs...)
}

// newTransfer connects two NICs. timeout is the exponent of the local ACK timeout in fabric time.
func newTransfer(ctx context.Context, src, dst *host, size, depth int, timeout, retries uint8) (_ *transfer, err error) {
	t := &transfer{size: size, depth: depth}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close(context.WithoutCancel(ctx)))
		}
	}()
	if t.src, err = newEndpoint(ctx, src, src.nics[0], size, depth); err != nil {
		return t, err
	}
	if t.dst, err = newEndpoint(ctx, dst, dst.nics[0], size, depth); err != nil {
		return t, err
	}
	if err = t.src.connect(ctx, t.dst, timeout, retries); err != nil {
		return t, err
	}
	err = t.dst.connect(ctx, t.src, timeout, retries)
	return t, err
}

// run posts messages until count are done (0: no limit) or the wall time is over, and waits for
// those that are out. It returns how many arrived and how long that took.
func (t *transfer) run(ctx context.Context, count int, wall time.Duration) (messages int, took time.Duration, err error) {
	done := make(chan error, 1)
	start := time.Now()
	posted, completed := 0, 0
	op := verbs.OpRDMAWrite
	if t.reads {
		op = verbs.OpRDMARead
	}
	post := func() error {
		posted++
		return t.src.qp.PostSend(verbs.SendWR{
			ID: uint64(posted), Op: op,
			SGL:        []verbs.SGE{{Addr: t.src.mr.Addr(), Length: uint32(t.size), LKey: t.src.mr.LKey()}},
			RemoteAddr: t.dst.mr.Addr(), RKey: t.dst.mr.RKey(),
		})
	}
	more := func() bool { return (count == 0 || posted < count) && (wall == 0 || time.Since(start) < wall) }
	failed := false
	finish := func(err error) {
		if !failed {
			failed = true
			done <- err
		}
	}
	t.src.onCompletion = func(wc verbs.WC) {
		switch {
		case failed:
		case wc.Status != verbs.Success:
			finish(fmt.Errorf("%v: %v to %v: %v after %d messages", t.src.nic.Port, op, t.dst.nic.Port, wc.Status, completed))
		default:
			completed++
			if more() {
				if err := post(); err != nil {
					finish(err)
				}
			} else if completed == posted {
				finish(nil)
			}
		}
	}
	if t.dst.onCompletion == nil {
		t.dst.onCompletion = func(verbs.WC) {}
	}
	err = t.src.loop.Do(ctx, func() {
		_ = t.src.cq.ReqNotify(false)
		for range t.depth {
			if more() {
				if err := post(); err != nil {
					finish(err)
				}
			}
		}
	})
	if err != nil {
		return 0, 0, err
	}
	select {
	case err = <-done:
	case <-ctx.Done():
		err = fmt.Errorf("%v: %v to %v: %w after %d of %d messages", t.src.nic.Port, op, t.dst.nic.Port, ctx.Err(), completed, posted)
	}
	return completed, time.Since(start), err
}

func (t *transfer) close(ctx context.Context) error {
	var errs []error
	for _, e := range []*endpoint{t.src, t.dst} {
		if e != nil {
			errs = append(errs, e.close(ctx))
		}
	}
	return errors.Join(errs...)
}
