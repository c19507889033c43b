package faults

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

const us, ms = time.Microsecond, time.Millisecond

func course(t *testing.T, schedule string) (*Course, *Spec) {
	t.Helper()
	s := decode(t, "{name: x, kind: loss, at: [a], probability: 1%, schedule: "+schedule+"}")
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return NewCourse(&s, 1), &s
}

// turns are the course's first turns as far as they are due.
func turns(c *Course) (out []Window) {
	for i := range 20 {
		turn, state := c.Turn(i)
		if state != Due {
			break
		}
		out = append(out, turn.Window)
	}
	return out
}

func TestACourseWithoutEventsIsItsSchedule(t *testing.T) {
	c, _ := course(t, "{at: 1ms, for: 2ms, every: 5ms, count: 3}")
	if got, want := turns(c), []Window{{1 * ms, 3 * ms}, {6 * ms, 8 * ms}, {11 * ms, 13 * ms}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestJitterDelaysEachWindowAndKeepsThemApart(t *testing.T) {
	c, _ := course(t, "{at: 1ms, for: 2ms, every: 5ms, count: 15, jitter: 2ms}")
	all := turns(c)
	if len(all) != 15 {
		t.Fatalf("%d windows, want 15", len(all))
	}
	moved := 0
	for i, w := range all {
		due := ms + time.Duration(i)*5*ms
		if w.Start < due || w.Start > due+2*ms || w.Length() != 2*ms {
			t.Errorf("window %d is %v: due %v, later by up to 2ms", i, w, due)
		}
		if i > 0 && w.Start <= all[i-1].End {
			t.Errorf("window %v begins before %v ends", w, all[i-1])
		}
		if w.Start != due {
			moved++
		}
	}
	if again, _ := course(t, "{at: 1ms, for: 2ms, every: 5ms, count: 15, jitter: 2ms}"); moved < 10 || !reflect.DeepEqual(turns(again), all) {
		t.Errorf("%d windows moved, the same again: %v", moved, reflect.DeepEqual(turns(again), all))
	}
}

func TestARampsStepsShareItsWindow(t *testing.T) {
	c, _ := course(t, "{at: 1ms, for: 4ms, every: 10ms, count: 2, ramp: {to: 5%, steps: 5}}")
	for i, want := range []struct {
		w Window
		p topo.Fraction
	}{
		{Window{1 * ms, 1800 * us}, 0.01}, {Window{1800 * us, 2600 * us}, 0.02}, {Window{2600 * us, 3400 * us}, 0.03},
		{Window{3400 * us, 4200 * us}, 0.04}, {Window{4200 * us, 5 * ms}, 0.05}, {Window{11 * ms, 11800 * us}, 0.01},
	} {
		turn, state := c.Turn(i)
		if d := turn.Spec.Probability - want.p; state != Due || turn.Window != want.w || d > 1e-12 || d < -1e-12 {
			t.Errorf("turn %d: %v with %v, want %v with %v", i, turn.Window, turn.Spec.Probability, want.w, want.p)
		}
	}
	if _, state := c.Turn(10); state != Over {
		t.Error("it goes on after its last step")
	}
	last, _ := c.Turn(4)
	if err := last.Spec.Validate(); err != nil || last.Spec.Schedule.Ramp != nil {
		t.Errorf("the last step is no fault of its own: %v", err)
	}
}

func TestARampChangesARateADelayAndABitErrorRateToo(t *testing.T) {
	for text, get := range map[string]func(*Spec) any{
		"{name: x, kind: rate, at: [a], rate: 10Gbps, schedule: {for: 1ms, ramp: {to: 2Gbps, steps: 3}}}":                             func(s *Spec) any { return s.Rate == 6*topo.Gbps },
		"{name: x, kind: delay, at: [a], delay: 10us, schedule: {for: 1ms, ramp: {to: 30us, steps: 3}}}":                              func(s *Spec) any { return s.Delay == 20*us },
		"{name: x, kind: bit-error, at: [a], ber: 1e-6, schedule: {for: 1ms, ramp: {to: 3e-6, steps: 3}}}":                            func(s *Spec) any { return s.BER > 1.99e-6 && s.BER < 2.01e-6 },
		"{name: x, kind: reorder, at: [a], probability: 1%, delay: 4us, schedule: {for: 1ms, ramp: {key: delay, to: 8us, steps: 3}}}": func(s *Spec) any { return s.Delay == 6*us && s.Probability == 0.01 },
	} {
		s := decode(t, text)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		turn, _ := NewCourse(&s, 1).Turn(1)
		if err := turn.Spec.Validate(); err != nil {
			t.Errorf("%s: a step is no fault of its own: %v", text, err)
		}
		if get(&turn.Spec) != true {
			t.Errorf("%s: halfway it is %+v", text, turn.Spec)
		}
	}
}

func TestAnEventBeginsACourseAndAnotherEndsIt(t *testing.T) {
	c, s := course(t, "{at: 1ms, for: 2ms, every: 5ms, when: first cnp at h1, until: workload w finished}")
	if got, state := c.Turn(0); state != Waiting || turns(c) != nil {
		t.Errorf("before its event it is %v in state %v", got, state)
	}
	if want := []Trigger{*s.Schedule.When, *s.Schedule.Until}; !reflect.DeepEqual(c.Watches(), want) {
		t.Errorf("it watches %v, want %v", c.Watches(), want)
	}
	if c.Hear(Trigger{On: OnWorkload, Name: "w", State: Started}, ms) {
		t.Error("an event that it doesn't wait for changed it")
	}
	if !c.Hear(*s.Schedule.When, 10*ms) || c.Hear(*s.Schedule.When, 11*ms) {
		t.Error("the event counts once")
	}
	if got, _ := c.Turn(1); got.Window != (Window{16 * ms, 18 * ms}) {
		t.Errorf("the second window is %v, want 16ms to 18ms", got.Window)
	}
	if !c.Hear(*s.Schedule.Until, 17*ms) || len(c.Watches()) != 0 {
		t.Error("the end was not heard")
	}
	if got, want := turns(c), []Window{{11 * ms, 13 * ms}, {16 * ms, 17 * ms}}; !reflect.DeepEqual(got, want) {
		t.Errorf("with its end at 17ms it is %v, want %v", got, want)
	}
}

func TestACourseThatEndsBeforeItBeginsNeverStrikes(t *testing.T) {
	c, s := course(t, "{when: first cnp at h1, until: workload w finished}")
	c.Hear(*s.Schedule.Until, 5*ms)
	if _, state := c.Turn(0); state != Over {
		t.Errorf("state %v, want over", state)
	}
	c.Hear(*s.Schedule.When, 6*ms)
	if _, state := c.Turn(0); state != Over {
		t.Errorf("state %v behind its end, want over", state)
	}
}

func TestTriggersAreReadAndWritten(t *testing.T) {
	for _, text := range []string{
		"first cnp at h1", "first nak:seq at leaf1:eth0", "metric np_cnp_sent > 100", "metric if_rx_bytes{node=h1,port=eth0} >= 1e+06", "metric x < -0.5",
		"workload w started", "workload w finished", "fault cut applied", "fault seq/2 healed",
	} {
		var tr Trigger
		if err := tr.UnmarshalText([]byte(text)); err != nil || tr.String() != text {
			t.Errorf("%q came back as %q, %v", text, tr, err)
		}
	}
	for text, want := range map[string]string{
		"frist cnp at h1": `(did you mean "first"?)`, "first cpn at h1": `(did you mean "cnp"?)`, "first cnp in h1": "write", "metric x = 3": "write", "metric x > y": `"y" is no number`,
		"workload w start": `(did you mean "started"?)`, "fault x": "write", "": "no event",
	} {
		var tr Trigger
		if err := tr.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestATriggerHoldsAsItSays(t *testing.T) {
	for op, want := range map[string][3]bool{">": {false, false, true}, ">=": {false, true, true}, "<": {true, false, false}, "<=": {true, true, false}} {
		tr := Trigger{On: OnMetric, Op: op, Value: 5}
		if got := [3]bool{tr.Holds(4), tr.Holds(5), tr.Holds(6)}; got != want {
			t.Errorf("%s 5 of 4, 5, 6: %v, want %v", op, got, want)
		}
	}
}

func TestATriggerMustSpeakOfWhatIsThere(t *testing.T) {
	names := Names{Workloads: []string{"bulk"}, Faults: []string{"cut"}, Metrics: []string{"np_cnp_sent"}, Topology: net()}
	for text, want := range map[string]string{
		"first cnp at h9": `when: there is no node "h9"`, "first cnp at leaf-1:eth7": `there is no port at leaf-1 "eth7"`, "metric np_cnp_snet > 1": `(did you mean "np_cnp_sent"?)`,
		"workload bluk started": `(did you mean "bulk"?)`, "fault cot healed": `(did you mean "cut"?)`,
		"first cnp at leaf-1:eth1": "", "metric np_cnp_sent{node=h1} > 1": "", "workload bulk started": "", "fault cut healed": "",
	} {
		var tr Trigger
		if err := tr.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		err := Schedule{When: &tr}.Refers(names)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestAFlapsCyclesFillItsPeriodOnAverage(t *testing.T) {
	s := decode(t, "{name: x, kind: flap, at: [a], period: 10ms, duty: 30%}")
	if down, up := s.FlapCycle(1, "l", 7); down != 3*ms || up != 7*ms {
		t.Errorf("down %v and up %v, want 3ms and 7ms", down, up)
	}
	s.Distribution = Exponential
	var down, up, before time.Duration
	alike := 0
	const n = 10_000
	for i := range n {
		d, u := s.FlapCycle(1, "l", i)
		if (before * 3 / 7).Round(us) == d.Round(us) {
			alike++
		}
		before = u
		down, up = down+d, up+u
		if d2, u2 := s.FlapCycle(1, "l", i); d != d2 || u != u2 {
			t.Fatal("the same cycle twice differs")
		}
	}
	if alike > n/100 {
		t.Errorf("%d of %d times it is down for as long, in its measure, as it was up before", alike, n)
	}
	// Means of exponentials: standard deviation 1 %, five of them.
	if m := down / n; m < 2850*us || m > 3150*us {
		t.Errorf("it is down for %v on average, want about 3ms", m)
	}
	if m := up / n; m < 6650*us || m > 7350*us {
		t.Errorf("it is up for %v on average, want about 7ms", m)
	}
}
