package loop

import (
	"math/rand"
	"slices"
	"testing"
	"time"
)

// The heap gives back exactly what a sorted list would, whatever is set, moved and removed.
func TestQueuePopsInOrderAfterAnyMix(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	for round := range 400 {
		q := queue{track: round%2 == 0}
		timers := make([]Timer, 64)
		for i := range timers {
			timers[i].Fire = func() {}
		}
		var in []entry
		for seq := range uint64(300) {
			tm := &timers[rng.Intn(len(timers))]
			mine := func(x entry) bool { return x.t == tm }
			if rng.Intn(3) == 0 {
				if tm.Armed() {
					q.remove(tm)
				}
				in = slices.DeleteFunc(in, mine)
				continue
			}
			e := entry{at: Time(rng.Intn(20)), sub: uint64(rng.Intn(3))<<32 | uint64(rng.Intn(3)), seq: seq, t: tm}
			switch {
			case !tm.Armed():
				q.push(e)
			case q.track:
				q.move(e)
			default:
				q.remove(tm)
				q.push(e)
			}
			in = append(slices.DeleteFunc(in, mine), e)
		}
		slices.SortFunc(in, func(a, b entry) int {
			if a.less(&b) {
				return -1
			}
			return 1
		})
		for i, want := range in {
			if top := q.heap[0]; top != want || q.pop() != want.t || want.t.Armed() {
				t.Fatalf("pop %d of %d: %+v, want %+v", i, len(in), top, want)
			}
		}
		if q.len() != 0 {
			t.Fatalf("%d timers too many", q.len())
		}
	}
}

func TestArmingAllocatesNothing(t *testing.T) {
	v := NewVirtual(1)
	n := v.Node(0)
	timers := make([]Timer, 100)
	for i := range timers {
		timers[i].Fire = func() {}
	}
	round := func() {
		for i := range timers {
			n.Arm(&timers[i], n.Now().Add(Duration(i*7%100)))
		}
		for v.Step() {
		}
	}
	round()
	if got := testing.AllocsPerRun(10, round); got != 0 {
		t.Errorf("arming and firing 100 timers allocates %v times", got)
	}
	post := func() {
		for range 100 {
			n.Post(timers[0].Fire)
		}
		for v.Step() {
		}
	}
	post()
	post()
	if got := testing.AllocsPerRun(10, post); got != 0 {
		t.Errorf("100 posts allocate %v times", got)
	}
}

// BenchmarkVirtualArmFire holds 1000 timers armed, as a host with many QPs does, and counts
// one firing and one arming an operation.
func BenchmarkVirtualArmFire(b *testing.B) {
	v := NewVirtual(1)
	n := v.Node(0)
	rng := rand.New(rand.NewSource(1))
	timers := make([]Timer, 1000)
	for i := range timers {
		t := &timers[i]
		t.Fire = func() { n.Arm(t, n.Now().Add(Duration(rng.Intn(1000)))) }
		n.Arm(t, Time(rng.Intn(1000)))
	}
	b.ReportAllocs()
	for b.Loop() {
		v.Step()
	}
}

// BenchmarkVirtualRearm moves a timer of 1000 that rarely fires, as each ACK does to a QP's
// retransmission timer.
func BenchmarkVirtualRearm(b *testing.B) {
	v := NewVirtual(1)
	n := v.Node(0)
	timers := make([]Timer, 1000)
	for i := range timers {
		timers[i].Fire = func() {}
		n.Arm(&timers[i], Time(i))
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		n.Arm(&timers[i%len(timers)], Time(1000+i))
	}
}

// BenchmarkRealPost counts one post and its callback an operation, from another goroutine.
func BenchmarkRealPost(b *testing.B) {
	r := NewReal(1, time.Now())
	defer r.Close()
	done := make(chan struct{})
	n := 0
	fn := func() { n++ }
	b.ReportAllocs()
	for b.Loop() {
		r.Post(fn)
	}
	r.Post(func() { close(done) })
	<-done
}

// BenchmarkRealTimer counts one timer that is due at once an operation.
func BenchmarkRealTimer(b *testing.B) {
	r := NewReal(1, time.Now())
	defer r.Close()
	done := make(chan struct{})
	left := b.N
	t := &Timer{}
	t.Fire = func() {
		if left--; left <= 0 {
			close(done)
			return
		}
		r.Arm(t, r.Now())
	}
	b.ReportAllocs()
	b.ResetTimer()
	r.Post(func() { r.Arm(t, 0) })
	<-done
}
