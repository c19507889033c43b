package faults

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestWindowsOfASchedule(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		s    Schedule
		want []Window
	}{
		{"the zero schedule is the whole run", Schedule{}, []Window{{0, 100 * ms}}},
		{"from a time to the end", Schedule{At: 30 * ms}, []Window{{30 * ms, 100 * ms}}},
		{"for a while", Schedule{At: 30 * ms, For: 5 * ms}, []Window{{30 * ms, 35 * ms}}},
		{"cut at the end", Schedule{At: 98 * ms, For: 5 * ms}, []Window{{98 * ms, 100 * ms}}},
		{"after the end", Schedule{At: 100 * ms}, nil},
		{"again and again", Schedule{At: 10 * ms, For: 5 * ms, Every: 40 * ms}, []Window{{10 * ms, 15 * ms}, {50 * ms, 55 * ms}, {90 * ms, 95 * ms}}},
		{"so many times", Schedule{For: 5 * ms, Every: 40 * ms, Count: 2}, []Window{{0, 5 * ms}, {40 * ms, 45 * ms}}},
	} {
		if got := c.s.Windows(100 * ms); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A moment lies in a window exactly when the schedule's own words say so.
func TestAMomentIsInAWindowExactlyWhenTheScheduleHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		const us = time.Microsecond
		until := us * time.Duration(1+rng.IntN(50))
		s := Schedule{At: us * time.Duration(rng.IntN(20)), For: us * time.Duration(rng.IntN(10))}
		if s.For > 0 && rng.IntN(2) == 0 {
			s.Every = s.For + us*time.Duration(1+rng.IntN(10))
			s.Count = rng.IntN(4)
		}
		if err := s.validate(); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		windows := s.Windows(until)
		for i := 1; i < len(windows); i++ {
			if windows[i-1].End >= windows[i].Start {
				t.Fatalf("%+v until %d: windows %v touch", s, until, windows)
			}
		}
		for now := time.Duration(0); now < until+5*us; now += us / 2 {
			in := false
			for _, w := range windows {
				in = in || now >= w.Start && now < w.End
			}
			if want := now < until && holds(s, now); in != want {
				t.Fatalf("%+v until %d at %d: in a window %v, want %v (%v)", s, until, now, in, want, windows)
			}
		}
	}
}

func holds(s Schedule, now time.Duration) bool {
	since := now - s.At
	if since < 0 {
		return false
	}
	if s.Every > 0 {
		if round := int(since / s.Every); s.Count > 0 && round >= s.Count {
			return false
		}
		since %= s.Every
	}
	return s.For == 0 || since < s.For
}

func TestAFlappingLinkIsDownAtTheStartOfEachPeriod(t *testing.T) {
	s := Spec{Kind: LinkFlap, Period: 10, Down: 3}
	want := []Window{{5, 8}, {15, 18}, {25, 26}}
	if got := s.Downs(Window{5, 26}); !reflect.DeepEqual(got, want) {
		t.Errorf("down in %v, want %v", got, want)
	}
}

func TestTheNthWindowIsTheOneThatWindowsLists(t *testing.T) {
	for _, s := range []Schedule{{}, {At: 5}, {At: 5, For: 3}, {At: 1, For: 2, Every: 10}, {At: 1, For: 2, Every: 10, Count: 3}} {
		const until = 1000
		all := s.Windows(until)
		for i := 0; ; i++ {
			w, ok := s.Nth(i)
			if !ok || w.Start >= until {
				if i != len(all) {
					t.Errorf("%+v: Nth ends after %d windows, Windows after %d", s, i, len(all))
				}
				break
			}
			w.End = min(w.End, until)
			if w != all[i] {
				t.Errorf("%+v: window %d is %v, Windows says %v", s, i, w, all[i])
			}
		}
	}
}
