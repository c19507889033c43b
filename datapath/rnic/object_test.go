package rnic

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// wait makes a call that completes by callback with an error alone.
func (l *lab) wait(t testing.TB, start func(func(error))) (err error) {
	t.Helper()
	over := false
	start(func(got error) { err, over = got, true })
	l.settle(t, func() bool { return over })
	return err
}

func (l *lab) window(t testing.TB, e *end, kind verbs.MWType) (w *mw) {
	t.Helper()
	e.pd.AllocMW(kind, func(m verbs.MW, err error) {
		if err != nil {
			t.Fatal(err)
		}
		w = m.(*mw)
	})
	l.settle(t, func() bool { return w != nil })
	return w
}

// bind binds a window of an end's to part of its region, on a QP, and says how that completed.
func (l *lab) bind(t testing.TB, e *end, q *qp, w *mw, off, n int, access verbs.Access) verbs.Status {
	t.Helper()
	b := verbs.BindMW{MW: w, MR: e.mr, Addr: e.mem.addr + uint64(off), Length: uint64(n), Access: access}
	if err := q.PostSend(verbs.SendWR{ID: 60, Op: verbs.OpBindMW, Flags: verbs.Signaled, Bind: &b}); err != nil {
		t.Fatal(err)
	}
	return l.await(t, e, 1)[0].Status
}

func TestAType2WindowIsBoundOnceAndOpensForItsQPAlone(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	w := l.window(t, e[1], verbs.MWType2)
	if s := l.bind(t, e[1], e[1].qp, w, 0, 100, verbs.RemoteWrite); s != verbs.Success {
		t.Fatal(s)
	}
	if err := l.wait(t, e[1].mr.Dereg); !errors.Is(err, ErrInUse) {
		t.Errorf("the region of a bound window was deregistered: %v", err)
	}
	// Another pair of QPs of the same protection domains.
	var other [2]*end
	for i := range other {
		other[i] = &end{Device: e[i].Device, pd: e[i].pd, cq: e[i].cq, mem: e[i].mem, mr: e[i].mr}
		e[i].pd.CreateQP(e[i].qp.init, func(q verbs.QP, err error) { other[i].qp = q.(*qp) })
	}
	l.settle(t, func() bool { return other[0].qp != nil && other[1].qp != nil })
	l.connect(t, other, verbs.RC, nil)
	wr := e[0].write(e[1], 1, 50)
	wr.RKey = w.key
	other[0].post(t, wr)
	if wc := l.await(t, other[0], 1)[0]; wc.Status != verbs.RemAccessErr {
		t.Errorf("through another QP: %v", wc.Status)
	}
	e[0].post(t, wr)
	if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success {
		t.Errorf("through its own QP: %v", wc.Status)
	}
	if s := l.bind(t, e[1], e[1].qp, w, 0, 50, verbs.RemoteWrite); s != verbs.MWBindErr {
		t.Errorf("bound twice: %v", s)
	}
}

func TestAType1WindowIsClosedByABindingOfNoBytes(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	w := l.window(t, e[1], verbs.MWType1)
	for _, n := range []int{100, 200, 0} {
		if s := l.bind(t, e[1], e[1].qp, w, 0, n, verbs.RemoteWrite); s != verbs.Success {
			t.Fatalf("%d bytes: %v", n, s)
		}
	}
	if e[1].mr.uses != 0 {
		t.Errorf("the region is used by %d windows", e[1].mr.uses)
	}
	wr := e[0].write(e[1], 1, 50)
	wr.RKey = w.key
	e[0].post(t, wr)
	if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.RemAccessErr {
		t.Errorf("through a closed window: %v", wc.Status)
	}
}

// Keys are used again at last, but one that was given back does not soon stand for another region.
func TestAKeyThatWasGivenBackIsNoLongerGood(t *testing.T) {
	var k keyTable
	k.seed = 5
	rng := rand.New(rand.NewPCG(3, 4))
	live := map[uint32]*region{}
	var dead []uint32
	for range 5000 {
		if len(live) > 40 || len(live) > 0 && rng.IntN(2) == 0 {
			for key, r := range live {
				k.remove(r)
				delete(live, key)
				dead = append(dead, key)
				break
			}
			continue
		}
		r := &region{}
		if !k.add(r) || live[r.key] != nil || r.key == 0 {
			t.Fatalf("key %#x is given twice, or none", r.key)
		}
		live[r.key] = r
		for _, key := range dead[max(0, len(dead)-100):] {
			if got := k.find(key); got != nil && live[key] == nil {
				t.Fatalf("key %#x, given back, finds %#x", key, got.key)
			}
		}
		if got := k.find(r.key + 1); got != nil && live[r.key+1] == nil {
			t.Fatalf("a key one off finds a region")
		}
	}
	for key, r := range live {
		if k.find(key) != r {
			t.Errorf("key %#x finds another region", key)
		}
	}
}

func TestAQPsNumberIsNotThatOfTheOneWhosePlaceItTakes(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 64, nil)
	seen := map[uint32]bool{}
	for range 50 {
		var q verbs.QP
		e[0].pd.CreateQP(e[0].qp.init, func(got verbs.QP, err error) { q = got })
		l.settle(t, func() bool { return q != nil })
		if n := q.Num(); seen[n] || n < firstQPN || n > 0xffffff || e[0].find(n) != q {
			t.Fatalf("QP %#x: had it before: %v", n, seen[n])
		}
		seen[q.Num()] = true
		if err := l.wait(t, q.Destroy); err != nil || e[0].find(q.Num()) != nil {
			t.Fatalf("destroyed: %v, and still found: %v", err, e[0].find(q.Num()) != nil)
		}
	}
	if len(e[0].qps) > firstQPN+5 {
		t.Errorf("the table has grown to %d for two QPs at a time", len(e[0].qps))
	}
}

func TestAQPWhoseCQOverflowsFails(t *testing.T) {
	l := newLab(false)
	var small verbs.CQ
	e := l.pairOf(t, verbs.RC, 4096, func(host int, init *verbs.QPInit, _ *verbs.QPAttr) {
		if host == 0 && init.SendCQ != nil {
			init.SendCQ.(*compQueue).depth = 4
			small = init.SendCQ
		}
	})
	var events []verbs.AsyncEvent
	e[0].OnAsync(func(ev verbs.AsyncEvent) { events = append(events, ev) })
	for i := range 6 {
		e[0].post(t, e[0].write(e[1], uint64(i), 10))
	}
	l.settle(t, func() bool { return len(events) >= 2 })
	if events[0].Type != verbs.EventCQErr || events[0].CQ != small || events[1].Type != verbs.EventQPFatal || events[1].QP != verbs.QP(e[0].qp) || e[0].qp.state != verbs.Err {
		t.Errorf("%+v, in %v", events, e[0].qp.state)
	}
	if n := len(e[0].poll()); n != 4 {
		t.Errorf("%d completions of a queue of 4 that overflowed", n)
	}
}

func TestADeviceReachesItself(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 1<<14, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) {
		a.AH.DGID = l.addrs[0].Netip()
	})
	// Two QPs of host 0's.
	self := [2]*end{e[0], l.endOf(t, e[0].Device, verbs.RC, 1<<14, nil, 0)}
	if err := l.wait(t, func(done func(error)) {
		e[0].qp.Modify(verbs.QPAttr{State: verbs.Reset}, verbs.MaskState, done)
	}); err != nil {
		t.Fatal(err)
	}
	l.connect(t, self, verbs.RC, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) { a.AH.DGID = l.addrs[0].Netip() })
	l.wires[0].tap = func(f *link.Frame) bool { t.Errorf("a frame to the device itself is on the wire"); return true }
	copy(self[0].mem.bytes, "to oneself")
	self[0].post(t, self[0].write(self[1], 1, 1<<14))
	if wc := l.await(t, self[0], 1)[0]; wc.Status != verbs.Success || !bytes.Equal(self[0].mem.bytes, self[1].mem.bytes) {
		t.Errorf("%v, equal: %v", wc.Status, bytes.Equal(self[0].mem.bytes, self[1].mem.bytes))
	}
}

func TestWhatIsSentWhileTheLinkIsDownWaitsOrIsSentAgain(t *testing.T) {
	l := newLab(false)
	e := l.pairOf(t, verbs.RC, 4096, nil)
	var events []verbs.AsyncEventType
	e[1].OnAsync(func(ev verbs.AsyncEvent) { events = append(events, ev.Type) })
	for _, i := range []int{0, 1} {
		e[i].SetLink(false)
		e[0].post(t, e[0].write(e[1], 1, 4096))
		l.v.RunUntil(l.v.Now().Add(3 * verbs.AckTimeout(8)))
		if n := len(e[0].poll()); n != 0 || e[i].Port().Active {
			t.Errorf("%d completions over a link that is down", n)
		}
		e[i].SetLink(true)
		if wc := l.await(t, e[0], 1)[0]; wc.Status != verbs.Success {
			t.Errorf("the link of host %d was down: %v", i, wc.Status)
		}
	}
	if len(events) != 2 || events[0] != verbs.EventPortErr || events[1] != verbs.EventPortActive {
		t.Errorf("events %v", events)
	}
}

// Whatever bytes a port gets, the device takes them or drops them, and goes on.
func TestAFrameOfAnyPacketIsTakenOrDroppedInAnyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	l := recovering(SelectiveRepeat, nil)
	for _, kind := range []verbs.QPType{verbs.RC, verbs.UC, verbs.UD, verbs.RC} {
		if kind == verbs.UC {
			l = newLab(false) // which also goes back
		}
		for range 300 {
			l.wires[0].dest, l.wires[1].dest = nil, nil
			e := l.pairOf(t, kind, 4096, nil)
			for i := range 4 {
				e[1].recv(t, verbs.RecvWR{ID: uint64(i), SGL: e[1].sge(0, rng.IntN(2000))})
			}
			e[1].post(t, verbs.SendWR{Op: verbs.OpSend, SGL: e[1].sge(0, 0), AH: l.handle(t, e[1], kind)})
			for range 30 {
				n := rng.IntN(3) * 512
				q := e[1].qp
				f := e[0].frame(&e[0].qp.path, roce.Opcode(rng.IntN(256)), q.num, q.rx.epsn.Add(rng.IntN(4)-1), n)
				if kind == verbs.UD {
					f.Packet.Src, f.Packet.Dst = l.addrs[0], l.addrs[1]
				}
				p := &f.Packet
				p.Payload = make([]byte, n)
				p.BTH.AckReq = rng.IntN(2) == 0
				p.RETH = roce.RETH{VA: e[1].mem.addr + uint64(rng.IntN(5000)), RKey: e[1].mr.was + uint32(rng.IntN(20)/19), DMALen: uint32(rng.IntN(3000))}
				p.AETH.Syndrome = roce.Syndrome(rng.IntN(256))
				p.AtomicETH = roce.AtomicETH{VA: e[1].mem.addr + 8*uint64(rng.IntN(600)), RKey: e[1].mr.was}
				p.DETH = roce.DETH{QKey: 1}
				p.ImmDt, p.IETH, p.AtomicAckETH = uint32(q.tx.una), rng.Uint32(), rng.Uint64()
				e[1].Receive(f)
			}
			l.v.RunUntil(l.v.Now().Add(verbs.AckTimeout(8)))
		}
	}
}

// handle is an address handle for UD, nil for others.
func (l *lab) handle(t testing.TB, e *end, kind verbs.QPType) (h verbs.AH) {
	t.Helper()
	if kind != verbs.UD {
		return nil
	}
	e.pd.CreateAH(verbs.AHAttr{DGID: l.addrs[0].Netip()}, func(got verbs.AH, err error) { h = got })
	l.settle(t, func() bool { return h != nil })
	return h
}
