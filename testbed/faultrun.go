package testbed

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
)

// Wall times that an injector may take before it counts as stuck. Healing gets its time anew
// whatever was spent before.
const (
	applyDeadline = 20 * time.Second
	healDeadline  = 30 * time.Second
)

// faultRun drives a scenario's faults through planned → applied → verified → healed → verified
// clean, on the run's control loop. All methods are called on it.
type faultRun struct {
	loop     loop.Loop
	dilation loop.Dilation
	injector fabric.Injector
	epoch    loop.Time // when the workloads started
	event    func(record.Event)
	changed  func() // after each step, so that the run can see whether it may end
	scope    faults.Scope

	seed     uint64
	all      []*oneFault
	active   []*oneFault // in force or on the way in or out, in order of applying
	started  bool
	early    []record.Event // of before start, their times the loop's
	traffic  func()         // lets it start; nil: it has, or nobody asked
	ending   bool
	lastSeen map[faults.Trigger]string // of what was waited for and had not come
}

// oneFault is a fault of the scenario over all its windows.
type oneFault struct {
	spec    faults.Spec
	zero    loop.Time      // what its schedule counts from
	course  *faults.Course // when it strikes; as which, the turn says
	turn    faults.Turn    // the one in force, or the next
	result  record.Fault
	strikes []strike
	window  int // the next turn
	timer   loop.Timer
	armed   bool // waits for its next window
	waiting bool // for an event
	applied fabric.Applied
	busy    bool // an injector's answer is awaited
	healing bool
	clean   bool // every strike so far was verified clean
	first   bool // it strikes before traffic starts
	spent   bool // what it did is not known or can't be undone: it must not strike again
	ended   bool // no further window comes

	since     loop.Time // when it came into force, the last time
	cancelled bool      // it was told to end before its schedule does
}

// strike is when a strike was asked for, in force for sure, and over for sure, since the workloads started.
type strike struct{ asked, applied, healed time.Duration }

func newFaultRun(specs []faults.Spec, seed uint64) *faultRun {
	r := &faultRun{seed: seed, lastSeen: map[faults.Trigger]string{}}
	for _, spec := range specs {
		r.add(spec)
	}
	return r
}

// add takes one more fault in, which is planned by start, or by plan where that has been.
func (r *faultRun) add(spec faults.Spec) *oneFault {
	f := &oneFault{spec: spec, clean: true, result: record.Fault{
		Name: spec.Name, Kind: string(spec.Kind), At: spec.At, MayMiss: spec.MayMiss, Problems: []string{},
	}}
	f.course = faults.NewCourse(&f.spec, r.seed)
	f.timer.Fire = func() { r.fire(f) }
	r.all = append(r.all, f)
	return f
}

// plan arms the fault's next window, if there is one and it is known when.
func (r *faultRun) plan(f *oneFault) {
	if !r.started {
		return // start does
	}
	turn, state := f.course.Turn(f.window)
	f.waiting = false
	switch {
	case state == faults.Over || r.ending || f.spent:
		f.ended = true
		r.healedForGood(f)
		r.changed()
	case state == faults.Waiting:
		f.waiting = true
		r.tell(f, "planned", fmt.Sprintf("to strike %v after %s", turn.Start, f.spec.Schedule.When), "")
		r.changed()
	default:
		f.turn = turn
		r.tell(f, "planned", fmt.Sprintf("to strike at %v", turn.Start), "")
		f.armed = true
		r.loop.Arm(&f.timer, f.zero.Add(turn.Start))
	}
}

func (r *faultRun) fire(f *oneFault) {
	if !f.armed {
		return
	}
	f.armed = false
	if f.applied != nil { // the window ends
		r.heal(f)
		return
	}
	r.apply(f)
}

func (r *faultRun) apply(f *oneFault) {
	f.window++
	if err := r.composes(f); err != nil {
		r.fail(f, "it can't come into force: %v", err)
		r.plan(f)
		return
	}
	r.active = append(r.active, f)
	answered, given := false, false
	began := r.loop.Now()
	r.ask(f, "apply", applyDeadline, func(done func(error)) {
		r.injector.Apply(f.turn.Spec, func(a fabric.Applied, err error) {
			r.loop.Post(func() {
				answered = true
				if a != nil {
					f.applied = a
				}
				if given && a != nil { // nobody waits for it any more, but it must be healed
					r.tell(f, "applied", "too late: it is healed at once", "warning")
					r.active = append(r.active, f)
					r.heal(f)
				}
				done(err)
			})
		})
	}, func(err error) {
		if err != nil {
			r.fail(f, "applying it failed: %v", err)
			given = true
			f.spent = !answered
			if f.applied == nil {
				r.drop(f)
				return
			}
			r.heal(f)
			return
		}
		f.result.Strikes++
		// The first packets may be hit long before an injector can answer: whoever reads the events
		// must not take what happened in between for having happened without the fault.
		since := "before the workloads' time 0"
		if r.started {
			since = fmt.Sprintf("some time after %v", began.Sub(r.epoch).Round(time.Microsecond))
		}
		r.tell(f, "applied", "in force since "+since, "")
		f.strikes = append(f.strikes, strike{asked: began.Sub(r.epoch), applied: r.loop.Now().Sub(r.epoch), healed: faults.Forever})
		f.since = r.loop.Now()
		r.inForce(f)
		r.verify(f)
	})
}

func (r *faultRun) verify(f *oneFault) {
	r.ask(f, "verify", applyDeadline, r.posted(f.applied.Verify), func(err error) {
		if err != nil {
			r.fail(f, "reading it back failed: %v", err)
		} else {
			f.result.Verified = true
			r.tell(f, "verified", "", "")
		}
		switch {
		case r.ending:
			r.healNext()
		case f.cancelled:
			r.cancelNext()
		case r.started:
			r.armEnd(f)
		}
		r.changed()
		r.letGo()
	})
}

// armEnd arms the end of the window that is open, as far as it is known.
func (r *faultRun) armEnd(f *oneFault) {
	turn, state := f.course.Turn(f.window - 1)
	switch {
	case state != faults.Due: // what ends it came before it was in force
		r.heal(f)
	case turn.End != faults.Forever:
		f.armed = true
		r.loop.Arm(&f.timer, f.zero.Add(turn.End))
	}
}

// composes says why a fault that is due can't be in force beside those that are.
func (r *faultRun) composes(f *oneFault) error {
	if r.scope.Topology == nil {
		return nil
	}
	var together []faults.Spec
	for _, a := range r.active {
		together = append(together, always(a.turn.Spec))
	}
	return faults.Together(append(together, always(f.turn.Spec)), r.scope)[len(together)]
}

// always is a fault as if it were in force all the time.
func always(s faults.Spec) faults.Spec {
	s.Schedule = faults.Schedule{}
	return s
}

// heal undoes the fault, reads its hits, which are then all that there will be, and checks that nothing of it is left.
// It tries to heal twice before it gives up.
func (r *faultRun) heal(f *oneFault) {
	f.healing = true
	r.undo(f, 2)
}

func (r *faultRun) undo(f *oneFault, tries int) {
	r.ask(f, "heal", healDeadline, r.posted(f.applied.Heal), func(err error) {
		if err != nil && tries > 1 {
			r.tell(f, "heal failed", err.Error()+"; once more", "warning")
			r.undo(f, tries-1)
			return
		}
		if err != nil {
			f.clean, f.spent = false, true
			r.fail(f, "IT COULD NOT BE HEALED: %v", err)
		}
		r.count(f, err == nil)
	})
}

// count takes the hits of a strike.
func (r *faultRun) count(f *oneFault, healed bool) {
	r.ask(f, "count hits", applyDeadline, func(done func(error)) {
		f.applied.Hits(func(n uint64, err error) {
			r.loop.Post(func() {
				if err == nil {
					f.result.Hits += int64(n)
				}
				done(err)
			})
		})
	}, func(err error) {
		if err != nil {
			r.fail(f, "counting its hits failed: %v", err)
		}
		if !healed {
			r.drop(f)
			return
		}
		r.tell(f, "healed", fmt.Sprintf("%d hits", f.result.Hits), "")
		if n := len(f.strikes); n > 0 {
			f.strikes[n-1].healed = r.loop.Now().Sub(r.epoch)
		}
		r.ask(f, "verify clean", healDeadline, r.posted(f.applied.VerifyClean), func(err error) {
			if err != nil {
				f.clean = false
				r.fail(f, "SOMETHING OF IT IS LEFT after healing: %v", err)
			} else {
				r.tell(f, "verified clean", "", "")
			}
			r.drop(f)
		})
	})
}

// drop takes a fault out of force and plans its next window.
func (r *faultRun) drop(f *oneFault) {
	f.applied, f.healing = nil, false
	for i, a := range r.active {
		if a == f {
			r.active = append(r.active[:i], r.active[i+1:]...)
			break
		}
	}
	r.plan(f)
	if r.ending {
		r.healNext()
	} else {
		r.cancelNext()
	}
	r.changed()
	r.letGo()
}

// end plans nothing more and heals what is in force, last in first out. changed is called
// until settled.
func (r *faultRun) end() {
	if r.ending {
		return
	}
	r.ending = true
	for _, f := range r.all {
		if f.armed {
			r.loop.Disarm(&f.timer)
			f.armed = false
		}
		if f.applied == nil && !f.busy {
			f.ended = true // and if it waits for an event, it has waited in vain
		}
	}
	r.healNext()
	r.changed()
}

// healNext heals the fault that was applied last, unless it is on its way already.
func (r *faultRun) healNext() {
	if len(r.active) == 0 {
		return
	}
	if f := r.active[len(r.active)-1]; !f.busy && !f.healing && f.applied != nil {
		r.heal(f)
	}
}

// settled says that nothing is in force or on its way.
func (r *faultRun) settled() bool { return len(r.active) == 0 }

// over says that no further window of any fault comes by itself and none is in force that ends by itself.
func (r *faultRun) over() bool {
	for _, f := range r.all {
		open := false
		if f.applied != nil && !f.busy && !f.armed {
			open = true // until the end of the run, or an event
		}
		if !f.ended && !open && !f.waiting {
			return false
		}
	}
	return true
}

// posted makes an injector's callback come back on the loop.
func (r *faultRun) posted(call func(func(error))) func(func(error)) {
	return func(done func(error)) {
		call(func(err error) { r.loop.Post(func() { done(err) }) })
	}
}

// ask calls the injector and waits for its answer no longer than a deadline of wall time. The
// answer is taken once; one that comes too late is only noted.
func (r *faultRun) ask(f *oneFault, what string, within time.Duration, call func(done func(error)), then func(error)) {
	f.busy = true
	answered := false
	answer := func(err error) {
		if answered {
			return
		}
		answered = true
		f.busy = false
		then(err)
	}
	late := &loop.Timer{}
	late.Fire = func() { answer(fmt.Errorf("%s: no answer within %v of wall time", what, within)) }
	r.loop.Arm(late, r.loop.Now().Add(max(r.dilation.Fabric(within), 1)))
	call(func(err error) {
		r.loop.Disarm(late)
		answer(err)
	})
}

func (r *faultRun) tell(f *oneFault, what, text, level string) {
	e := record.Event{At: r.loop.Now().Sub(r.epoch), Source: "fault", Name: f.spec.Name, What: what, Text: text, Level: level}
	if !r.started {
		r.early = append(r.early, e)
		return
	}
	r.event(e)
}

func (r *faultRun) fail(f *oneFault, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.result.Problems = append(f.result.Problems, text)
	r.tell(f, "failed", text, "error")
}
