package loop

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
)

// program is a set of nodes that arm, disarm, post and send at random, but each from its own
// seed. It returns what happened, in order.
func program(nodes int, creation []int, until Time) []string {
	v := NewVirtual(50)
	var log []string
	for _, id := range creation {
		n := v.Node(uint32(id))
		rng := rand.New(rand.NewSource(int64(id)))
		note := func(what string) { log = append(log, fmt.Sprintf("%v node %d %s", n.Now(), id, what)) }
		var act func(what string)
		timers := make([]Timer, 4)
		for i := range timers {
			timers[i].Fire = func() { act(fmt.Sprintf("timer %d", i)) }
		}
		act = func(what string) {
			note(what)
			// Times collide often, so that ties decide.
			at := n.Now().Add(Duration(rng.Intn(4) * 50))
			switch rng.Intn(6) {
			case 0, 1:
				n.Arm(&timers[rng.Intn(4)], at)
			case 2:
				n.Disarm(&timers[rng.Intn(4)])
				n.Arm(&timers[rng.Intn(4)], at)
			case 3:
				n.Post(func() { act("post") })
			case 4:
				to := v.Node(uint32(rng.Intn(nodes)))
				from := n.ID()
				to.Post(func() { log = append(log, fmt.Sprintf("%v node %d post from %d", to.Now(), to.ID(), from)) })
				n.Arm(&timers[0], at)
			case 5:
				to, port := v.Node(uint32(rng.Intn(nodes))), uint16(rng.Intn(3))
				from := n.ID()
				t := &Timer{Fire: func() {
					log = append(log, fmt.Sprintf("%v node %d port %d packet from %d", to.Now(), to.ID(), port, from))
				}}
				n.Send(to, port, n.Now().Add(Duration(1+rng.Intn(2))*50), t)
				n.Arm(&timers[1], at)
			}
		}
		n.Arm(&timers[3], Time(rng.Intn(3)*50))
		n.Arm(&timers[2], 0)
	}
	v.RunUntil(until)
	return log
}

func TestVirtualOrderDoesNotDependOnTheOrderOfInsertion(t *testing.T) {
	const nodes = 7
	order := make([]int, nodes)
	for i := range order {
		order[i] = i
	}
	want := program(nodes, order, 4000)
	if len(want) < 200 {
		t.Fatalf("the program made only %d events", len(want))
	}
	rng := rand.New(rand.NewSource(1))
	for range 20 {
		rng.Shuffle(nodes, func(i, j int) { order[i], order[j] = order[j], order[i] })
		got := program(nodes, order, 4000)
		if i := firstDifference(want, got); i >= 0 {
			t.Fatalf("nodes made in order %v: event %d of %d and %d is\n%s\nwas\n%s", order, i, len(got), len(want), at(got, i), at(want, i))
		}
	}
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

func TestVirtualEventsOfOneTimeAreOrderedByNodeThenPortThenSource(t *testing.T) {
	v := NewVirtual(1)
	var got []string
	note := func(s string) *Timer { return &Timer{Fire: func() { got = append(got, s) }} }
	a, b, c := v.Node(1), v.Node(2), v.Node(3)
	c.Send(b, 1, 10, note("b port 1 from c"))
	c.Send(b, 0, 10, note("b port 0 from c, first"))
	c.Send(b, 0, 10, note("b port 0 from c, second"))
	a.Send(b, 0, 10, note("b port 0 from a"))
	c.Arm(note("c timer"), 10)
	b.Arm(note("b timer"), 10)
	a.Arm(note("a timer"), 10)
	v.RunUntil(10)
	want := []string{"a timer", "b timer", "b port 0 from a", "b port 0 from c, first", "b port 0 from c, second", "b port 1 from c", "c timer"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestVirtualPostToAnotherNodeTakesTheLookAhead(t *testing.T) {
	v := NewVirtual(2 * time.Microsecond)
	a, b := v.Node(1), v.Node(2)
	var own, other Time
	After(a, time.Microsecond, func() {
		a.Post(func() { own = a.Now() })
		b.Post(func() { other = b.Now() })
	})
	v.RunUntil(Time(time.Second))
	if own != Time(time.Microsecond) || other != Time(3*time.Microsecond) {
		t.Errorf("posted at 1µs: to itself at %v, to another node at %v", own, other)
	}
	if v.Now() != Time(time.Second) {
		t.Errorf("the clock was left at %v", v.Now())
	}
}

func TestVirtualRefusesWhatWouldDependOnTheOrderOfCores(t *testing.T) {
	v := NewVirtual(time.Microsecond)
	a, b := v.Node(1), v.Node(2)
	panics := func(what string, fn func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		fn()
	}
	tm := &Timer{Fire: func() {}}
	panics("a packet within the look-ahead", func() { a.Send(b, 0, v.Now().Add(time.Microsecond-1), tm) })
	After(a, 0, func() {
		panics("arming another node's timer", func() { b.Arm(tm, 5) })
		panics("disarming another node's timer", func() { b.Disarm(tm) })
	})
	v.Step()
}

func TestVirtualTimeNeverGoesBack(t *testing.T) {
	v := NewVirtual(1)
	n := v.Node(0)
	v.RunUntil(100)
	var at Time
	n.Arm(&Timer{Fire: func() { at = n.Now() }}, 7)
	if !v.Step() || at != 100 || v.Step() {
		t.Errorf("a timer for 7 armed at 100 fired at %v", at)
	}
}

func TestVirtualRunStopsWhenToldOrWhenNothingIsLeft(t *testing.T) {
	v := NewVirtual(1)
	n := v.Node(0)
	count := 0
	tick := &Timer{}
	tick.Fire = func() {
		if count++; count < 10 {
			n.Arm(tick, n.Now().Add(1))
		}
	}
	n.Arm(tick, 0)
	if !v.Run(func() bool { return count == 4 }) || count != 4 {
		t.Errorf("stopped after %d of 4 events", count)
	}
	if v.Run(func() bool { return count == 11 }) || count != 10 || v.Handled() != 10 {
		t.Errorf("ran %d of 10 events, counted %d", count, v.Handled())
	}
}
