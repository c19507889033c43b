package loop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is what a random program runs in: virtual time, or the model of it.
type world struct {
	loop   func(id uint32) Loop
	send   func(from, to uint32, port uint16, at Time, t *Timer)
	cross  func(from, to uint32, at Time, fn func())
	agents []*agent
}

func worldOf(v *Virtual) *world {
	return &world{
		loop:  func(id uint32) Loop { return v.nodes[id] },
		send:  func(from, to uint32, port uint16, at Time, t *Timer) { v.nodes[from].Send(v.nodes[to], port, at, t) },
		cross: func(from, to uint32, at Time, fn func()) { Cross(v.nodes[from], v.nodes[to], at, fn) },
	}
}

func worldOfModel(m *model) *world {
	return &world{
		loop:  func(id uint32) Loop { return m.nodes[id] },
		send:  func(from, to uint32, port uint16, at Time, t *Timer) { m.nodes[from].send(m.nodes[to], port, at, t) },
		cross: func(from, to uint32, at Time, fn func()) { m.nodes[from].cross(m.nodes[to], at, fn) },
	}
}

// agent is one node of a random program. It does one to three things at each event, from a
// random stream of its own, and notes what it saw.
type agent struct {
	w      *world
	id     uint32
	nodes  uint32
	look   Duration
	far    Duration
	l      Loop
	rng    *rand.Rand
	timers [6]Timer
	got    *Timer // arrived here and may be armed, disarmed and sent on
	log    []string
	shared *[]string // of all nodes, where they run in one order
}

func newAgent(w *world, id, nodes uint32, seed uint64, look, far Duration, shared *[]string) *agent {
	a := &agent{w: w, id: id, nodes: nodes, look: look, far: far, l: w.loop(id), rng: rand.New(rand.NewPCG(seed, uint64(id))), shared: shared}
	for i := range a.timers {
		a.timers[i].Fire = func() { a.act(fmt.Sprint("timer ", i)) }
	}
	return a
}

func (a *agent) start() {
	for i := range a.timers[:2] {
		a.l.Arm(&a.timers[i], Time(a.rng.IntN(3))*Time(a.look))
	}
}

// when is a time for a timer. Times collide often, so that ties decide.
func (a *agent) when() Time {
	switch a.rng.IntN(12) {
	case 0:
		return a.l.Now() - 5
	case 1:
		return a.l.Now().Add(a.far + Duration(a.rng.IntN(3)))
	case 2, 3:
		return a.l.Now()
	case 4, 5, 6:
		return a.l.Now().Add(Duration(a.rng.IntN(4)) * a.look / 2)
	}
	return a.l.Now().Add(Duration(a.rng.Int64N(3 * int64(a.look))))
}

func (a *agent) later() Time {
	if a.rng.IntN(2) == 0 {
		return a.l.Now().Add(a.look * Duration(1+a.rng.IntN(3)))
	}
	return a.l.Now().Add(a.look + Duration(a.rng.Int64N(4*int64(a.look))))
}

func (a *agent) note(what string) {
	s := fmt.Sprintf("%d node %d %s", a.l.Now(), a.id, what)
	a.log = append(a.log, s)
	if a.shared != nil {
		*a.shared = append(*a.shared, s)
	}
}

func (a *agent) act(what string) {
	a.note(what)
	for range 1 + a.rng.IntN(3) {
		t := &a.timers[a.rng.IntN(len(a.timers))]
		switch a.rng.IntN(10) {
		case 0, 1, 2, 3:
			a.l.Arm(t, a.when())
		case 4:
			a.note(fmt.Sprint("disarmed: ", a.l.Disarm(t)))
		case 5:
			a.l.Post(func() { a.note("own post") })
		case 6:
			a.toOther()
		case 7, 8:
			a.packet()
		case 9:
			a.handle()
		}
	}
	if !a.timers[0].Armed() {
		a.l.Arm(&a.timers[0], a.when())
	}
}

// toOther posts to another node, or to itself by the same draw.
func (a *agent) toOther() {
	to, from := uint32(a.rng.IntN(int(a.nodes))), a.id
	fn := func() { a.w.agents[to].note(fmt.Sprint("post from ", from)) }
	if a.rng.IntN(2) == 0 {
		a.w.loop(to).Post(fn)
	} else {
		a.w.cross(a.id, to, a.later(), fn)
	}
}

func (a *agent) packet() {
	to, port, at := uint32(a.rng.IntN(int(a.nodes))), uint16(a.rng.IntN(3)), a.later()
	t := a.got
	if a.got = nil; t == nil || t.Armed() {
		t = &Timer{}
	}
	from := a.id
	t.Do = func(t *Timer) { a.w.agents[to].arrived(t, fmt.Sprint("packet at port ", port, " from ", from)) }
	a.w.send(a.id, to, port, at, t)
}

func (a *agent) arrived(t *Timer, what string) {
	if a.got == nil {
		a.got = t
	}
	if a.rng.IntN(3) == 0 {
		a.act(what)
		return
	}
	a.note(what)
}

// handle arms or disarms what arrived as a packet.
func (a *agent) handle() {
	if a.got == nil {
		return
	}
	a.got.Do = func(*Timer) { a.note("packet's timer") }
	if a.rng.IntN(3) == 0 {
		a.note(fmt.Sprint("disarmed a packet: ", a.l.Disarm(a.got)))
		return
	}
	a.l.Arm(a.got, a.when())
}

func firstDifference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if at(a, i) != at(b, i) {
			return i
		}
	}
	return -1
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "(none)"
}

// outcome is what a program left behind.
type outcome struct {
	logs    [][]string // by node
	all     []string   // in one order, where there is one
	now     Time
	handled uint64
}

func (got outcome) check(t *testing.T, what string, want outcome) {
	t.Helper()
	for id := range want.logs {
		if i := firstDifference(want.logs[id], got.logs[id]); i >= 0 {
			t.Fatalf("%s: event %d of %d at node %d is\n%s\nwant\n%s", what, i, len(got.logs[id]), id, at(got.logs[id], i), at(want.logs[id], i))
		}
	}
	if got.all != nil && !slices.Equal(got.all, want.all) {
		i := firstDifference(want.all, got.all)
		t.Fatalf("%s: event %d of %d is\n%s\nwant\n%s", what, i, len(got.all), at(got.all, i), at(want.all, i))
	}
	if got.now != want.now || got.handled != want.handled {
		t.Fatalf("%s: ended at %v after %d events, want %v and %d", what, got.now, got.handled, want.now, want.handled)
	}
}
