package incidents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
)

// Row is an incident on one backend: without the cure, and with it.
type Row struct {
	Incident string          `json:"incident"`
	Number   int             `json:"number"`
	Backend  testbed.Backend `json:"backend"`
	Without  *Result         `json:"without"`
	With     *Result         `json:"with"`
	Err      string          `json:"error,omitempty"` // why there is no verdict
}

// AsToldOf says whether both runs went as the catalogue has it.
func (r Row) AsToldOf() bool {
	return r.Err == "" && r.Without != nil && r.With != nil && r.Without.AsToldOf() && r.With.AsToldOf()
}

// RunAll runs incidents without and with their cures on each of the backends that they are asserted on, one after the other, and hands each row
// over when it is done. Records go below opt.Out, which must be empty or not exist, as NAME.BACKEND and NAME.cure.BACKEND. When ctx ends there are no more rows.
func RunAll(ctx context.Context, which []Incident, on []testbed.Backend, opt testbed.RunOptions, each func(Row)) error {
	if err := record.Vacant(opt.Out); err != nil {
		return err
	}
	if err := os.MkdirAll(opt.Out, 0o755); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	for _, b := range on {
		for _, x := range which {
			if !x.On(b) {
				continue
			}
			row := Row{Incident: x.Name, Number: x.Number, Backend: b}
			for _, cured := range []bool{false, true} {
				o := opt
				o.Backend = b
				o.Out = filepath.Join(opt.Out, strings.TrimSuffix(x.File(cured), ".yaml")+"."+string(b))
				r, err := Run(ctx, x, cured, o)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					row.Err = err.Error()
					break
				}
				if cured {
					row.With = r
				} else {
					row.Without = r
				}
			}
			each(row)
		}
	}
	return nil
}

// Text writes rows for a terminal.
func Text(w io.Writer, rows []Row) error {
	var b strings.Builder
	for _, r := range rows {
		mark := "✓"
		if !r.AsToldOf() {
			mark = "✗"
		}
		fmt.Fprintf(&b, "\n%s  %2d  %-19s %-7s symptom %-9s cure %s\n", mark, r.Number, r.Incident, r.Backend, symptom(r.Without), cure(r.With))
		if r.Err != "" {
			fmt.Fprintf(&b, "        %s\n", r.Err)
		}
		for _, f := range r.figures() {
			fmt.Fprintf(&b, "        %-24s %12s → %s\n", f.name, f.without, f.with)
		}
		for _, run := range []*Result{r.Without, r.With} {
			if run != nil && !run.AsToldOf() {
				fmt.Fprintf(&b, "        see %s\n", run.Summary.Record)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes rows as a table for docs, by incident.
func Markdown(w io.Writer, rows []Row) error {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Number, b.Number) })
	var b strings.Builder
	b.WriteString("| # | incident | backend | symptom | cure | without → with it |\n| ---: | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		var parts []string
		for _, f := range r.figures() {
			parts = append(parts, fmt.Sprintf("%s %s → %s", f.name, f.without, f.with))
		}
		fmt.Fprintf(&b, "| %d | `%s` | `%s` | %s | %s | %s |\n", r.Number, r.Incident, r.Backend, symptom(r.Without), cure(r.With), strings.Join(parts, "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func symptom(r *Result) string {
	switch {
	case r == nil:
		return "–"
	case r.Symptom && r.Passed:
		return "seen"
	case r.Symptom:
		return "seen, run failed"
	}
	return "not seen"
}

func cure(r *Result) string {
	switch {
	case r == nil:
		return "–"
	case r.AsToldOf():
		return "works"
	case r.Symptom:
		return "doesn't work"
	}
	return "run failed"
}

type figure struct{ name, without, with string }

// figures are both runs' figures side by side; one taken when the machine was too busy has a tilde where it is a rate or a time.
func (r Row) figures() []figure {
	var out []figure
	take := func(run *Result, set func(*figure, string)) {
		if run == nil {
			return
		}
		for i, v := range run.Figures {
			if i == len(out) {
				out = append(out, figure{v.Name, "–", "–"})
			}
			text := v.String()
			if run.Slow && v.Value != 0 && (v.Unit == Rate || v.Unit == Time) {
				text = "~" + text
			}
			set(&out[i], text)
		}
	}
	take(r.Without, func(f *figure, s string) { f.without = s })
	take(r.With, func(f *figure, s string) { f.with = s })
	return out
}
