package torture

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// call makes a call that completes by callback and waits for it.
func call[V any](t *bed, what string, start func(done func(V, error))) (V, error) {
	var v V
	var err error
	over := false
	start(func(got V, e error) { v, err, over = got, e, true })
	if e := t.until(time.Second, func() bool { return over }); e != nil {
		err = e
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return v, err
}

func callErr(t *bed, what string, start func(done func(error))) error {
	_, err := call(t, what, func(done func(struct{}, error)) { start(func(err error) { done(struct{}{}, err) }) })
	return err
}

const everyAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic | verbs.MWBind

// prepare makes everything and connects it.
func (t *pair) prepare() error {
	for _, h := range t.hosts {
		if err := h.build(); err != nil {
			return err
		}
	}
	for _, to := range []verbs.QPState{verbs.Init, verbs.RTR, verbs.RTS} {
		for _, h := range t.hosts {
			if err := h.modify(to); err != nil {
				return err
			}
		}
	}
	t.connected = true
	for _, h := range t.hosts {
		if err := h.open(); err != nil {
			return err
		}
	}
	return nil
}

// start has the work begin, on wires that are bad from now on.
func (t *pair) start() {
	t.started = true
	for i, h := range t.hosts {
		t.wires[i].faults = t.bed.plan.faults[i]
		h.give()
		h.pump()
	}
}

func (h *host) build() (err error) {
	t, p, r := h.r.bed, h.r.plan, h.r
	if h.pd, err = call(t, "allocate PD", h.dev.AllocPD); err != nil {
		return err
	}
	depth := len(h.mine.ops) + len(h.theirs.recvs) + windows + 1
	if h.cq, err = call(t, "create CQ", func(done func(verbs.CQ, error)) { h.dev.CreateCQ(depth, h.onEvent, done) }); err != nil {
		return err
	}
	if err := h.cq.ReqNotify(false); err != nil {
		return err
	}
	access := everyAccess
	if n := len(r.w.begin[h.i]); p.phantom {
		v, err := h.dev.AllocPhantom(n, verbs.GPUMemory)
		if err != nil {
			return err
		}
		v.Stamp(0, n, uint64(1+h.i), 0)
		h.mem, access = v, access&^verbs.RemoteAtomic
	} else {
		if h.mem, err = h.dev.AllocMemory(n, verbs.HostMemory); err != nil {
			return err
		}
		copy(h.mem.Bytes(), r.w.begin[h.i])
	}
	if h.mr, err = call(t, "register memory", func(done func(verbs.MR, error)) { h.pd.RegMR(h.mem, 0, h.mem.Len(), access, done) }); err != nil {
		return err
	}
	init := verbs.QPInit{
		Type: p.kind, SendCQ: h.cq, RecvCQ: h.cq, MaxSendWR: max(p.depth, windows), MaxRecvWR: p.depth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64,
	}
	if p.srq {
		if h.srq, err = call(t, "create SRQ", func(done func(verbs.SRQ, error)) {
			h.pd.CreateSRQ(verbs.SRQInit{MaxWR: p.depth, MaxSGE: 4}, done)
		}); err != nil {
			return err
		}
		init.SRQ = h.srq
	}
	h.qp, err = call(t, "create QP", func(done func(verbs.QP, error)) { h.pd.CreateQP(init, done) })
	return err
}

// modify takes the QP to its next state.
func (h *host) modify(to verbs.QPState) error {
	t, p, r := h.r.bed, h.r.plan, h.r
	peer := r.hosts[1-h.i]
	a := p.attr
	a.State = to
	a.AH = verbs.AHAttr{DGID: peer.addr.Netip(), TrafficClass: 106}
	a.DestQPN, a.RQPSN, a.SQPSN = peer.qp.Num(), uint32(p.psn[1-h.i]), uint32(p.psn[h.i])
	rc, ud := p.kind == verbs.RC, p.kind == verbs.UD
	mask := verbs.MaskState
	switch {
	case to == verbs.Init && ud:
		mask |= verbs.MaskQKey
	case to == verbs.Init:
		mask |= verbs.MaskAccess
	case to == verbs.RTR && rc:
		mask |= verbs.MaskMaxDestRDAtomic | verbs.MaskMinRNRTimer
		fallthrough
	case to == verbs.RTR && !ud:
		mask |= verbs.MaskAH | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN
	case to == verbs.RTS && rc:
		mask |= verbs.MaskTimeout | verbs.MaskRetryCnt | verbs.MaskRNRRetry | verbs.MaskMaxRDAtomic
		fallthrough
	case to == verbs.RTS:
		mask |= verbs.MaskSQPSN
	}
	return callErr(t, "modify QP to "+to.String(), func(done func(error)) { h.qp.Modify(a, mask, done) })
}

// open makes what the peer's requests go through.
func (h *host) open() (err error) {
	t, p, r := h.r.bed, h.r.plan, h.r
	if p.kind == verbs.UD {
		h.ah, err = call(t, "create AH", func(done func(verbs.AH, error)) {
			h.pd.CreateAH(verbs.AHAttr{DGID: r.hosts[1-h.i].addr.Netip()}, done)
		})
		return err
	}
	if p.kind != verbs.RC {
		return nil
	}
	for i := range h.mws {
		if h.mws[i], err = call(t, "allocate window", func(done func(verbs.MW, error)) { h.pd.AllocMW(verbs.MWType2, done) }); err != nil {
			return err
		}
		b := verbs.BindMW{MW: h.mws[i], MR: h.mr, Addr: h.mem.Addr() + sourceLen, Length: uint64(p.target), Access: everyAccess &^ (verbs.LocalWrite | verbs.MWBind)}
		if err := h.qp.PostSend(verbs.SendWR{ID: bindID + uint64(i), Op: verbs.OpBindMW, Flags: verbs.Signaled, Bind: &b}); err != nil {
			return err
		}
	}
	return t.until(time.Second, func() bool { return h.bound == windows })
}
