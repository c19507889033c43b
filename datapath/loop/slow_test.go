package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestASlowClockAndTheTrueTimeAgreeAboutEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		c := &clock{Time(rng.Int64N(1 << 40)), 1 + rng.Uint64N(billion-1)}
		local := c.since + Time(rng.Int64N(1<<40))
		at := c.true(local)
		if at == never-1 {
			continue
		}
		if c.local(at) != local || at > c.since && c.local(at-1) >= local || c.true(local+1) <= at {
			t.Fatalf("clock %+v shows %d at %d, %d before, and a moment later at %d", c, c.local(at), at, c.local(at-1), c.true(local+1))
		}
	}
}

// Timers armed before, while and after a node's clock is slow end when it shows their times, however events are handled; the others' don't.
func TestTimersOfANodeEndWhenItsClockShowsTheirTimes(t *testing.T) {
	for _, opts := range [][]Option{nil, {Workers(1)}, {Workers(2)}} {
		v := NewVirtual(10, opts...)
		a, b := v.Node(1), v.Node(2)
		var ended []Time // by the true time
		var shown []Time
		note := func() *Timer {
			return &Timer{Fire: func() { ended, shown = append(ended, v.nodes[1].p.now), append(shown, a.Now()) }}
		}
		other := Time(0)
		b.Arm(&Timer{Fire: func() { other = b.Now() }}, 1500)
		a.Arm(note(), 500)
		a.Arm(note(), 1500) // armed before: 500 on the slow clock after 1000
		a.Arm(&Timer{Fire: func() {
			SetClock(a, billion/2)
			a.Arm(note(), a.Now().Add(200))
		}}, 1000)
		a.Arm(&Timer{Fire: func() { // when it shows 1700
			if ppb, late := Clock(a); ppb != billion/2 || late != 3 {
				t.Errorf("%d billionths, %d late", ppb, late)
			}
			a.Send(b, 0, a.Now().Add(10), &Timer{Fire: func() { other = b.Now() }})
		}}, 1700)
		gone := note()
		a.Arm(gone, 2000)
		a.Arm(&Timer{Fire: func() {
			SetClock(a, billion)
			a.Disarm(gone)
			a.Arm(note(), a.Now().Add(100))
		}}, 1900)
		a.Arm(note(), 2790) // past, when it is set right
		v.Run(func() bool { return false })
		if want := []Time{500, 1400, 2000, 2800, 2900}; !slices.Equal(ended, want) {
			t.Errorf("timers ended at %v, want %v", ended, want)
		}
		if want := []Time{500, 1200, 1500, 2800, 2900}; !slices.Equal(shown, want) {
			t.Errorf("when the clock showed %v, want %v", shown, want)
		}
		if other != 2420 {
			t.Errorf("what was sent when its clock showed 1700 arrived at %v", other)
		}
	}
}
