package testbed

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
)

// scripted is an injector whose answers a test chooses; it logs what is asked of it.
type scripted struct {
	l      loop.Loop
	log    []string
	broken map[string]int           // "heal a": how often that fails; negative: no answer ever comes
	late   map[string]time.Duration // "apply a": how long its first answer takes
	hits   map[string]uint64
}

func (s *scripted) answer(what string, done func(error)) {
	s.log = append(s.log, what)
	n, late := s.broken[what], s.late[what]
	switch {
	case late > 0:
		delete(s.late, what)
		loop.After(s.l, late, func() { done(nil) })
		return
	case n < 0:
		return
	case n > 0:
		s.broken[what]--
		loop.After(s.l, time.Microsecond, func() { done(errors.New("no")) })
		return
	}
	loop.After(s.l, time.Microsecond, func() { done(nil) })
}

func (s *scripted) Check(faults.Spec) error { return nil }
func (s *scripted) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	s.answer("apply "+spec.Name, func(err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(&scriptedFault{s, spec.Name}, nil)
	})
}

type scriptedFault struct {
	s    *scripted
	name string
}

func (f *scriptedFault) Verify(done func(error)) { f.s.answer("verify "+f.name, done) }
func (f *scriptedFault) Hits(done func(uint64, error)) {
	f.s.answer("hits "+f.name, func(err error) { done(f.s.hits[f.name], err) })
}
func (f *scriptedFault) Heal(done func(error))        { f.s.answer("heal "+f.name, done) }
func (f *scriptedFault) VerifyClean(done func(error)) { f.s.answer("clean "+f.name, done) }

// play runs faults until a time, ends them, and lets everything settle.
func play(t *testing.T, s *scripted, until time.Duration, specs ...faults.Spec) (*faultRun, []record.Event) {
	t.Helper()
	v := loop.NewVirtual(time.Microsecond)
	node := v.Node(1)
	s.l = node
	if s.hits == nil {
		s.hits = map[string]uint64{"a": 1, "b": 1, "c": 1}
	}
	var events []record.Event
	r := newFaultRun(specs, 1)
	r.loop, r.dilation, r.injector = node, 1, s
	r.event = func(e record.Event) { events = append(events, e) }
	r.changed = func() {}
	node.Post(func() { r.start(node.Now()) })
	loopUntil := loop.Time(until)
	v.RunUntil(loopUntil)
	node.Post(r.end)
	if !v.Run(func() bool { return r.ending && r.settled() }) {
		t.Fatalf("the faults never settled; asked so far: %v", s.log)
	}
	return r, events
}

func spec(name string, at, length time.Duration) faults.Spec {
	return faults.Spec{Name: name, Kind: faults.Loss, Schedule: faults.Schedule{At: at, For: length}}
}

func problems(r *faultRun) (out []string) {
	for _, f := range r.results() {
		for _, p := range f.Problems {
			out = append(out, f.Name+": "+p)
		}
	}
	return out
}

func TestFaultsHealLastInFirstOut(t *testing.T) {
	s := &scripted{}
	r, _ := play(t, s, time.Second, spec("a", 10*time.Millisecond, 0), spec("b", 20*time.Millisecond, 0), spec("c", 5*time.Millisecond, 0))
	var healed []string
	for _, l := range s.log {
		if n, ok := strings.CutPrefix(l, "heal "); ok {
			healed = append(healed, n)
		}
	}
	if fmt.Sprint(healed) != "[b a c]" || problems(r) != nil {
		t.Errorf("healed in the order %v, problems %v", healed, problems(r))
	}
}

func TestAFaultGoesThroughItsWholeLife(t *testing.T) {
	s := &scripted{hits: map[string]uint64{"a": 3}}
	f := spec("a", time.Millisecond, time.Millisecond)
	f.Schedule.Every, f.Schedule.Count = 5*time.Millisecond, 2
	r, events := play(t, s, time.Second, f)
	var life []string
	for _, e := range events {
		life = append(life, e.What)
	}
	if want := "planned applied verified healed verified clean planned applied verified healed verified clean"; strings.Join(life, " ") != want {
		t.Errorf("life:\n %s\nwant:\n %s", strings.Join(life, " "), want)
	}
	if got := r.results()[0]; got.Hits != 6 || got.Strikes != 2 || !got.Healed || !got.Verified || len(got.Problems) > 0 {
		t.Errorf("result: %+v", got)
	}
}

func TestAFailedHealIsTriedAgainAndThenFailsTheRun(t *testing.T) {
	r, _ := play(t, &scripted{broken: map[string]int{"heal a": 1}}, time.Second, spec("a", 0, 0))
	if problems(r) != nil || !r.results()[0].Healed {
		t.Errorf("one failure must not matter: %v", problems(r))
	}
	r, _ = play(t, &scripted{broken: map[string]int{"heal b": 2}}, time.Second, spec("a", 0, 0), spec("b", time.Millisecond, 0))
	if got := problems(r); len(got) != 1 || !strings.Contains(got[0], "b: IT COULD NOT BE HEALED") || r.results()[1].Healed {
		t.Errorf("problems %q", got)
	}
	if !r.results()[0].Healed {
		t.Error("the fault applied before it was not healed")
	}
}

func TestAnInjectorThatNeverAnswersDoesNotHangTheRun(t *testing.T) {
	for _, stuck := range []string{"apply a", "verify a", "hits a", "heal a", "clean a"} {
		s := &scripted{broken: map[string]int{stuck: -1}}
		r, _ := play(t, s, time.Second, spec("a", 0, 0), spec("b", 0, 0))
		if got := problems(r); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), "no answer within") {
			t.Errorf("%s: problems %q", stuck, got)
		}
		if !r.results()[1].Healed {
			t.Errorf("%s: the other fault was not healed", stuck)
		}
	}
}

func TestAFaultThatHitNothingFailsTheRunUnlessItMay(t *testing.T) {
	s := &scripted{hits: map[string]uint64{"a": 0, "b": 0}}
	may := spec("b", 0, 0)
	may.MayMiss = true
	r, _ := play(t, s, time.Second, spec("a", 0, 0), may, spec("c", time.Hour, 0))
	got := strings.Join(problems(r), "\n")
	if !strings.Contains(got, "a: it hit nothing") || strings.Contains(got, "b:") || !strings.Contains(got, "c: it never came into force") {
		t.Errorf("problems:\n%s", got)
	}
}

func TestSomethingLeftBehindFailsTheRun(t *testing.T) {
	r, _ := play(t, &scripted{broken: map[string]int{"clean a": 1}}, time.Second, spec("a", 0, 0))
	if got := problems(r); len(got) != 1 || !strings.Contains(got[0], "SOMETHING OF IT IS LEFT") || r.results()[0].Healed {
		t.Errorf("problems %q", got)
	}
}

func TestAFaultThatCameIntoForceTooLateIsHealedAllTheSame(t *testing.T) {
	s := &scripted{late: map[string]time.Duration{"apply a": applyDeadline + time.Second}}
	r, _ := play(t, s, 2*applyDeadline, spec("a", 0, 0), spec("b", 0, 0))
	if log := strings.Join(s.log, ", "); !strings.Contains(log, "heal a, hits a, clean a") {
		t.Errorf("it stays in force; asked: %s", log)
	}
	if got := problems(r); len(got) != 1 || !strings.Contains(got[0], "a: applying it failed: apply: no answer within") {
		t.Errorf("problems %q", got)
	}
}

func TestAFaultThatIsLateAtItsHealingIsNotTakenForItsNextStrike(t *testing.T) {
	s := &scripted{late: map[string]time.Duration{"apply a": applyDeadline + 2*time.Second}}
	f := spec("a", 0, time.Second)
	f.Schedule.Every, f.Schedule.Count = 10*time.Second, 5
	r, _ := play(t, s, time.Minute, f)
	if got := strings.Join(s.log, ", "); got != "apply a, heal a, hits a, clean a" {
		t.Errorf("asked: %s", got)
	}
	if got := strings.Join(problems(r), "\n"); !strings.Contains(got, "no answer within") {
		t.Errorf("problems %q", got)
	}
}

func TestAFaultThatCannotBeHealedDoesNotStrikeAgain(t *testing.T) {
	s := &scripted{broken: map[string]int{"heal a": 2}}
	f := spec("a", 0, time.Millisecond)
	f.Schedule.Every = 10 * time.Millisecond
	r, _ := play(t, s, time.Second, f)
	if n := strings.Count(strings.Join(s.log, ","), "apply a"); n != 1 {
		t.Errorf("applied %d times", n)
	}
	if got := problems(r); len(got) != 1 || !strings.Contains(got[0], "COULD NOT BE HEALED") {
		t.Errorf("problems %q", got)
	}
}

// A slow injector has its fault in force before traffic starts, and the fault's time counts from there.
func TestFaultsOfTimeZeroAreInForceBeforeTrafficStarts(t *testing.T) {
	const slow = 3 * time.Millisecond
	s := &scripted{late: map[string]time.Duration{"apply a": slow}, broken: map[string]int{"apply c": 1}, hits: map[string]uint64{"a": 1, "c": 1, "d": 1}}
	v := loop.NewVirtual(time.Microsecond)
	node := v.Node(1)
	s.l = node
	var events []record.Event
	kinds := func(k faults.Kind) bool { return k == faults.Loss }
	d := spec("d", 0, 0)
	d.Kind = faults.LinkDown
	again := spec("c", 0, time.Millisecond)
	again.Schedule.Every, again.Schedule.Count = 5*time.Millisecond, 2
	r := newFaultRun([]faults.Spec{spec("a", 0, time.Millisecond), spec("b", time.Microsecond, 0), again, d}, 1)
	r.loop, r.dilation, r.injector, r.changed = node, 1, s, func() {}
	r.event = func(e record.Event) { events = append(events, e) }
	var zero loop.Time
	node.Post(func() {
		r.strikeFirst(kinds, func() {
			if got := fmt.Sprint(s.log); got != "[apply a apply c verify a]" {
				t.Errorf("traffic starts when this has been asked of injectors: %v", got)
			}
			zero = node.Now()
			r.start(zero)
		})
	})
	v.RunUntil(loop.Time(time.Second))
	node.Post(r.end)
	if !v.Run(func() bool { return r.ending && r.settled() }) || zero == 0 {
		t.Fatalf("the faults never settled; traffic at %v; asked so far: %v", zero, s.log)
	}
	at := map[string]time.Duration{}
	for _, e := range events {
		if early := e.Text == "in force since before the workloads' time 0"; e.What == "applied" && early != (e.At < 0) {
			t.Errorf("%s, applied at %v, is %s", e.Name, e.At, e.Text)
		}
		if _, seen := at[e.Name+" "+e.What]; !seen {
			at[e.Name+" "+e.What] = e.At
		}
	}
	if before := at["a applied"]; before >= 0 || before < -slow || at["a planned"] > -slow {
		t.Errorf("planned at %v, applied at %v: want it up to %v before traffic", at["a planned"], before, slow)
	}
	if after := at["a healed"]; after < time.Millisecond || after > 2*time.Millisecond {
		t.Errorf("it was healed at %v, not 1 ms after traffic started", after)
	}
	if at["d applied"] < 0 || at["c applied"] < 5*time.Millisecond {
		t.Errorf("what may not strike first did at %v; what failed then struck at %v, not at its next window", at["d applied"], at["c applied"])
	}
	if x := r.all[0].strikes[0]; x.asked != at["a planned"] || x.applied != at["a applied"] || x.healed != at["a healed"] {
		t.Errorf("the strike %+v has other times than its events", x)
	}
}

func TestAnInterruptedRunLetsTrafficGoAndHealsWhatStruckFirst(t *testing.T) {
	s := &scripted{late: map[string]time.Duration{"apply a": time.Millisecond}, hits: map[string]uint64{"a": 1}}
	v := loop.NewVirtual(time.Microsecond)
	node := v.Node(1)
	s.l = node
	r := newFaultRun([]faults.Spec{spec("a", 0, 0)}, 1)
	r.loop, r.dilation, r.injector, r.changed, r.event = node, 1, s, func() {}, func(record.Event) {}
	open := false
	node.Post(func() {
		r.strikeFirst(func(faults.Kind) bool { return true }, func() { open = true; r.start(node.Now()) })
		r.end()
	})
	if !v.Run(func() bool { return open && r.settled() }) {
		t.Fatalf("open: %v; asked so far: %v", open, s.log)
	}
	if got := fmt.Sprint(s.log); got != "[apply a verify a heal a hits a clean a]" {
		t.Errorf("asked of the injector: %v", got)
	}
}
