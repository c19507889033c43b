package rnic

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// A Modify with whatever it is given changes the state as the specification allows, or nothing at all.
func TestAModifyThatFailsChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := newLab(false)
	d, err := l.open(0)
	if err != nil {
		t.Fatal(err)
	}
	legal := map[[2]verbs.QPState]bool{}
	for from, tos := range map[verbs.QPState][]verbs.QPState{
		verbs.Reset: {verbs.Init}, verbs.Init: {verbs.Init, verbs.RTR}, verbs.RTR: {verbs.RTS}, verbs.RTS: {verbs.RTS, verbs.SQD},
		verbs.SQD: {verbs.RTS, verbs.SQD}, verbs.SQE: {verbs.RTS},
	} {
		for _, to := range tos {
			legal[[2]verbs.QPState{from, to}] = true
		}
	}
	moved := map[[2]verbs.QPState]int{}
	for _, kind := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD} {
		e := l.endOf(t, d, kind, 64, nil, 0)
		for range 60000 {
			from := e.qp.state
			to := verbs.QPState(rng.IntN(8))
			a := verbs.QPAttr{
				State: to, CurState: verbs.QPState(rng.IntN(7)), PathMTU: 256 << rng.IntN(5), RQPSN: rng.Uint32() >> 7, SQPSN: rng.Uint32() >> 8,
				MaxRDAtomic: rng.IntN(4), MaxDestRDAtomic: rng.IntN(4) - 1, Timeout: uint8(rng.IntN(33)), RetryCnt: uint8(rng.IntN(8)),
				AH: verbs.AHAttr{DGID: l.addrs[1].Netip()},
			}
			mask := verbs.QPAttrMask(rng.Uint32()) & (1<<16 - 1)
			if m, ok := transitions[[2]verbs.QPState{from, to}]; ok && rng.IntN(3) > 0 {
				mask = verbs.MaskState | m.needs[kind] | mask&m.may[kind]
			} else if (to == verbs.Reset || to == verbs.Err) && rng.IntN(3) > 0 {
				mask = verbs.MaskState
			}
			was := e.qp.attr
			what := &verbs.QPAttr{}
			*what = a
			to2 := from
			if mask&verbs.MaskState != 0 {
				to2 = to
			}
			err := e.qp.modify(what, mask, to2)
			switch {
			case err != nil && (e.qp.state != from || e.qp.attr != was):
				t.Fatalf("%v from %v to %v with %v: %v, and it is in %v with %+v", kind, from, to2, mask, err, e.qp.state, e.qp.attr)
			case err != nil:
			case to2 == verbs.Reset || to2 == verbs.Err:
				if extra := mask &^ (verbs.MaskState | verbs.MaskCurState); extra != 0 {
					t.Fatalf("%v went to %v with %v", kind, to2, extra)
				}
			case !legal[[2]verbs.QPState{from, to2}] || kind == verbs.RC && from == verbs.SQE:
				t.Fatalf("%v went from %v to %v", kind, from, to2)
			default:
				moved[[2]verbs.QPState{from, to2}]++
			}
			if rng.IntN(20) == 0 && e.qp.state == verbs.RTS && kind != verbs.RC {
				e.qp.state = verbs.SQE
			}
		}
	}
	for tr := range legal {
		if moved[tr] < 10 {
			t.Errorf("from %v to %v only %d times", tr[0], tr[1], moved[tr])
		}
	}
}

func TestSQDFinishesWhatWasBegunAndBeginsNothing(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 1<<16, nil)
	var events []verbs.AsyncEventType
	e[0].OnAsync(func(ev verbs.AsyncEvent) { events = append(events, ev.Type) })
	e[0].post(t, e[0].write(e[1], 1, 1<<16), e[0].write(e[1], 2, 100))
	q := e[0].qp
	ask := func(a verbs.QPAttr, mask verbs.QPAttrMask) (err error) {
		over := false
		q.Modify(a, mask|verbs.MaskState, func(got error) { err, over = got, true })
		l.settle(t, func() bool { return over })
		return err
	}
	if err := ask(verbs.QPAttr{State: verbs.SQD, SQDAsyncNotify: true}, verbs.MaskSQDAsyncNotify); err != nil {
		t.Fatal(err)
	}
	if len(events) != 0 || q.tx.idle() {
		t.Fatal("a queue with a message half sent has drained")
	}
	if err := ask(verbs.QPAttr{State: verbs.RTS}, 0); err == nil {
		t.Error("a queue that drains was taken to RTS")
	}
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 1 || wc.Status != verbs.Success {
		t.Fatalf("%+v", wc)
	}
	l.settle(t, func() bool { return len(events) > 0 })
	l.v.RunUntil(l.v.Now().Add(time.Millisecond))
	if wcs := e[0].poll(); len(wcs) != 0 || len(events) != 1 || events[0] != verbs.EventSQDrained {
		t.Errorf("in SQD: completions %+v, events %v", wcs, events)
	}
	if err := ask(verbs.QPAttr{State: verbs.RTS}, 0); err != nil {
		t.Fatal(err)
	}
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 2 || wc.Status != verbs.Success {
		t.Errorf("%+v", wc)
	}
}

func TestAnUnreliableQPWhoseSendFailsGoesToSQEAndStillReceives(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.UC, 4096, nil)
	bad := e[0].write(e[1], 1, 100)
	bad.SGL[0].LKey++
	e[0].post(t, bad, e[0].write(e[1], 2, 100))
	wcs := l.await(t, e[0], 2)
	if wcs[0].Status != verbs.LocProtErr || wcs[1].Status != verbs.WRFlushErr || e[0].qp.state != verbs.SQE {
		t.Fatalf("%v and %v, in %v", wcs[0].Status, wcs[1].Status, e[0].qp.state)
	}
	e[0].post(t, e[0].write(e[1], 3, 100))
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 3 || wc.Status != verbs.WRFlushErr {
		t.Errorf("posted in SQE: %+v", wc)
	}
	e[0].recv(t, verbs.RecvWR{ID: 9, SGL: e[0].sge(0, 100)})
	e[1].post(t, verbs.SendWR{Op: verbs.OpSend, SGL: e[1].sge(0, 50)})
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 9 || wc.Status != verbs.Success {
		t.Errorf("received in SQE: %+v", wc)
	}
	e[0].qp.Modify(verbs.QPAttr{State: verbs.RTS}, verbs.MaskState, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	e[0].post(t, e[0].write(e[1], 4, 100))
	if wc := l.await(t, e[0], 1)[0]; wc.ID != 4 || wc.Status != verbs.Success {
		t.Errorf("back in RTS: %+v", wc)
	}
}
