package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed/record"
)

// consoleKept is how many of the last lines of a dead guest's console go into the record.
const consoleKept = 400

// consoleFile holds them, beside data/.
const consoleFile = "console.txt"

// killedCode is the least exit code of a program that a signal ended.
const killedCode = 128

// guestRun is a run in a guest that is over: what is left is the record.
type guestRun struct {
	s        *Scenario
	opt      RunOptions
	choice   Choice
	place    *place
	began    time.Time
	sum      record.Summary // where ended is nil
	warning  string         // of what the machine saw of the guest; empty: nothing
	ended    error          // why the run has no result
	complete func(*record.Manifest)
}

// conclude takes the record out of the guest and makes the outcome. Where the run ended without a
// result it keeps what there is: the record as far as it came, or, of a guest that is gone, one
// that says so.
func (g *guestRun) conclude(fetch func(dir string) error, clock string, console []string) (*Outcome, error) {
	if g.ended != nil {
		return g.salvage(fetch, clock, console)
	}
	var problems []string
	if clock != "" {
		problems = append(problems, "the figures can't be trusted: "+clock)
	}
	err := g.place.take(func(dir string) error {
		if err := fetch(dir); err != nil {
			return err
		}
		if len(problems) == 0 && g.warning == "" {
			return nil
		}
		if len(problems) > 0 {
			g.fail(problems)
		}
		if g.warning != "" {
			g.sum.Warnings = append(g.sum.Warnings, g.warning)
		}
		return rewriteReports(dir, &g.sum)
	}, func(m *record.Manifest) {
		g.complete(m)
		if len(problems) > 0 {
			m.Verdict, m.Problems = g.sum.Verdict, g.sum.Problems
		}
	})
	if err != nil {
		// The result is there, its record isn't: the guest died in between, or the disk is full.
		g.ended = fmt.Errorf("its record did not come: %w", err)
		return g.salvage(nil, clock, console)
	}
	g.sum.Guest, g.sum.Record, g.sum.Wall = true, g.opt.Out, time.Since(g.began)
	return &Outcome{Summary: g.sum}, nil
}

// fail turns the summary's verdict.
func (g *guestRun) fail(problems []string) {
	g.sum.Verdict = record.Fail
	g.sum.Problems = append(g.sum.Problems, problems...)
}

// salvage keeps what there is of a run that ended without a result.
func (g *guestRun) salvage(fetch func(dir string) error, clock string, console []string) (*Outcome, error) {
	problems := []string{g.ended.Error()}
	if clock != "" {
		problems = append(problems, clock)
	}
	if fetch != nil {
		fetched := g.place.take(fetch, func(m *record.Manifest) {
			g.complete(m)
			m.Verdict, m.Problems = record.Fail, append(m.Problems, problems...)
		})
		if fetched == nil {
			g.sum = emptySummary(g.s, g.choice, g.opt.Out)
			g.sum.Guest, g.sum.Wall = true, time.Since(g.began)
			g.fail(problems)
			return &Outcome{Summary: g.sum}, nil
		}
		var refused *GuestError
		if errors.As(g.ended, &refused) && refused.Code < killedCode {
			// It refused to begin: the reason is what it said, and there is nothing to keep.
			return nil, g.ended
		}
	}
	if err := g.place.again(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrIncapable, g.ended), err)
	}
	sum, err := g.obituary(problems, console)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrIncapable, g.ended), err)
	}
	return &Outcome{Summary: sum}, nil
}

// obituary makes the record of a run whose guest took its own with it.
func (g *guestRun) obituary(problems, console []string) (record.Summary, error) {
	var sum record.Summary
	err := g.place.take(func(dir string) error {
		opt := g.opt
		opt.Out, opt.InGuest = dir, true
		r := newRun(g.s, opt, g.choice, g.began)
		var err error
		if r.rec, err = record.Create(dir, r.manifest); err != nil {
			return err
		}
		defer r.rec.Abandon()
		if err := r.putPlan(); err != nil {
			return err
		}
		for _, p := range problems {
			r.problem("%s", p)
		}
		if len(console) > 0 {
			if err := r.rec.PutBeside(consoleFile, []byte(strings.Join(console, "\n")+"\n")); err != nil {
				return err
			}
		}
		out, err := r.conclude(nil)
		if err != nil {
			return err
		}
		sum = out.Summary
		return nil
	}, g.complete)
	sum.Record, sum.Wall = g.opt.Out, time.Since(g.began)
	return sum, err
}

// emptySummary is a summary of nothing.
func emptySummary(s *Scenario, c Choice, out string) record.Summary {
	return record.Summary{
		Name: s.Name, Backend: string(c.Backend), Seed: s.Seed, Dilation: uint32(s.Dilation), DilationNamed: s.Dilation.String(), Record: out,
		Workloads: []record.Workload{}, Faults: []record.Fault{}, Expectations: []record.Expectation{}, Counters: []record.Counter{},
		Problems: []string{}, Warnings: []string{},
	}
}

// rewriteReports makes the reports of a record again, for a summary that was changed since.
func rewriteReports(dir string, sum *record.Summary) error {
	rd, err := record.Open(dir)
	if err != nil {
		return err
	}
	return eachReport(rd, sum, func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, name), content, 0o644)
	})
}
