package loop

import (
	"fmt"
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

// hold keeps a number of packets under way between nodes, as a fabric does: each node passes on
// what arrives, a hop of 1 to 1.4 µs away, and every 64th arrival moves a timer 4 ms away.
func hold(nodes, pending int, opts ...Option) *Virtual {
	v := NewVirtual(time.Microsecond, opts...)
	rng := rand.New(rand.NewSource(1))
	all := make([]*Node, nodes)
	timeouts := make([]Timer, nodes)
	for i := range all {
		all[i] = v.Node(uint32(i))
		timeouts[i].Fire = func() {}
	}
	packets := make([]struct {
		Timer
		at    int
		state uint32
		_     [72]byte // a frame's first two cache lines
	}, pending)
	for i := range packets {
		p := &packets[i]
		p.at, p.state = rng.Intn(nodes), rng.Uint32()
		p.Do = func(*Timer) {
			p.state = p.state*1664525 + 1013904223
			n, to := all[p.at], int(p.state>>12)%nodes
			if p.state>>26 == 0 {
				n.Arm(&timeouts[p.at], n.Now()+4e6)
			}
			p.at = to
			n.Send(all[to], uint16(p.state>>8&15), n.Now()+1000+Time(p.state>>20&0x1ff), &p.Timer)
		}
		all[p.at].Send(all[p.at], 0, Time(rng.Intn(1400)), &p.Timer)
	}
	v.RunUntil(10_000)
	return v
}

// BenchmarkVirtualHold is the cost of an event, one operation each, with so many pending.
func BenchmarkVirtualHold(b *testing.B) {
	for _, size := range []struct{ nodes, pending int }{{100, 1000}, {1344, 10_000}, {1344, 30_000}, {1344, 100_000}} {
		for name, opts := range map[string][]Option{"event-by-event": nil, "windows": {Workers(1)}} {
			b.Run(fmt.Sprintf("pending=%d/%s", size.pending, name), func(b *testing.B) {
				v := hold(size.nodes, size.pending, opts...)
				b.ReportAllocs()
				b.ResetTimer()
				start := v.Handled()
				v.Run(func() bool { return v.Handled()-start >= uint64(b.N) })
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(v.Handled()-start), "ns/event")
			})
		}
	}
}

func TestASteadyStateOfPacketsAllocatesNothing(t *testing.T) {
	for _, opts := range [][]Option{nil, {Workers(1)}} {
		v := hold(50, 500, opts...)
		v.RunUntil(v.Now() + 2e6)
		if got := testing.AllocsPerRun(5, func() { v.RunUntil(v.Now() + 50_000) }); got > 1 {
			t.Errorf("50 µs of 500 packets under way allocate %v times", got)
		}
	}
}
