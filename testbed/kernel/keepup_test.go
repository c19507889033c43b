//go:build linux

package kernel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// line plays a port of 8 Mb/s, 1000 bytes of queue to a millisecond: frames of 976 bytes cost 1000 on the line.
type line struct {
	tally shaperTally
	now   portReading
}

const (
	lineFrame = 976
	lineSlot  = time.Millisecond
)

func newLine() *line {
	return &line{tally: shaperTally{rate: 8_000_000}, now: portReading{at: time.Unix(0, 0)}}
}

// passes lets an interval pass: so many frames arrive and so many are sent. The interval before it was planned to be as long
// as planned says.
func (l *line) passes(interval, planned time.Duration, arrive, send uint64, undisturbed bool) {
	l.tally.until(planned)
	l.now.at = l.now.at.Add(interval)
	l.now.packets += send
	l.now.bytes += send * lineFrame
	l.now.backlog += arrive*lineFrame - send*lineFrame
	l.tally.take(l.now, undisturbed)
}

func TestAShaperIsJudgedByWhatItSendsWhilePacketsWait(t *testing.T) {
	const p = 20 * lineSlot
	for _, c := range []struct {
		name  string
		do    func(*line)
		share float64
		busy  time.Duration
	}{
		{"at the line's rate", func(l *line) { l.passes(p, p, 20, 20, true); l.passes(p, p, 20, 20, true) }, 1, 2 * p},
		{"at half of it", func(l *line) { l.passes(p, p, 0, 10, true); l.passes(p, p, 5, 10, true) }, 0.5, 2 * p},
		{"late and in time again", func(l *line) { l.passes(p, p, 20, 17, true); l.passes(p, p, 20, 23, true) }, 1, 2 * p},
		{"a reading that comes late does not hide a stall", func(l *line) { l.passes(10*p, p, 0, 20, true) }, 0.1, 10 * p},
		{"a queue that ran empty, since all that stood in it is gone", func(l *line) { l.passes(10*p, p, 0, 100, true) }, 1, 100 * lineSlot},
		{"a queue too short for the time to the next reading", func(l *line) { l.passes(p, 90*lineSlot, 0, 10, true) }, 1, 0},
		{"a fault at the port", func(l *line) { l.passes(p, p, 0, 1, false); l.passes(p, p, 0, 20, true) }, 1, p},
		{"a queue that was thrown away", func(l *line) { l.now.backlog = 10 * lineFrame; l.passes(p, p, 0, 5, true) }, 1, 0},
	} {
		l := newLine()
		l.passes(p, p, 100, 0, true) // 100 frames wait
		l.tally.forget()
		c.do(l)
		if got := l.tally.share(); got < c.share-0.001 || got > c.share+0.001 {
			t.Errorf("%s: a share of %.3f, not %.3f", c.name, got, c.share)
		}
		if got := l.tally.busy(); (got - c.busy).Abs() > time.Microsecond {
			t.Errorf("%s: watched for %v, not %v", c.name, got, c.busy)
		}
	}
}

// A port that is idle half of the time is not slow, whenever it is looked at.
func TestAPortWithoutWaitingPacketsIsNotJudged(t *testing.T) {
	l := newLine()
	for range 50 {
		l.passes(20*lineSlot, 20*lineSlot, 10, 10, true)
	}
	if l.tally.busy() != 0 || l.tally.share() != 1 {
		t.Errorf("watched for %v, share %.2f", l.tally.busy(), l.tally.share())
	}
}

func TestPortsAreJudgedOneByOneAndTogether(t *testing.T) {
	port := func(name string, sent, lost time.Duration) portShare {
		return portShare{name: name, rate: 25e9, tally: shaperTally{sent: sent, lost: lost}}
	}
	names := func(all []portShare) (s []string) {
		for _, p := range all {
			s = append(s, p.name)
		}
		return s
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		what       string
		all        []portShare
		late, slow string
	}{
		{"quiet", []portShare{port("a", 1000*ms, 20*ms), port("b", 1000*ms, -3*ms)}, "[]", "[]"},
		{"a little late", []portShare{port("a", 850*ms, 150*ms), port("b", 2000*ms, 0)}, "[]", "[a]"},
		{"two late, the worst first", []portShare{port("a", 700*ms, 300*ms), port("b", 9000*ms, 0), port("c", 400*ms, 600*ms)}, "[c a]", "[]"},
		{"one long stall", []portShare{{name: "a", tally: shaperTally{sent: 700 * ms, lost: 300 * ms, most: 250 * ms}}}, "[]", "[a all ports together]"},
		{"little but stalls", []portShare{port("a", 28*ms, 209*ms)}, "[]", "[a]"},
		{"watched too briefly", []portShare{port("a", 20*ms, 100*ms)}, "[]", "[]"},
		{"each too briefly, and all late", []portShare{port("a", 90*ms, 80*ms), port("b", 90*ms, 80*ms), port("c", 90*ms, 80*ms), port("d", 150*ms, 40*ms)}, "[all ports together]", "[]"},
		{"too few of its long frames", []portShare{{name: "a", least: time.Minute, tally: shaperTally{sent: ms, lost: 300 * ms}}}, "[]", "[]"},
	} {
		late, slow := judge(c.all)
		if got := fmt.Sprint(names(late), names(slow)); got != c.late+" "+c.slow {
			t.Errorf("%s: %s, not %s %s", c.what, got, c.late, c.slow)
		}
	}
	if got := port("leaf1:eth3", 700*ms, 300*ms).carried(1000); got != "leaf1:eth3: carried 17.5 of 25 Gb/s, 70% of the line rate, while packets waited (watched for 1ms)" {
		t.Errorf("%q", got)
	}
}

// Reading must not become the load, and a queue that is shorter than the rest that this takes is seen all the same.
func TestReadingTakesASmallPartOfTheTime(t *testing.T) {
	for _, c := range []struct {
		cost, lasts time.Duration
		waiting     time.Duration // nodes
	}{{500 * time.Microsecond, 100 * time.Millisecond, 1}, {500 * time.Microsecond, 20 * time.Millisecond, 12}, {5 * time.Millisecond, 40 * time.Millisecond, 3}, {time.Millisecond, 0, 0}} {
		n := &watchedNode{cost: c.cost, lasts: c.lasts, moving: true}
		var all time.Duration
		shortest := time.Hour
		const readings = 100
		for range readings {
			p := n.pause(c.waiting)
			all, shortest = all+p, min(shortest, p)
		}
		if part := (readings * c.cost * max(c.waiting, 1)).Seconds() / all.Seconds(); part > 2.0/watchShare {
			t.Errorf("%+v: reading takes %.3f of the time", c, part)
		}
		if c.lasts > 0 && watchMargin*shortest.Seconds() > c.lasts.Seconds() {
			t.Errorf("%+v: never read again before the queue is gone, but after %v", c, shortest)
		}
	}
}

func TestWhatWaitedForAProcessorIsNoCostOfReading(t *testing.T) {
	var cost time.Duration
	for i := range 200 {
		took := 500 * time.Microsecond
		if i%4 != 0 {
			took = 20 * time.Millisecond
		}
		cost = costOf(cost, took)
	}
	if cost > time.Millisecond {
		t.Errorf("a reading of 0.5 ms that is often delayed costs %v", cost)
	}
	for range 200 {
		cost = costOf(cost, 5*time.Millisecond)
	}
	if cost < 4*time.Millisecond {
		t.Errorf("readings that always take 5 ms cost %v", cost)
	}
}

func TestTheProcessorsTimesAreThoseOfAllOfThem(t *testing.T) {
	const before = "cpu  100 0 100 700 50 20 30 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
	const after = "cpu  200 0 150 900 50 20 30 150 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
	a, err := parseCPUTimes(before)
	if err != nil {
		t.Fatal(err)
	}
	b, err := parseCPUTimes(after)
	if err != nil {
		t.Fatal(err)
	}
	if idle, steal, ok := b.since(a); idle != 0.4 || steal != 0.3 || !ok {
		t.Errorf("idle %v, stolen %v, %v", idle, steal, ok)
	}
	if _, _, ok := a.since(a); ok {
		t.Error("shares of no time")
	}
	if _, err := parseCPUTimes("cpu 1 2 3\n"); err == nil || !strings.Contains(err.Error(), "eight") {
		t.Errorf("a line cut short: %v", err)
	}
}
