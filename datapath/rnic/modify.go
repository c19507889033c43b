package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// masks are the attributes that a transition needs and those that it may have besides.
type masks struct{ needs, may [3]verbs.QPAttrMask }

// transitions are the legal ones between states that aren't RESET or ERR, both of which any state may
// go to, and their attributes (InfiniBand specification 11.2.5.2, tables 91 to 98; P_Key, port and
// alternate path are not ours).
var transitions = map[[2]verbs.QPState]masks{
	{verbs.Reset, verbs.Init}: {needs: by(verbs.MaskAccess, verbs.MaskAccess, verbs.MaskQKey)},
	{verbs.Init, verbs.Init}:  {may: by(verbs.MaskAccess, verbs.MaskAccess, verbs.MaskQKey)},
	{verbs.Init, verbs.RTR}: {
		needs: by(connects|verbs.MaskMaxDestRDAtomic|verbs.MaskMinRNRTimer, connects, 0),
		may:   by(verbs.MaskAccess, verbs.MaskAccess, verbs.MaskQKey),
	},
	{verbs.RTR, verbs.RTS}: {
		needs: by(verbs.MaskSQPSN|verbs.MaskTimeout|verbs.MaskRetryCnt|verbs.MaskRNRRetry|verbs.MaskMaxRDAtomic, verbs.MaskSQPSN, verbs.MaskSQPSN),
		may:   by(verbs.MaskCurState|verbs.MaskAccess|verbs.MaskMinRNRTimer, verbs.MaskCurState|verbs.MaskAccess, verbs.MaskCurState|verbs.MaskQKey),
	},
	{verbs.RTS, verbs.RTS}: {may: running},
	{verbs.SQD, verbs.RTS}: {may: running},
	{verbs.SQE, verbs.RTS}: {may: by(0, verbs.MaskCurState|verbs.MaskAccess, verbs.MaskCurState|verbs.MaskQKey)},
	{verbs.RTS, verbs.SQD}: {may: by(verbs.MaskSQDAsyncNotify, verbs.MaskSQDAsyncNotify, verbs.MaskSQDAsyncNotify)},
	{verbs.SQD, verbs.SQD}: {may: by(
		verbs.MaskAH|verbs.MaskTimeout|verbs.MaskRetryCnt|verbs.MaskRNRRetry|verbs.MaskMaxRDAtomic|verbs.MaskMaxDestRDAtomic|verbs.MaskAccess|verbs.MaskMinRNRTimer,
		verbs.MaskAH|verbs.MaskAccess, verbs.MaskQKey)},
}

const connects = verbs.MaskAH | verbs.MaskPathMTU | verbs.MaskDestQPN | verbs.MaskRQPSN

var running = by(verbs.MaskCurState|verbs.MaskAccess|verbs.MaskMinRNRTimer, verbs.MaskCurState|verbs.MaskAccess, verbs.MaskCurState|verbs.MaskQKey)

// by makes the masks of the three transports.
func by(rc, uc, ud verbs.QPAttrMask) [3]verbs.QPAttrMask {
	return [3]verbs.QPAttrMask{verbs.RC: rc, verbs.UC: uc, verbs.UD: ud}
}

// Modify implements verbs.QP. Without MaskState the state stays.
func (q *qp) Modify(attr verbs.QPAttr, mask verbs.QPAttrMask, done func(error)) {
	to := q.state
	if mask&verbs.MaskState != 0 {
		to = attr.State
	}
	op := fmt.Sprintf("%s from %v to %v", q.name("modify"), q.state, to)
	err := q.ok()
	if err == nil {
		err = q.modify(&attr, mask, to)
	}
	q.dev.fails(op, err, done)
}

func (q *qp) modify(a *verbs.QPAttr, mask verbs.QPAttrMask, to verbs.QPState) error {
	mask &^= verbs.MaskState
	switch {
	case mask&verbs.MaskCurState != 0 && a.CurState != q.state:
		return fmt.Errorf("%w: it isn't in %v", ErrState, a.CurState)
	case (to == verbs.Reset || to == verbs.Err) && mask&^verbs.MaskCurState != 0:
		return fmt.Errorf("%w: %v has no place here", ErrInvalid, mask&^verbs.MaskCurState)
	case to == verbs.Reset:
		q.reset()
		return nil
	case to == verbs.Err:
		q.fail(q.dev.loop.Now())
		q.state = verbs.Err
		return nil
	}
	m, ok := transitions[[2]verbs.QPState{q.state, to}]
	switch {
	case !ok, q.kind == verbs.RC && q.state == verbs.SQE:
		return fmt.Errorf("%w: there is no such transition", ErrState)
	case q.state == verbs.SQD && !q.tx.idle():
		return fmt.Errorf("%w: the send queue is draining", ErrState)
	case m.needs[q.kind]&^mask != 0:
		return fmt.Errorf("%w: it needs %v", ErrInvalid, m.needs[q.kind]&^mask)
	case mask&^(m.needs[q.kind]|m.may[q.kind]) != 0:
		return fmt.Errorf("%w: %v has no place here", ErrInvalid, mask&^(m.needs[q.kind]|m.may[q.kind]))
	}
	if err := q.checkAttr(a, mask); err != nil {
		return err
	}
	if to == verbs.RTR && q.kind == verbs.RC && q.dev.cfg.Profile.Recovery == SelectiveRepeat {
		if err := q.agree(a); err != nil {
			return err
		}
	}
	q.set(a, mask)
	from := q.state
	q.state = to
	switch {
	case to == verbs.RTS && from != verbs.RTS:
		q.tx.resume()
	case to == verbs.SQD && from == verbs.RTS:
		q.tx.drain(mask&verbs.MaskSQDAsyncNotify != 0 && a.SQDAsyncNotify)
	}
	return nil
}

func (q *qp) checkAttr(a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	has := func(m verbs.QPAttrMask) bool { return mask&m != 0 }
	bad := func(what string, v any) error { return fmt.Errorf("%w: %s %v", ErrInvalid, what, v) }
	switch {
	case has(verbs.MaskPathMTU) && (a.PathMTU < 256 || a.PathMTU > q.dev.mtu || a.PathMTU&(a.PathMTU-1) != 0):
		return bad(fmt.Sprintf("the port's MTU is %d, the path's", q.dev.mtu), a.PathMTU)
	case has(verbs.MaskRQPSN) && a.RQPSN > uint32(roce.PSNMask):
		return bad("receive PSN", a.RQPSN)
	case has(verbs.MaskSQPSN) && a.SQPSN > uint32(roce.PSNMask):
		return bad("send PSN", a.SQPSN)
	case has(verbs.MaskDestQPN) && a.DestQPN > 0xffffff:
		return bad("destination QP", a.DestQPN)
	case has(verbs.MaskMaxRDAtomic) && (a.MaxRDAtomic < 0 || a.MaxRDAtomic > maxRDAtomic):
		return bad("max_rd_atomic", a.MaxRDAtomic)
	case has(verbs.MaskMaxDestRDAtomic) && (a.MaxDestRDAtomic < 0 || a.MaxDestRDAtomic > maxRDAtomic):
		return bad("max_dest_rd_atomic", a.MaxDestRDAtomic)
	case has(verbs.MaskMinRNRTimer) && a.MinRNRTimer > 31:
		return bad("RNR timer", a.MinRNRTimer)
	case has(verbs.MaskTimeout) && a.Timeout > verbs.MaxTimeout:
		return bad("timeout", a.Timeout)
	case has(verbs.MaskRetryCnt) && a.RetryCnt > 7:
		return bad("retry_cnt", a.RetryCnt)
	case has(verbs.MaskRNRRetry) && a.RNRRetry > 7:
		return bad("rnr_retry", a.RNRRetry)
	case has(verbs.MaskAH):
		return q.dev.checkAH(&a.AH)
	}
	return nil
}

// set takes over the attributes of a mask.
func (q *qp) set(a *verbs.QPAttr, mask verbs.QPAttrMask) {
	b := &q.attr
	for _, s := range []struct {
		m  verbs.QPAttrMask
		do func()
	}{
		{verbs.MaskAccess, func() { b.Access = a.Access }},
		{verbs.MaskQKey, func() { b.QKey = a.QKey }},
		{verbs.MaskPathMTU, func() { b.PathMTU, q.mtu = a.PathMTU, uint32(a.PathMTU) }},
		{verbs.MaskTimeout, func() { b.Timeout = a.Timeout }},
		{verbs.MaskRetryCnt, func() { b.RetryCnt = a.RetryCnt }},
		{verbs.MaskRNRRetry, func() { b.RNRRetry = a.RNRRetry }},
		{verbs.MaskRQPSN, func() { b.RQPSN = a.RQPSN; q.rx.begin(roce.PSN(a.RQPSN)) }},
		{verbs.MaskMaxRDAtomic, func() { b.MaxRDAtomic = a.MaxRDAtomic }},
		{verbs.MaskMinRNRTimer, func() { b.MinRNRTimer = a.MinRNRTimer }},
		{verbs.MaskSQPSN, func() { b.SQPSN = a.SQPSN; q.tx.begin(roce.PSN(a.SQPSN)) }},
		{verbs.MaskMaxDestRDAtomic, func() { b.MaxDestRDAtomic = a.MaxDestRDAtomic; q.rx.resources(a.MaxDestRDAtomic) }},
		{verbs.MaskDestQPN, func() { b.DestQPN = a.DestQPN }},
		{verbs.MaskAH, func() {
			q.path.set(q.dev, &a.AH)
			b.AH = a.AH
			b.AH.HopLimit = q.path.hops
		}},
	} {
		if mask&s.m != 0 {
			s.do()
		}
	}
	if mask&(verbs.MaskAH|verbs.MaskDestQPN) != 0 {
		q.path.connect(q.dev, q.num, b.DestQPN)
		q.tx.port.priority, q.rx.port.priority = q.path.priority, q.path.priority
	}
}

// agree makes the QP one that repeats selectively, if its peer's device knows what that is. InfiniBand's packets can't say
// it, so whoever connects devices does.
func (q *qp) agree(a *verbs.QPAttr) error {
	var t path
	t.set(q.dev, &a.AH)
	if t.dst != link.NoDst && !t.selective {
		return fmt.Errorf("%w: the profile %q repeats selectively, and the device at %v doesn't: give both ends the recovery %q, or neither",
			ErrUnsupported, q.dev.cfg.Profile.Name, a.AH.DGID, SelectiveRepeat)
	}
	q.selective = true
	return nil
}
