package workloads

import (
	"fmt"
	"math/rand/v2"
	"strings"
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

// What a node sees and in which order doesn't depend on which core is faster.
func TestNotesComeToTheSameOnAnyNumberOfCores(t *testing.T) {
	const nodes = 4
	run := func(workers int) (out [nodes]string) {
		var logs [nodes]strings.Builder
		v := loop.NewVirtual(time.Microsecond, loop.Workers(workers))
		x := Exchange{time.Microsecond}
		var wires [nodes][nodes]*wire[int]
		for i := range nodes {
			for j := range nodes {
				to := v.Node(uint32(j))
				wires[i][j] = newWire(x, v.Node(uint32(i)), to, func(n int) { fmt.Fprintf(&logs[j], "%v note %d from %d\n", to.Now(), n, i) })
			}
		}
		for i := range nodes {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			me := v.Node(uint32(i))
			n := 0
			var timer loop.Timer
			timer.Fire = func() {
				for range 1 + rng.IntN(3) {
					j := rng.IntN(nodes)
					if rng.IntN(4) == 0 {
						to := v.Node(uint32(j))
						x.Send(me, to, func() { fmt.Fprintf(&logs[j], "%v call from %d\n", to.Now(), i) })
						continue
					}
					wires[i][j].send(n)
					n++
				}
				me.Arm(&timer, me.Now()+10*loop.Time(rng.IntN(5))) // times collide
			}
			me.Arm(&timer, 0)
		}
		v.RunUntil(60_000)
		for i := range logs {
			out[i] = logs[i].String()
		}
		return out
	}
	want := run(1)
	for range 5 {
		if got := run(4); got != want {
			t.Fatal("four workers saw something else than one")
		}
	}
}
