package loop

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

const patience = 10 * time.Second

func newReal(t *testing.T, d Dilation) *Real {
	t.Helper()
	r := NewReal(d, time.Now())
	t.Cleanup(r.Close)
	return r
}

// on runs fn on the loop and waits for it.
func on(t *testing.T, r *Real, fn func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Do(ctx, fn); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

func TestRealFiresTimersInOrderAndNeverEarly(t *testing.T) {
	r := newReal(t, 64)
	done := make(chan struct{})
	var fired []int
	var early error
	timers := make([]Timer, 20)
	on(t, r, func() {
		base := r.Now()
		for i := range timers {
			at := base.Add(Duration(20-i) * 10 * time.Microsecond)
			timers[i].Fire = func() {
				fired = append(fired, i)
				if r.Now() < at {
					early = errors.New("timer for " + at.String() + " fired at " + r.Now().String())
				}
				if len(fired) == len(timers) {
					close(done)
				}
			}
			r.Arm(&timers[i], at)
		}
	})
	await(t, "20 timers", done)
	if early != nil {
		t.Error(early)
	}
	for k, i := range fired {
		if i != len(timers)-1-k {
			t.Fatalf("order of firing %v", fired)
		}
	}
	s := r.Stats()
	if s.Late.Count != 20 || s.Late.Max < s.Late.Percentile(50) {
		t.Errorf("lateness of 20 timers: count %d, max %v, median %v", s.Late.Count, s.Late.Max, s.Late.Percentile(50))
	}
}

func TestRealTimersForOneTimeFireInTheOrderOfArming(t *testing.T) {
	r := newReal(t, 1)
	done := make(chan struct{})
	var fired []int
	on(t, r, func() {
		at := r.Now().Add(time.Millisecond)
		for i := range 50 {
			tm := &Timer{Fire: func() {
				if fired = append(fired, i); len(fired) == 50 {
					close(done)
				}
			}}
			r.Arm(tm, at)
		}
	})
	await(t, "50 timers", done)
	for k, i := range fired {
		if k != i {
			t.Fatalf("order of firing %v", fired)
		}
	}
}

func TestRealPostsOfOneGoroutineKeepTheirOrder(t *testing.T) {
	r := newReal(t, 1)
	var wg sync.WaitGroup
	const senders, each = 8, 500
	var last [senders]int
	var wrong int
	for s := range senders {
		wg.Go(func() {
			for n := 1; n <= each; n++ {
				r.Post(func() {
					if last[s] != n-1 {
						wrong++
					}
					last[s] = n
				})
			}
		})
	}
	wg.Wait()
	on(t, r, func() {
		for s, n := range last {
			if n != each {
				t.Errorf("sender %d: %d of %d posts ran", s, n, each)
			}
		}
	})
	if wrong != 0 {
		t.Errorf("%d posts out of order", wrong)
	}
}

func TestRealPostFromItsOwnCallbackDoesNotBlock(t *testing.T) {
	r := newReal(t, 1)
	done := make(chan struct{})
	on(t, r, func() {
		for i := range 10000 {
			r.Post(func() {
				if i == 9999 {
					close(done)
				}
			})
		}
	})
	await(t, "10000 posts", done)
}

func TestRealTimerThatAlwaysRearmsForThePastDoesNotKeepPostsOut(t *testing.T) {
	r := newReal(t, 1)
	var spins int
	tm := &Timer{}
	tm.Fire = func() { spins++; r.Arm(tm, 0) }
	on(t, r, func() { r.Arm(tm, 0) })
	on(t, r, func() {})
	on(t, r, func() {
		if !r.Disarm(tm) || tm.Armed() {
			t.Error("the spinning timer was not armed")
		}
	})
	if spins == 0 {
		t.Error("the spinning timer never fired")
	}
}

func TestRealFabricTimeIsWallTimeOverTheDilation(t *testing.T) {
	epoch := time.Now().Add(-time.Hour)
	r := NewReal(1024, epoch)
	defer r.Close()
	on(t, r, func() {
		least, most := Time(time.Hour/1024), Time(time.Since(epoch)/1024)
		if now := r.Now(); now < least || now > most {
			t.Errorf("an hour after the epoch at dilation 1024 the loop says %v, want %v to %v", now, least, most)
		}
	})
}

func TestRealCloseRunsWhatWasPostedAndDropsTheRest(t *testing.T) {
	r := NewReal(1, time.Now())
	var ran, late int
	timer := &Timer{Fire: func() { late++ }}
	r.Post(func() { r.Arm(timer, r.Now().Add(time.Hour)) })
	for range 100 {
		r.Post(func() { ran++ })
	}
	r.Close()
	r.Post(func() { late++ })
	if ran != 100 || late != 0 {
		t.Errorf("%d of 100 posts ran before the end, %d callbacks after it", ran, late)
	}
	if err := r.Do(context.Background(), func() {}); !errors.Is(err, ErrClosed) {
		t.Errorf("Do on a closed loop: %v", err)
	}
	r.Close()
}

func TestTimerOfOneLoopIsRefusedByAnother(t *testing.T) {
	refused := func(what string, fn func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		fn()
	}
	v := NewVirtual(1)
	a, b := v.Node(1), v.Node(2)
	r := NewReal(1, time.Now())
	defer r.Close()
	tm := &Timer{Fire: func() {}}
	a.Arm(tm, 10)
	refused("arming on another node", func() { b.Arm(tm, 10) })
	refused("disarming on another node", func() { b.Disarm(tm) })
	refused("sending from another node", func() { b.Send(a, 0, 10, tm) })
	if err := r.Do(context.Background(), func() {
		refused("arming in real time", func() { r.Arm(tm, 10) })
		refused("disarming in real time", func() { r.Disarm(tm) })
	}); err != nil {
		t.Fatal(err)
	}
}

func TestATimerArmedForATimePastIsNotLate(t *testing.T) {
	r := NewReal(1, time.Now().Add(-time.Hour))
	defer r.Close()
	fired := make(chan struct{})
	r.Post(func() {
		After(r, -time.Minute, func() { After(r, time.Microsecond, func() { close(fired) }) })
	})
	<-fired
	if late := r.Stats().Late; late.Count != 1 || late.Max >= time.Minute {
		t.Errorf("%d timers counted, the latest %v late; only the one armed ahead can be late", late.Count, late.Max)
	}
}

// inputs is a source of numbers, which other goroutines push.
type inputs struct {
	ready  chan int
	wake   chan struct{}
	got    []int
	times  []Time
	loop   *Real
	queued []int
	at     Time
	ended  bool
}

func (s *inputs) Wait(limit time.Duration) {
	var over <-chan time.Time
	if limit >= 0 {
		over = time.After(limit)
	}
	select {
	case n := <-s.ready:
		s.queued = append(s.queued, n)
		s.at = s.loop.read()
	case <-s.wake:
	case <-over:
	}
}

func (s *inputs) Gather() {}

func (s *inputs) End() { s.ended = true }

// Next says that each input came in when it was taken.
func (s *inputs) Next() (Time, bool) {
	if len(s.queued) == 0 {
		return 0, false
	}
	return s.at, true
}

func (s *inputs) Handle() {
	s.got, s.times = append(s.got, s.queued[0]), append(s.times, s.loop.Now())
	s.queued = s.queued[1:]
}

func (s *inputs) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func TestRealWaitsInItsSourceForInputPostsAndTimers(t *testing.T) {
	s := &inputs{ready: make(chan int), wake: make(chan struct{}, 1)}
	start := make(chan struct{})
	r := NewRealWith(1, time.Now(), s)
	r.Post(func() { s.loop = r; close(start) })
	<-start // the source waits without a limit, and the post ended that
	for i := range 100 {
		s.ready <- i
	}
	on(t, r, func() {
		if len(s.got) != 100 {
			t.Errorf("%d of 100 inputs were handled before what was posted after them", len(s.got))
		}
		if !slices.IsSorted(s.got) || !slices.IsSorted(s.times) || s.times[99] == 0 {
			t.Errorf("handled %v at %v", s.got, s.times)
		}
	})
	fired := make(chan struct{})
	on(t, r, func() { After(r, time.Microsecond, func() { close(fired) }) })
	await(t, "a timer", fired)
	r.Close()
	if !s.ended {
		t.Error("the source was not told of the end")
	}
}

func TestALoopWithASourceFiresLateTimersAtTheirOwnTimes(t *testing.T) {
	s := &inputs{ready: make(chan int), wake: make(chan struct{}, 1)}
	r := NewRealWith(1, time.Now(), s)
	defer r.Close()
	const step, steps = 50 * time.Microsecond, 2000 // 100 ms, which a sleep of whole milliseconds can't do in steps
	var times []Time
	done := make(chan struct{})
	on(t, r, func() {
		first := r.Now()
		tm := &Timer{}
		tm.Fire = func() {
			times = append(times, r.Now()-first)
			if len(times) == steps {
				close(done)
				return
			}
			r.Arm(tm, r.Now().Add(step))
		}
		r.Arm(tm, first.Add(step))
	})
	await(t, "the timers", done)
	for i, at := range times {
		if want := Time(i+1) * Time(step); at != want {
			t.Fatalf("firing %d saw %v as the time, want %v", i, at, want)
		}
	}
}

func TestALoopWithASourceIsNotHeldByATimerThatArmsItselfForThePast(t *testing.T) {
	s := &inputs{ready: make(chan int), wake: make(chan struct{}, 1)}
	r := NewRealWith(1, time.Now(), s)
	defer r.Close()
	tm, spins := &Timer{}, 0
	tm.Fire = func() { spins++; r.Arm(tm, 0) }
	on(t, r, func() { r.Arm(tm, 0) })
	on(t, r, func() {})
	on(t, r, func() { r.Disarm(tm) })
	if spins == 0 {
		t.Error("the timer never fired")
	}
}
