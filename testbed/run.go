package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/report"
	"github.com/rocebed/rocebed/topo"
)

// teardownDeadline bounds taking a fabric down, in wall time, whatever was spent before.
const teardownDeadline = 90 * time.Second

// RunOptions are what a run takes besides its scenario. The zero value is a run of the
// scenario as it says, into a folder of its own below out.
type RunOptions struct {
	Backend  Backend   // overrides the scenario's, unless empty
	Dilation *Dilation // overrides the scenario's
	Seed     *uint64   // overrides the scenario's
	// AllowSlow only warns of ports that the machine let carry less than their rate: for runs that are about bytes and counters,
	// which hold, and not about rates and times, which don't.
	AllowSlow bool
	Guest     bool // run in the guest whatever this machine can
	InGuest   bool // this machine is the guest

	// Out is the folder that the record goes to; it must be empty or not exist. Empty: out/NAME-TIME, or
	// where that is taken out/NAME-TIME-2 and so on.
	Out string
	// Testbed names what the run makes on the machine. Empty: the scenario's name and the process id.
	Testbed string
	// Captures are ports whose packets go into the record.
	Captures []topo.PortRef
	// Window is a part of the run that is measured by itself, on this machine alone; nil: none.
	Window *Window

	Progress Progress     // nil: silent
	Log      *slog.Logger // nil: discarded
}

// Outcome is what a run came to.
type Outcome struct {
	Summary record.Summary
	Window  *WindowReadings // of RunOptions.Window; nil: there was none, or the run failed before its end
}

// Passed says whether the verdict is pass.
func (o *Outcome) Passed() bool { return o.Summary.Verdict == record.Pass }

// defaultOut is where a record goes when nothing else was said: out/NAME-TIME, and where that is taken (a run in virtual
// time is over in less than a second, and several may begin in one) out/NAME-TIME-2 and so on.
func defaultOut(s *Scenario, now time.Time) string {
	return filepath.Join("out", s.Name+"-"+now.Format("20060102-150405"))
}

// Run executes a scenario and leaves a record. An error means that there is no verdict: the
// scenario asks for what can't be had (strict.Problems, ErrIncapable) or the record could not be
// written. Whatever went wrong on the fabric is a failed Outcome. When ctx ends, faults are
// healed and the fabric is taken down before Run returns.
func Run(ctx context.Context, s *Scenario, opt RunOptions) (*Outcome, error) {
	if opt.Progress == nil {
		opt.Progress = Silent{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	began := time.Now()
	if opt.Testbed == "" {
		opt.Testbed = defaultTestbed(s)
	}
	if opt.Seed != nil {
		s.Seed = *opt.Seed
	}
	if opt.Dilation != nil {
		s.Dilation = *opt.Dilation
	}
	if err := checkCaptures(s, opt.Captures); err != nil {
		return nil, err
	}
	if opt.Out != "" {
		if err := record.Vacant(opt.Out); err != nil {
			return nil, err
		}
	}
	choice, err := Choose(ctx, s, opt.Backend, opt.Guest)
	if err != nil {
		return nil, err
	}
	if choice.Guest && opt.InGuest {
		return nil, fmt.Errorf("%w: %s", ErrIncapable, choice.Why)
	}
	if !opt.InGuest { // the machine around it has said it
		opt.Progress.Note(Describe(s))
		for _, line := range Layout(s.Plan) {
			opt.Progress.Note("  " + line)
		}
		opt.Progress.Note(choice.Why)
	}
	if choice.Guest && opt.Window != nil {
		return nil, fmt.Errorf("%w: a part of a run is measured on the machine that the fabric is on, and this one is in a guest", ErrIncapable)
	}
	if err := choice.check(s, loop.Dilation(s.Dilation)); err != nil {
		return nil, err
	}
	if choice.Builder != nil && choice.Builder.CheckName != nil {
		if err := choice.Builder.CheckName(opt.Testbed); err != nil {
			return nil, err
		}
	}
	if opt.Out == "" {
		if opt.Out, err = record.Claim(defaultOut(s, began)); err != nil {
			return nil, err
		}
		defer record.Unclaim(opt.Out) // refused where there is a record now
	}
	if choice.Guest {
		return runInGuest(ctx, s, opt, choice)
	}
	return runHere(ctx, s, opt, choice)
}

// run is one execution on this machine.
type run struct {
	s      *Scenario
	opt    RunOptions
	choice Choice
	rec    *record.Writer

	started  time.Time
	manifest record.Manifest
	phases   phaseClock
	problems []string
	warnings []string
	table    *metrics.Table
	clock    func() time.Duration // fabric time since the workloads started; nil before there is a fabric
}

func newRun(s *Scenario, opt RunOptions, choice Choice, began time.Time) *run {
	r := &run{s: s, opt: opt, choice: choice, started: began, table: metrics.NewTable(metrics.Standard)}
	r.manifest = record.Manifest{
		Name: s.Name, Guest: opt.InGuest, Backend: string(choice.Backend), BackendWhy: choice.Why, Seed: s.Seed, Dilation: uint32(s.Dilation), DilationNamed: s.Dilation.String(),
		Versions: versions(), Host: thisHost(), Started: r.started, Scenario: s.Path, Path: opt.Out,
	}
	if choice.virtual() {
		r.manifest.Dilation, r.manifest.VirtualTime = 0, true
	}
	return r
}

func runHere(ctx context.Context, s *Scenario, opt RunOptions, choice Choice) (*Outcome, error) {
	r := newRun(s, opt, choice, time.Now())
	var err error
	if r.rec, err = record.Create(opt.Out, r.manifest); err != nil {
		return nil, err
	}
	defer r.rec.Abandon()
	if err := r.putPlan(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncapable, err)
	}
	traffic := r.onFabric(ctx)
	out, err := r.conclude(traffic)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncapable, err)
	}
	return out, nil
}

func (r *run) putPlan() error {
	return errors.Join(
		r.rec.Put(record.ScenarioFile, r.s.Source),
		r.rec.PutJSON(record.RunFile, map[string]any{"backend": r.choice.Backend, "seed": r.s.Seed, "dilation": r.s.Dilation.String()}),
		r.rec.PutJSON(record.TopologyFile, r.s.Topology),
		r.rec.PutJSON(record.PlanFile, planView(r.s.Plan)))
}

// onFabric brings the fabric up, runs the scenario's traffic on it and takes it down. What
// goes wrong becomes problems.
func (r *run) onFabric(ctx context.Context) *traffic {
	dilation, err := r.choice.dilation(ctx, r.s, phased{r})
	if err == nil {
		err = r.choice.check(r.s, dilation)
	}
	if err != nil {
		r.problem("dilation: %v", err)
		return nil
	}
	if !r.choice.virtual() {
		r.manifest.Dilation = uint32(dilation)
	}
	for _, p := range r.choice.doubts(r.s, dilation) {
		r.warning(doubted(p))
	}
	fab, err := r.choice.build(ctx, r.s, dilation, r.opt.Testbed, phased{r}, r.opt.Log)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), ErrInterrupted):
		r.problem("interrupted before the fabric was up: %v", ErrInterrupted)
		return nil
	case err != nil:
		r.problem("bring-up: %v", err)
		return nil
	}
	defer func() {
		r.step("taking it down")
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownDeadline)
		defer cancel()
		if err := fab.Close(down); err != nil {
			r.problem("teardown: %v (rocebed clean removes what is left)", err)
		}
		r.phases.end()
	}()
	t := newTraffic(r, fab)
	t.run(ctx)
	r.keepTraces(ctx, fab)
	for _, w := range gather(fab.Warnings()) {
		r.warning(w)
	}
	r.judgeKeepUp(fab.KeepUp())
	return t
}

// keepTraces puts what NICs traced into the record.
func (r *run) keepTraces(ctx context.Context, fab fabric.Fabric) {
	tr, ok := fab.(fabric.Tracer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectTimeout)
	defer cancel()
	all, err := tr.Traces(ctx)
	for _, t := range all {
		err = errors.Join(err, r.rec.Put("traces/"+t.Port.Node+"-"+t.Port.Port+".txt", []byte(t.Text)))
	}
	if err != nil {
		r.problem("traces: %v", err)
	}
}

// judgeKeepUp takes what the fabric says of the machine.
func (r *run) judgeKeepUp(err error) {
	switch {
	case err == nil:
	case r.opt.AllowSlow && errors.Is(err, fabric.ErrSlow):
		r.warning("rates and times can't be trusted, bytes and counters can: " + err.Error())
	default:
		r.problem("the figures can't be trusted: %v", err)
	}
}

// conclude judges, seals the record and writes the reports.
func (r *run) conclude(t *traffic) (*Outcome, error) {
	sum := r.judge(t)
	err := errors.Join(
		r.rec.PutJSON(record.FaultsFile, sum.Faults),
		r.rec.PutJSON(record.VerdictsFile, map[string]any{"verdict": sum.Verdict, "expectations": sum.Expectations, "problems": sum.Problems}))
	if t != nil {
		err = errors.Join(err, r.rec.PutJSON(record.WorkloadsFile, t.results))
	}
	if err != nil {
		return nil, err
	}
	if sum.Hash, err = r.rec.Seal(); err != nil {
		return nil, err
	}
	sum.Wall = time.Since(r.started)
	if err := r.writeReports(&sum); err != nil {
		return nil, err
	}
	m := r.manifest
	m.Verdict, m.Problems = sum.Verdict, sum.Problems
	m.Ended, m.Wall, m.Phases = time.Now(), time.Since(r.started), r.phases.all
	if _, err := r.rec.Finish(m); err != nil {
		return nil, err
	}
	out := &Outcome{Summary: sum}
	if t != nil && t.window != nil {
		out.Window, _ = t.window.outcome() // an error is a problem already
	}
	return out, nil
}

func (r *run) writeReports(sum *record.Summary) error {
	rd, err := record.Open(r.rec.Dir())
	if err != nil {
		return err
	}
	return eachReport(rd, sum, r.rec.PutBeside)
}

// eachReport makes the reports that lie in a record.
func eachReport(rd *record.Reader, sum *record.Summary, put func(name string, content []byte) error) error {
	page, err := report.HTML(sum, rd, metrics.Standard)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	junit, err := report.JUnit(sum)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	object, err := sum.JSON()
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return errors.Join(put(record.SummaryFile, object), put("report.html", page), put("junit.xml", junit))
}

// phased is the run's progress with its steps timed for the manifest.
type phased struct{ r *run }

func (p phased) Step(text string)   { p.r.step("%s", text) }
func (p phased) Status(text string) { p.r.opt.Progress.Status(text) }
func (p phased) Note(text string)   { p.r.opt.Progress.Note(text) }

func (r *run) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.phases.begin(text)
	r.opt.Progress.Step(text)
}

// problem notes why the run fails. It may be called from the run's goroutine only.
func (r *run) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.problems = append(r.problems, text)
	r.event(record.Event{At: r.now(), Source: "run", What: "problem", Text: text, Level: "error"})
}

// warning notes what whoever reads the results should know.
func (r *run) warning(text string) {
	r.warnings = append(r.warnings, text)
	r.event(record.Event{At: r.now(), Source: "run", What: "warning", Text: text, Level: "warning"})
}

func (r *run) now() time.Duration {
	if r.clock == nil {
		return 0
	}
	return r.clock()
}

// event records. An error of the record sticks to it and comes out at the end.
func (r *run) event(e record.Event) { _ = r.rec.Event(e) }

// reading keeps one reading for the record and the expectations.
func (r *run) reading(m metrics.Reading) {
	_ = r.rec.Reading(metrics.Standard, m)
	r.table.Add(m)
}

// phaseClock takes the wall times of a run's parts.
type phaseClock struct {
	all   []record.PhaseTime
	since time.Time
}

func (c *phaseClock) begin(name string) {
	c.end()
	c.all = append(c.all, record.PhaseTime{Name: name})
	c.since = time.Now()
}

func (c *phaseClock) end() {
	if n := len(c.all); n > 0 && !c.since.IsZero() {
		c.all[n-1].Wall = time.Since(c.since)
		c.since = time.Time{}
	}
}
