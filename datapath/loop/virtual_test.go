package loop

import (
	"slices"
	"testing"
	"time"
)

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
