package compare

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// Comparison is several runs side by side. Every list of values has one for each run, in the order of Runs.
type Comparison struct {
	Runs []Run `json:"runs"`
	// Scenario and Seed say whether all runs had the same.
	SameScenario bool `json:"same_scenario"`
	SameSeed     bool `json:"same_seed"`

	Workloads    []Group       `json:"workloads"`
	Faults       []Group       `json:"faults"`
	Counters     []Row         `json:"counters"`
	Expectations []Expectation `json:"expectations"`
	// Reasons are why the rows that differ may, where the runs' backends explain it. Rows name them by their place here.
	Reasons []Difference `json:"reasons"`
}

// Run is one of the runs.
type Run struct {
	Label    string `json:"label"` // what tells it from the others: the backend, or the record's folder
	Record   string `json:"record"`
	Name     string `json:"name"`
	Verdict  string `json:"verdict"`
	Backend  string `json:"backend"`
	Guest    bool   `json:"guest"`
	Kernel   string `json:"kernel"`   // that the fabric lived on
	Dilation uint32 `json:"dilation"` // 0: none, in virtual time
	// DilationNamed is what the scenario or the command line said.
	DilationNamed string `json:"dilation_named"`

	Seed uint64        `json:"seed"`
	Hash string        `json:"hash"`
	Wall time.Duration `json:"wall_ns"`
	// Fabric is the fabric time from the start of the workloads to the last event; 0: nothing ran.
	Fabric   time.Duration `json:"fabric_ns"`
	Problems []string      `json:"problems"`
	Warnings []string      `json:"warnings"`
}

// Group is a workload or a fault, with what was measured of it.
type Group struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Rows []Row  `json:"rows"`
}

// Row is one quantity.
type Row struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // bps, ns, bytes, bool (1 and 0), or a metric's own
	// Values are null where a run has none: it doesn't measure that, or ended before.
	Values []*float64 `json:"values"`
	// Differs says that the values are further apart than chance puts them; see Row.judge.
	Differs bool `json:"differs"`
	// Ratio is the largest value by the least, 0 where there is none.
	Ratio float64 `json:"ratio,omitempty"`
	// Why are the places in Reasons of what may be behind it.
	Why []int `json:"why,omitempty"`
}

// Expectation is one of the scenario's, with what became of it on each run.
type Expectation struct {
	Expr string `json:"expr"`
	// Passed is null where a run has no such expectation.
	Passed []*bool `json:"passed"`
	// Saw are the values that a run which failed it saw; empty for the others.
	Saw [][]record.Value `json:"saw"`
}

// Passed says whether every run did.
func (c *Comparison) Passed() bool {
	return !slices.ContainsFunc(c.Runs, func(r Run) bool { return r.Verdict != record.Pass })
}

// measured is a record as far as it is compared.
type measured struct {
	sum    *record.Summary
	table  *metrics.Table
	source []byte
}

// Records compares the runs that left these records; one alone is a comparison too. A record that was cut short is an error.
func Records(reg *metrics.Registry, records ...*record.Reader) (*Comparison, error) {
	if len(records) == 0 {
		return nil, errors.New("there is no record to compare")
	}
	c := &Comparison{SameScenario: true, SameSeed: true, Workloads: []Group{}, Faults: []Group{}, Counters: []Row{}, Expectations: []Expectation{}, Reasons: []Difference{}}
	var all []measured
	for _, r := range records {
		m, run, err := read(reg, r)
		if err != nil {
			return nil, err
		}
		all, c.Runs = append(all, m), append(c.Runs, run)
		c.SameScenario = c.SameScenario && bytes.Equal(m.source, all[0].source)
		c.SameSeed = c.SameSeed && m.sum.Seed == all[0].sum.Seed
	}
	label(c.Runs)
	c.workloads(all)
	c.faults(all)
	if err := c.counters(reg, all); err != nil {
		return nil, err
	}
	c.expectations(all)
	c.explain()
	return c, nil
}

func read(reg *metrics.Registry, r *record.Reader) (measured, Run, error) {
	var m measured
	var err error
	if m.sum, err = r.Summary(); err != nil {
		return m, Run{}, err
	}
	if m.source, err = r.File(record.ScenarioFile); err != nil {
		return m, Run{}, fmt.Errorf("record %s: %w", r.Dir(), err)
	}
	if m.table, err = r.Table(reg); err != nil {
		return m, Run{}, err
	}
	events, err := r.Events()
	if err != nil {
		return m, Run{}, err
	}
	run := Run{
		Record: r.Dir(), Name: m.sum.Name, Verdict: m.sum.Verdict, Backend: m.sum.Backend, Guest: m.sum.Guest, Kernel: r.Manifest().Host.Kernel,
		Dilation: m.sum.Dilation, DilationNamed: m.sum.DilationNamed, Seed: m.sum.Seed, Hash: m.sum.Hash, Wall: m.sum.Wall, Problems: m.sum.Problems, Warnings: m.sum.Warnings,
	}
	if n := len(events); n > 0 {
		run.Fabric = max(0, events[n-1].At)
	}
	return m, run, nil
}

// label gives each run the shortest name that only it has: its backend, else its folder, else its place too.
func label(runs []Run) {
	by := []func(i int, r Run) string{
		func(_ int, r Run) string { return r.Backend },
		func(_ int, r Run) string { return filepath.Base(filepath.Clean(r.Record)) },
		func(i int, r Run) string { return fmt.Sprintf("%d: %s", i+1, r.Backend) },
	}
	for _, name := range by {
		seen := map[string]bool{}
		for i := range runs {
			runs[i].Label = name(i, runs[i])
			seen[runs[i].Label] = true
		}
		if len(seen) == len(runs) {
			return
		}
	}
}

// names are the names of what each run has, in the order of their first appearance.
func names[T any](all []measured, of func(*record.Summary) []T, name func(T) string) (out []string) {
	for _, m := range all {
		for _, x := range of(m.sum) {
			if n := name(x); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// find is the one of that name, nil where there is none.
func find[T any](all []T, name func(T) string, want string) *T {
	if i := slices.IndexFunc(all, func(x T) bool { return name(x) == want }); i >= 0 {
		return &all[i]
	}
	return nil
}

func (c *Comparison) workloads(all []measured) {
	of := func(s *record.Summary) []record.Workload { return s.Workloads }
	name := func(w record.Workload) string { return w.Name }
	for _, n := range names(all, of, name) {
		g := Group{Name: n, Rows: newRows(len(all), ofWorkloads)}
		for i, m := range all {
			if w := find(of(m.sum), name, n); w != nil {
				g.Kind = w.Kind
				set(g.Rows, i, ofWorkloads, w)
			}
		}
		c.Workloads = append(c.Workloads, g)
	}
}

func (c *Comparison) faults(all []measured) {
	of := func(s *record.Summary) []record.Fault { return s.Faults }
	name := func(f record.Fault) string { return f.Name }
	for _, n := range names(all, of, name) {
		g := Group{Name: n, Rows: newRows(len(all), ofFaults)}
		for i, m := range all {
			if f := find(of(m.sum), name, n); f != nil {
				g.Kind = f.Kind
				set(g.Rows, i, ofFaults, f)
			}
		}
		c.Faults = append(c.Faults, g)
	}
}

// counters are those that a result table of any of the runs shows, each run's own total of them: one that did not move is 0, one that
// a backend doesn't measure is null.
func (c *Comparison) counters(reg *metrics.Registry, all []measured) error {
	of := func(s *record.Summary) []record.Counter { return s.Counters }
	for _, n := range names(all, of, func(x record.Counter) string { return x.Name }) {
		d, _ := reg.Lookup(n)
		row := Row{Name: n, Unit: d.Unit, Values: make([]*float64, len(all))}
		for i, m := range all {
			series, err := m.table.Select(n, nil)
			if err != nil {
				return err
			}
			if len(series) > 0 {
				total := m.table.Total(n, nil)
				row.Values[i] = &total
			}
		}
		c.Counters = append(c.Counters, row)
	}
	return nil
}

func (c *Comparison) expectations(all []measured) {
	of := func(s *record.Summary) []record.Expectation { return s.Expectations }
	name := func(x record.Expectation) string { return x.Expr }
	for _, n := range names(all, of, name) {
		e := Expectation{Expr: n, Passed: make([]*bool, len(all)), Saw: make([][]record.Value, len(all))}
		for i, m := range all {
			if x := find(of(m.sum), name, n); x != nil {
				e.Passed[i] = &x.Passed
				if !x.Passed {
					e.Saw[i] = x.Values
				}
			}
		}
		c.Expectations = append(c.Expectations, e)
	}
}
