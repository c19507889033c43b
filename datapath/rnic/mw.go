package rnic

import (
	"github.com/rocebed/rocebed/workloads/verbs"
)

// mw is a memory window. Type 1 is bound as often as one likes, type 2 only when it is not bound,
// and then opens for the QP alone that bound it (type 2A, 10.6.7.2).
type mw struct {
	object
	pd    *pd
	kind  verbs.MWType
	bound *region // nil: to nothing
	mr    *mr     // what it is bound to
	key   uint32  // the last that it had
}

// AllocMW implements verbs.PD.
func (p *pd) AllocMW(kind verbs.MWType, done func(verbs.MW, error)) {
	const op = "allocate memory window"
	err := p.ok()
	if err == nil && kind != verbs.MWType1 && kind != verbs.MWType2 {
		err = ErrInvalid
	}
	if err != nil {
		answer[verbs.MW](p.dev, op, nil, err, done)
		return
	}
	p.uses++
	answer[verbs.MW](p.dev, op, &mw{object: object{dev: p.dev}, pd: p, kind: kind}, nil, done)
}

func (w *mw) RKey() uint32 { return w.key }

// Dealloc implements verbs.MW.
func (w *mw) Dealloc(done func(error)) {
	w.kill("deallocate memory window", func() { w.unbind(); w.pd.uses-- }, done)
}

// bind makes the window stand for what b says, and says whether it may (10.6.7.2.1).
func (w *mw) bind(q *qp, b *bindMW) bool {
	r := b.mr
	writes := b.access&(verbs.RemoteWrite|verbs.RemoteAtomic) != 0
	switch {
	case w.ok() != nil, w.pd != q.pd, r == nil, r.ok() != nil, r.pd != q.pd,
		w.kind == verbs.MWType2 && w.bound != nil,
		r.access&verbs.MWBind == 0,
		writes && r.access&verbs.LocalWrite == 0,
		!r.holds(b.addr, b.length):
		return false
	}
	w.unbind()
	if b.length == 0 && w.kind == verbs.MWType1 {
		return true // 10.6.7.2.3: no bytes close it
	}
	n := &region{pd: q.pd, addr: b.addr, len: b.length, access: b.access, mem: r.mem, off: r.off + b.addr - r.addr, mw: w}
	if b.access&verbs.ZeroBased != 0 {
		n.addr = 0
	}
	if w.kind == verbs.MWType2 {
		n.qp = q
	}
	if !w.dev.keys.add(n) {
		return false
	}
	w.bound, w.mr, w.key = n, r, n.key
	r.uses++
	return true
}

// unbind closes the window.
func (w *mw) unbind() {
	if w.bound != nil {
		w.dev.keys.remove(w.bound)
		w.mr.uses--
		w.bound, w.mr = nil, nil
	}
}

// invalidate closes the type 2 window with a key, and says whether it may: the QP must be the one that it
// opens for.
func (q *qp) invalidate(key uint32) bool {
	r := q.dev.keys.find(key)
	if r == nil || r.mw == nil || r.qp != q {
		return false
	}
	r.mw.unbind()
	return true
}
