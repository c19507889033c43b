package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/workloads"
)

// traffic is the middle of a run: workloads, faults and readings on a living fabric. It has a
// control loop of its own with the fabric's time; everything below "on the loop" lives there.
type traffic struct {
	r    *run
	fab  fabric.Fabric
	time timekeeper
	up   chan struct{} // closed at the workloads' time zero
	over chan struct{} // closed when workloads and faults have ended
	s    *sampler
	// injectors makes the faults, on the loop.
	injectors *Injectors

	// On the loop.
	faults      *faultRun
	zero        loop.Time // when the workloads started
	ready       bool
	enginesDone bool
	finished    map[string]bool
	closed      bool
	early       []workloads.Event // of before there was a time zero
	sighted     []func()          // packets that were watched for, likewise

	// Read by anyone once run has returned.
	engine       *workloads.Engine
	results      []*workloads.Result
	faultResults []record.Fault
	engineErr    error
	spans        map[string]*span
	first        metrics.Reading // the one before
	last         metrics.Reading // the one after
	lastDone     string          // the workload that finished last
	captured     []string        // captures that missed nothing
	lost         []*lossWatch    // what becomes of packets that events drop
	known        []packet.Connection
	window       *windowWatch // nil: none
}

// span is what the requesters' retry counter said around a workload.
type span struct {
	before, after float64
	ended         bool
}

// settleSpans replaces what was read a little late, while the workload ran already, by exact readings where
// there are any: a workload that began with the run began at the first reading; one that waited
// for another began where that ended; the last to end ended at the last reading.
func (t *traffic) settleSpans() {
	for i := range t.r.s.Workloads {
		w := &t.r.s.Workloads[i]
		sp := t.spans[w.Name]
		if sp == nil || w.Start > 0 {
			continue
		}
		if w.After == "" {
			sp.before = retries(t.first)
		} else if prev := t.spans[w.After]; prev != nil && prev.ended {
			sp.before = min(sp.before, prev.after)
		}
	}
	if sp := t.spans[t.lastDone]; sp != nil && sp.ended {
		sp.after = max(sp.after, retries(t.last))
	}
}

func newTraffic(r *run, fab fabric.Fabric) *traffic {
	t := &traffic{
		r: r, fab: fab, time: timekeeperOf(fab, r.opt.Progress), up: make(chan struct{}), over: make(chan struct{}),
		faults: newFaultRun(r.s.Faults, r.s.Seed), finished: map[string]bool{}, spans: map[string]*span{},
	}
	t.injectors = NewInjectors(r.s, r.choice.Backend, fab, t.time.loop())
	r.clock = t.elapsed
	return t
}

// run drives the traffic to its end, or winds it down when ctx ends, and takes the readings
// before, during and after. When it returns, no fault is in force.
func (t *traffic) run(ctx context.Context) {
	defer t.time.close()
	t.s = newSampler(t.r, t.fab, t.time)
	t.r.step("reading every counter")
	t.first = t.s.once(ctx, metrics.Before, 0)

	t.prepareFaults()
	t.watchLosses()
	stopCaptures := t.capture(ctx)
	stopWatches := t.watch(ctx)
	cfg := engineConfig(t.fab, t.r.s, t.observe)
	cfg.Connected = t.connected()
	if _, virtual := t.fab.(fabric.Virtual); !virtual { // there a fault at time 0 gets to its nodes no later than the first message
		cfg.Gate = t.gate
	}
	t.injectors.Hook(&cfg)
	engine, err := workloads.NewEngine(cfg, t.r.s.Workloads)
	if err != nil {
		t.r.problem("workloads: %v", err)
	} else {
		t.r.step("running %s", traffics(t.r.s))
		t.start(engine)
		stopMeasuring := t.measure()
		stop := t.time.sample(t.s, t)
		whole, done := t.whole(ctx)
		t.wait(whole)
		done()
		stop()
		stopMeasuring()
	}
	stopWatches()
	after := context.WithoutCancel(ctx)
	ending := t.beforeCapturesEnd(after)
	stopCaptures()
	t.r.step("reading every counter again")
	t.last = t.s.once(after, metrics.After, t.elapsed())
	t.compareCaptures(ending)
	t.collectResults()
	t.recoveries()
	if err := t.injectors.Close(); err != nil {
		t.r.problem("faults: %v", err)
	}
}

// prepareFaults lets the backend do ahead what would make faults strike late. What fails here
// fails again, and loudly, when the fault is due.
func (t *traffic) prepareFaults() {
	for _, spec := range t.r.s.Faults {
		if err := t.injectors.Prepare(spec); err != nil {
			t.tell(record.Event{Source: "fault", Name: spec.Name, What: "not prepared", Text: err.Error(), Level: "warning"})
		}
	}
}

// start arms the faults and starts the workloads.
func (t *traffic) start(engine *workloads.Engine) {
	t.engine = engine
	t.injectors.Drives(engine)
	ctl := t.time.loop()
	ctl.Post(func() {
		f := t.faults
		f.loop, f.dilation, f.injector = ctl, t.fab.Dilation(), t.injectors
		f.event, f.changed, f.scope = t.tell, t.look, faults.Scope{Topology: t.r.s.Topology, Plan: t.r.s.Plan, Seed: t.r.s.Seed}
		if len(t.r.s.Workloads) == 0 {
			t.enginesDone = true
			t.begin(ctl.Now())
			return
		}
		engine.Start(func(report *workloads.Report) {
			ctl.Post(func() {
				t.results, t.engineErr, t.enginesDone = report.Results, report.Err, true
				t.look()
			})
		})
	})
}

// begin is the workloads' time zero: the schedule counts from here.
func (t *traffic) begin(zero loop.Time) {
	if t.ready {
		return
	}
	t.ready, t.zero = true, zero
	close(t.up)
	if err := t.fab.JudgeKeepUp(); err != nil {
		t.tell(record.Event{Source: "keepup", What: "failed", Text: err.Error(), Level: "warning"})
	}
	t.tell(record.Event{Source: "run", What: "started", Data: map[string]int64{"fabric_ns": int64(zero)}})
	for _, e := range t.early {
		t.take(e)
	}
	t.early = nil
	t.faults.start(zero)
	for _, f := range t.sighted {
		f()
	}
	t.sighted = nil
	t.look()
}

// look ends the run when nothing is left to happen.
func (t *traffic) look() {
	if t.closed || !t.enginesDone {
		return
	}
	if !t.ready { // no workload ever got going
		t.begin(t.time.loop().Now())
		return
	}
	if len(t.r.s.Workloads) > 0 || t.faults.over() {
		t.faults.end()
	}
	if t.faults.ending && t.faults.settled() && !t.closed {
		t.closed = true
		close(t.over)
	}
}

// observe takes the engine's events, on a host's loop.
func (t *traffic) observe(e workloads.Event) {
	t.time.loop().Post(func() {
		switch {
		case e.Kind == workloads.EventReady:
			t.begin(e.At)
		case t.ready:
			t.take(e)
		default:
			t.early = append(t.early, e) // begin knows how long before zero it was
		}
	})
}

// take handles an event of the engine, on the loop, once the workloads' time zero is known.
func (t *traffic) take(e workloads.Event) {
	level := ""
	switch e.Kind {
	case workloads.EventStarted:
		t.time.ask(t.s, func(m metrics.Reading) { t.span(e.Workload).before = retries(m) })
		defer t.faults.hear(faults.Trigger{On: faults.OnWorkload, Name: e.Workload, State: faults.Started}, "")
	case workloads.EventFinished:
		t.finished[e.Workload], t.lastDone = true, e.Workload
		defer t.faults.hear(faults.Trigger{On: faults.OnWorkload, Name: e.Workload, State: faults.Finished}, "")
		t.time.ask(t.s, func(m metrics.Reading) {
			sp := t.span(e.Workload)
			sp.after, sp.ended = retries(m), true
		})
	case workloads.EventError, workloads.EventViolation:
		level = "error"
	case workloads.EventFlowUp, workloads.EventCompleted:
		return // results say it; a thousand flows would drown the rest
	}
	text := e.Text
	if e.Flow != "" {
		text = e.Flow + ": " + text
	}
	t.tell(record.Event{At: e.At.Sub(t.zero), Source: "workload", Name: e.Workload, What: string(e.Kind), Text: text, Level: level})
}

func (t *traffic) span(workload string) *span {
	if t.spans[workload] == nil {
		t.spans[workload] = &span{}
	}
	return t.spans[workload]
}

// retries sums the requesters' retry counters of a reading.
func retries(m metrics.Reading) (sum float64) {
	for _, s := range m.Samples {
		if s.Name == "completer_retry_err" {
			sum += s.Value
		}
	}
	return sum
}

// tell records an event and shows those that a watcher wants to see.
func (t *traffic) tell(e record.Event) {
	t.r.event(e)
	if e.What == "planned" || e.What == "flow-up" {
		return
	}
	line := fmt.Sprintf("%10s  %s", e.At.Round(time.Microsecond), e.Source)
	if e.Name != "" {
		line += " " + e.Name
	}
	line += ": " + e.What
	if e.Text != "" {
		line += " (" + e.Text + ")"
	}
	t.r.opt.Progress.Note(line)
}

// elapsed is fabric time since the workloads started, 0 before that. In real time any goroutine may ask.
func (t *traffic) elapsed() time.Duration {
	select {
	case <-t.up:
		return t.time.now().Sub(t.zero)
	default:
		return 0
	}
}

// collectResults takes over what the loop made.
func (t *traffic) collectResults() {
	err := t.time.do(context.Background(), func() {
		t.faultResults = t.faults.results()
		for _, sp := range t.spans {
			if !sp.ended {
				sp.after = retries(t.last)
			}
		}
		t.settleSpans()
	})
	if err != nil {
		t.r.problem("results: %v", err)
	}
}

// engineConfig gives the engine the fabric's NICs. It knows nothing of fabrics.
func engineConfig(fab fabric.Fabric, s *Scenario, observe workloads.Observer) workloads.Config {
	cfg := workloads.Config{
		Topology: s.Topology, Seed: s.Seed, Observer: observe,
		ControlTimeout: fab.Dilation().Fabric(controlTimeout),
	}
	if v, ok := fab.(fabric.Virtual); ok {
		cfg.LookAhead, cfg.ControlTimeout = v.LookAhead(), virtualControlTimeout
	}
	for _, h := range fab.Hosts() {
		for _, n := range h.NICs() {
			cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
		}
	}
	return cfg
}

// controlTimeout is how long one verbs call may take, in wall time: a TCG guest with a hundred
// queue pairs to make is slow, not stuck. In virtual time nothing is slow.
const (
	controlTimeout        = 60 * time.Second
	virtualControlTimeout = time.Second
)

// sinceEpoch is the wall time that a fabric in real time has lived for.
func sinceEpoch(fab fabric.Fabric) time.Duration { return time.Since(fab.Epoch()) }
