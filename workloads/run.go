package workloads

import (
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// phase is where a workload is in its life.
type phase int

const (
	waiting phase = iota // for another workload
	opening
	up      // queue pairs in RTS
	flowing // messages under way
	closing
	over
)

// program is what a workload does between up and over. Its methods are called on the
// coordinator's loop, and what they ask for is done on the hosts'; each callback comes once,
// on the coordinator's loop.
type program interface {
	open(done func(error))
	start(at loop.Time, done func())
	// stop lets what is outstanding complete; abort moves queue pairs to the error state. Both make
	// start's done come soon.
	stop()
	abort(why string)
	close(done func(error))
	// kill ends what the program does on a host; done is called when it has.
	kill(host, why string, done func())
	result(*Result)
	count() int // flows
}

// run is a workload on its way. It lives on the coordinator's loop.
type run struct {
	e         *Engine
	spec      *Spec
	prog      program
	first     int // its first flow's number among all
	phase     phase
	followers []*run
	opened    loop.Time
	failure   string
	flowed    bool // it got as far as flowing
	stopped   bool
	timer     loop.Timer
	killed    []func() // what has happened while it was being opened
	result    *Result
	found     []Violation // the first
	violated  uint64
}

// examples is how many violations a result shows, and how many one end sends word of.
const examples = 16

func newRun(e *Engine, s *Spec) (*run, error) {
	r := &run{e: e, spec: s, result: &Result{Name: s.Name, Kind: s.Kind}}
	r.timer.Fire = r.flow
	var err error
	if s.Collective() {
		r.prog, err = newCollective(r)
	} else {
		r.prog, err = newFlows(r)
	}
	return r, err
}

func (r *run) emit(kind EventKind, flow, text string) {
	r.e.cfg.Observer(Event{At: r.e.l.Now(), Kind: kind, Workload: r.spec.Name, Flow: flow, Text: text})
}

func (r *run) fail(why string) {
	if r.failure == "" {
		r.failure = why
	}
}

// open sets the queue pairs up.
func (r *run) open() {
	r.phase, r.opened = opening, r.e.l.Now()
	r.prog.open(func(err error) {
		r.result.SetupTime = r.e.l.Now().Sub(r.opened)
		if err != nil {
			r.fail("set-up: " + err.Error())
			r.emit(EventError, "", r.failure)
			r.close()
		} else {
			r.phase = up
		}
		for _, kill := range r.killed {
			kill()
		}
		r.killed = nil
		if r.spec.After == "" {
			r.e.ready(1)
		} else if r.phase == up {
			r.startAt(r.e.l.Now().Add(2 * r.e.cfg.LookAhead)) // as ready has it: who hears of connections can act on them before the first packet
		}
	})
}

// follow begins a workload that had to wait for another.
func (r *run) follow() {
	if r.stopped || r.e.stopped {
		r.stopped = true
		r.fail(fmt.Sprintf("never ran: stopped while it waited for workload %s", r.spec.After))
		r.end()
		return
	}
	r.open()
}

// startAt starts traffic Spec.Start after a time.
func (r *run) startAt(zero loop.Time) {
	if r.phase != up {
		return
	}
	if r.stopped {
		r.close()
		return
	}
	r.e.l.Arm(&r.timer, zero.Add(r.spec.Start))
}

// flow lets the traffic go. What crosses to the hosts takes the look-ahead.
func (r *run) flow() {
	r.phase, r.flowed = flowing, true
	at := r.e.l.Now().Add(r.e.cfg.LookAhead)
	r.e.cfg.Observer(Event{At: at, Kind: EventStarted, Workload: r.spec.Name})
	r.prog.start(at, r.close)
}

func (r *run) stop() {
	if r.phase == over || r.phase == closing || r.stopped {
		return
	}
	r.stopped = true
	switch {
	case r.phase == flowing:
		r.prog.stop()
	case r.phase == up && r.timer.Armed():
		r.e.l.Disarm(&r.timer)
		r.close()
	}
}

func (r *run) abort(why string) {
	if r.phase == flowing {
		r.fail(why)
		r.prog.abort(why)
	}
}

func (r *run) close() {
	r.phase = closing
	r.prog.close(func(err error) {
		if err != nil {
			r.result.TearDown = err
			r.fail("tear-down: " + err.Error())
		}
		r.end()
	})
}

// end draws up the result.
func (r *run) end() {
	r.phase = over
	res := r.result
	r.prog.result(res)
	res.Stopped = r.stopped
	res.Violations, res.Examples = r.violated, r.found
	if r.violated > 0 {
		r.fail(fmt.Sprintf("%d violations, the first: %v", r.violated, &r.found[0]))
	}
	if want, ok := statusNamed(r.spec.ExpectError); ok && !r.stopped && !slices.Contains(res.Statuses, want.String()) {
		r.fail(fmt.Sprintf("expected a queue pair to end with %s, but %s", want, seen(res.Statuses)))
	}
	if res.Messages == 0 && res.Errors == 0 {
		r.fail(r.idle())
	}
	res.Failure = r.failure
	res.Passed = r.failure == ""
	r.e.cfg.Observer(Event{At: r.e.l.Now(), Kind: EventFinished, Workload: r.spec.Name, Text: res.Failure, Result: res})
	r.e.finished(r)
}

// idle says why nothing was done. What did nothing has proved nothing, so it doesn't pass.
func (r *run) idle() string {
	switch {
	case r.stopped && !r.flowed:
		return "never ran: stopped before its start"
	case r.stopped:
		return "stopped before its first message had completed"
	}
	return "nothing was done"
}

func seen(statuses []string) string {
	if len(statuses) == 0 {
		return "none failed"
	}
	return fmt.Sprintf("saw %v", statuses)
}

// violation takes one in. more counts those that the end found but sent no word of.
func (r *run) violation(v Violation) {
	r.violated++
	if len(r.found) < examples {
		r.found = append(r.found, v)
	}
	r.e.cfg.Observer(Event{At: r.e.l.Now(), Kind: EventViolation, Workload: r.spec.Name, Flow: v.Flow, Text: v.String(), Violation: &v})
}

// expected says whether a flow that ended with a status ended as the spec wants: with the
// error expected, or flushed behind it.
func (r *run) expected(status string) bool {
	want, ok := statusNamed(r.spec.ExpectError)
	return ok && status == want.String()
}

// stallLimit is how long a flow may stand still.
func (r *run) stallLimit() time.Duration {
	if r.spec.StallTimeout > 0 {
		return r.spec.StallTimeout
	}
	return max(2*r.spec.retryBudget(), r.e.cfg.ControlTimeout)
}
