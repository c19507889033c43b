package workloads

import (
	"testing"
	"time"
)

func TestAPacerLetsMessagesGoWhenTheyAreDue(t *testing.T) {
	rate := pacer{Pace: Pace{Rate: 1e9}, size: 125, slack: 4} // a message every µs
	for since, want := range map[time.Duration]uint64{0: 1, 999: 1, 1000: 2, 2999: 3, 3000: 4} {
		if n := rate.due(since, 3); n != want {
			t.Errorf("after %v %d messages are due, want %d", since, n, want)
		}
	}
	for n, want := range map[uint64]time.Duration{0: 0, 1: 1000, 7: 7000} {
		if at, ok := rate.at(n); !ok || at != want {
			t.Errorf("message %d is due at %v, want %v", n, at, want)
		}
	}
	odd := pacer{Pace: Pace{Rate: 3e9}, size: 1, slack: 1e6}
	for n := uint64(1); n < 100; n++ {
		at, _ := odd.at(n)
		if odd.due(at, n) != n+1 || odd.due(at-1, n) != n {
			t.Errorf("message %d is let go at %v, where %d are due, and %d a nanosecond before", n, at, odd.due(at, n), odd.due(at-1, n))
		}
	}
	burst := pacer{Pace: Pace{Period: time.Millisecond, Burst: 5}, size: 1000, slack: 5}
	for since, want := range map[time.Duration]uint64{0: 5, time.Millisecond - 1: 5, time.Millisecond: 10} {
		if n := burst.due(since, 5); n != want {
			t.Errorf("after %v %d messages of bursts are due, want %d", since, n, want)
		}
	}
	if at, ok := burst.at(5); !ok || at != time.Millisecond {
		t.Errorf("the second burst comes at %v, want 1ms", at)
	}
}

func TestWhoFallsBehindItsPaceForgetsTheRest(t *testing.T) {
	p := pacer{Pace: Pace{Rate: 1e9}, size: 125, slack: 4}
	if n := p.due(time.Millisecond, 10); n != 14 {
		t.Errorf("a sender that stood still at message 10 for a millisecond may send up to %d, want 14", n)
	}
	if n := p.due(time.Millisecond+1000, 14); n != 15 {
		t.Errorf("a microsecond later up to %d, want 15", n)
	}
	if at, ok := p.at(15); !ok || at != time.Millisecond+2000 {
		t.Errorf("message 15 is due at %v, want 1.002ms", at)
	}
}

func TestAPacedEngineKeepsItsRateAndWindsDown(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	b.cfg.Pace = Pace{Rate: 8e6} // 1 MB/s: 1000 messages of 1000 bytes a second
	res := b.pass("[{name: w, kind: write, from: [h1], to: [h2], size: 1000B, messages: 101}]")
	if want := 100 * time.Millisecond; res.Duration < want {
		t.Errorf("101 messages at 1000 a second took %v, want at least %v", res.Duration, want)
	}
}

func TestAnEngineSaysHowFarItsFlowsHaveComeAndWindsDown(t *testing.T) {
	b := newBench(t, 2, 1, 1)
	e, done := b.start("[{name: w, kind: write, from: [h1], to: [h2], size: 10000B, messages: 1000000000}]")
	var p Progress
	for p.Completed < 100 {
		got := make(chan []Progress, 1)
		e.Progress(func(all []Progress) { got <- all })
		p = (<-got)[0]
	}
	if p.Posted < p.Completed || p.Src.Node != "h1" || p.Dst.Node != "h2" || p.Packets() != p.Completed*uint64((10000+p.MTU-1)/p.MTU) {
		t.Errorf("it has come to %+v, %d packets", p, p.Packets())
	}
	e.Wind(5 * time.Second)
	if res := b.wait(done).Results[0]; !res.Passed || !res.Stopped || res.TearDown != nil || res.Messages < p.Completed {
		t.Errorf("wound down: %+v", res)
	}
}
