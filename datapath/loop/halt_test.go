package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A node that stands still handles nothing, and then, in order, all that came meanwhile; however events are handled, and the others don't mind.
func TestANodeThatStandsStillHandlesLaterWhatComesMeanwhile(t *testing.T) {
	const look = 10
	var logs [][]string
	for _, opts := range [][]Option{nil, {Workers(1)}, {Workers(3)}} {
		v := NewVirtual(look, opts...)
		control, a, b := v.Node(0), v.Node(1), v.Node(2)
		log := map[*Node][]string{}
		note := func(n *Node, what string) { log[n] = append(log[n], fmt.Sprintf("%v %s", n.Now(), what)) }
		log[a], log[b], log[control] = nil, nil, nil
		var tickA, tickB Timer
		tickA.Fire = func() {
			note(a, "tick")
			if a.Now() < 1000 {
				a.Arm(&tickA, a.Now().Add(70))
			}
		}
		tickB.Fire = func() {
			at := b.Now()
			b.Send(a, 1, at.Add(look), &Timer{Fire: func() { note(a, fmt.Sprintf("from b at %v", at)) }})
			if note(b, "tick"); at < 1000 {
				b.Arm(&tickB, at.Add(90))
			}
		}
		a.Arm(&tickA, 5)
		b.Arm(&tickB, 5)
		var asleep, awake Time
		control.Arm(&Timer{Fire: func() { Halt(control, a, func() { asleep = control.Now() }) }}, 300)
		control.Arm(&Timer{Fire: func() { Resume(control, a, func() { awake = control.Now() }) }}, 700)
		v.Run(func() bool { return false })
		if asleep != 320 || awake != 720 {
			t.Errorf("told at %v that it stands still, at %v that it doesn't", asleep, awake)
		}
		last, meanwhile := Time(0), 0
		for _, l := range log[a] {
			d, err := time.ParseDuration(l[:strings.Index(l, " ")])
			if err != nil {
				t.Fatal(err)
			}
			at := Time(d)
			if at > 310 && at < 710 || at < last {
				t.Errorf("%q while it stood still, or after %v", l, last)
			}
			if at == 710 {
				meanwhile++
			}
			last = at
		}
		if meanwhile != 1+4 { // its own tick, and 4 of b's
			t.Errorf("%d events happened when it went on: %q", meanwhile, log[a])
		}
		if len(log[b]) != 13 {
			t.Errorf("the other had %d ticks", len(log[b]))
		}
		logs = append(logs, slices.Concat(log[a], log[b]))
	}
	for _, l := range logs[1:] {
		if !slices.Equal(l, logs[0]) {
			t.Errorf("how events are handled changes what happens:\n%q\n%q", logs[0], l)
		}
	}
}

func TestARealLoopThatStandsStillRunsNothingUntilItGoesOn(t *testing.T) {
	epoch := time.Now()
	a, b := NewReal(1, epoch), NewReal(1, epoch)
	defer a.Close()
	defer b.Close()
	standing, going, ran := make(chan bool), make(chan bool), make(chan bool, 1)
	a.Post(func() { Halt(a, b, func() { close(standing) }) })
	<-standing
	b.Post(func() { ran <- true })
	a.Post(func() {
		select {
		case <-ran:
			t.Error("it ran what was posted while it stood still")
		default:
		}
		Resume(a, b, func() { close(going) })
	})
	<-going
	<-ran
}
