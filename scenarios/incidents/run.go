package incidents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/report"
)

// Result is what a run of an incident came to.
type Result struct {
	Incident string `json:"incident"`
	Number   int    `json:"number"`
	Backend  string `json:"backend"`
	Cure     bool   `json:"cure"`
	// Symptom says that all of the symptom's expectations hold of this run: they must without the cure, and with it they must not.
	Symptom bool `json:"symptom"`
	// Judged says that the run went far enough for Symptom to mean anything: it came up and wasn't cut short.
	Judged bool `json:"judged"`
	// Passed says that what the file expects came out: the run's own verdict, but that where a slow machine is allowed, its slowness fails nothing.
	Passed  bool           `json:"passed"`
	Figures []Value        `json:"figures"`
	Slow    bool           `json:"slow"` // the machine was too busy for rates and times to be trusted
	Summary record.Summary `json:"summary"`
}

// Value is a figure and what it came to.
type Value struct {
	Name  string  `json:"name"`
	Unit  Unit    `json:"unit"`
	Value float64 `json:"value"` // bits a second, nanoseconds of fabric time, or a plain number
	Err   string  `json:"error,omitempty"`
}

// AsToldOf says whether the run went as the catalogue has it: its expectations held, and the symptom was there without the cure and
// gone with it.
func (r *Result) AsToldOf() bool { return r.Passed && r.Judged && r.Symptom != r.Cure }

// String is the value as people write it.
func (v Value) String() string {
	if v.Err != "" {
		return "–"
	}
	if v.Value == 0 {
		return "0"
	}
	switch v.Unit {
	case Rate:
		return report.Rate(int64(v.Value))
	case Time:
		return report.Span(time.Duration(v.Value))
	case Ratio:
		return fmt.Sprintf("%.2f", v.Value)
	}
	return report.Count(int64(v.Value))
}

// Run runs the incident, or its cure. An error means that there is no verdict, as testbed.Run's.
func Run(ctx context.Context, x Incident, cured bool, opt testbed.RunOptions) (*Result, error) {
	s, err := x.Scenario(cured)
	if err != nil {
		return nil, err
	}
	broken, err := x.Scenario(false)
	if err != nil {
		return nil, err
	}
	out, err := testbed.Run(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	sum := out.Summary
	rd, err := record.Open(sum.Record)
	if err != nil {
		return nil, err
	}
	table, err := rd.Table(metrics.Standard)
	if err != nil {
		return nil, err
	}
	r := &Result{Incident: x.Name, Number: x.Number, Backend: sum.Backend, Cure: cured, Judged: ctx.Err() == nil && ran(&sum), Passed: out.Passed(), Summary: sum}
	r.Symptom = r.Judged
	for _, e := range broken.Judge(&sum, table) {
		r.Symptom = r.Symptom && e.Passed
	}
	for _, f := range x.Figures {
		v := Value{Name: f.Name, Unit: f.Unit}
		if v.Value, err = broken.Figure(f.Expr, &sum, table); err != nil {
			v.Err = err.Error()
		}
		r.Figures = append(r.Figures, v)
	}
	for _, w := range sum.Warnings {
		r.Slow = r.Slow || strings.HasPrefix(w, "rates and times can't be trusted")
	}
	if !r.Passed && opt.AllowSlow && onlySlow(&sum) {
		r.Passed, r.Slow = true, true
	}
	return r, nil
}

// ran says whether all workloads had their time.
func ran(sum *record.Summary) bool {
	for _, p := range sum.Problems {
		if strings.HasPrefix(p, "interrupted") || strings.HasPrefix(p, "bring-up") {
			return false
		}
	}
	return len(sum.Workloads) > 0
}

// onlySlow says whether a run failed since the machine was slow, and for nothing else: also where pauses took so long that a port's headroom may
// have been too small, which a testbed that allows slow ports doesn't let pass. What an incident expects holds then, too.
func onlySlow(sum *record.Summary) bool {
	for _, e := range sum.Expectations {
		if !e.Passed {
			return false
		}
	}
	for _, p := range sum.Problems {
		if !strings.HasPrefix(p, "the figures can't be trusted: ") {
			return false
		}
	}
	return len(sum.Problems) > 0 && len(sum.Expectations) > 0
}
