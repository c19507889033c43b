package workloads

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

func TestNotesArriveInOrderAndNotBeforeTheLookAhead(t *testing.T) {
	for _, lookAhead := range []time.Duration{time.Microsecond, 7 * time.Microsecond} {
		v := loop.NewVirtual(time.Microsecond)
		a, b := v.Node(1), v.Node(2)
		sent := map[int]loop.Time{}
		next := 0
		w := newWire(Exchange{lookAhead}, a, b, func(n int) {
			if n != next {
				t.Fatalf("note %d came after %d", n, next-1)
			}
			if took := b.Now().Sub(sent[n]); took != lookAhead {
				t.Errorf("note %d took %v, want %v", n, took, lookAhead)
			}
			next++
		})
		n := 0
		var timer loop.Timer
		timer.Fire = func() {
			for range n%3 + 1 {
				sent[n] = a.Now()
				w.send(n)
				n++
			}
			if n < 200 {
				a.Arm(&timer, a.Now().Add(time.Duration(n*379%2000)))
			}
		}
		a.Arm(&timer, 0)
		v.Run(func() bool { return false })
		if next != n {
			t.Errorf("%d of %d notes arrived", next, n)
		}
	}
}

func TestNotesAllocateNothingInTheLongRun(t *testing.T) {
	v := loop.NewVirtual(time.Microsecond)
	a, b := v.Node(1), v.Node(2)
	got := 0
	w := newWire(Exchange{time.Microsecond}, a, b, func(note) { got++ })
	var timer loop.Timer
	timer.Fire = func() { w.send(note{kind: notePlaced, n: 1}) }
	round := func() {
		a.Arm(&timer, a.Now())
		for v.Step() {
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a note", n)
	}
	if got < 1100 {
		t.Errorf("%d notes arrived", got)
	}
}
