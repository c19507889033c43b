package testbed

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo/strict"
)

// faultSource is faults as they were given for a living fabric.
type faultSource struct {
	doc   *strict.Document
	specs []faults.Spec
	path  func(i int) string // of the i-th in the document
	lines int                // that were put before what was given
}

// readFaults reads a list of faults, one alone, or a file with the key faults.
func readFaults(file string, source []byte) (in faultSource, err error) {
	var shape any
	_ = yaml.Unmarshal(source, &shape) // what is wrong strict says better
	var list struct {
		Faults []faults.Spec `yaml:"faults,required"`
	}
	in.path = func(i int) string { return fmt.Sprintf("faults[%d]", i) }
	m, _ := shape.(map[string]any)
	_, whole := m["faults"]
	switch _, many := shape.([]any); {
	case many:
		in.lines = 1
		in.doc, err = strict.Read(file, append([]byte("faults:\n"), source...), &list)
	case whole || m == nil:
		in.doc, err = strict.Read(file, source, &list)
	default:
		var one faults.Spec
		in.path = func(int) string { return "" }
		in.doc, err = strict.Read(file, source, &one)
		list.Faults = []faults.Spec{one}
	}
	in.specs = list.Faults
	return in, in.placed(err)
}

// placed gives errors their places in what was given.
func (in faultSource) placed(err error) error {
	err = in.doc.Locate("", err)
	if ps, ok := err.(strict.Problems); ok {
		for _, p := range ps {
			if p.Line > in.lines {
				p.Line -= in.lines
			}
		}
	}
	return err
}

// expand judges the faults beside those that there are, and binds them to what they strike on a fabric of a scenario. keys has each one's path.
func (in faultSource) expand(s *Scenario, there []string) (made []faults.Spec, keys []string, err error) {
	shadow := *s
	shadow.doc = in.doc
	c := &checker{s: &shadow, f: &file{Faults: in.specs}}
	scope := faults.Scope{Topology: s.Topology, Plan: s.Plan, Seed: s.Seed}
	names := slices.Clone(there)
	for i := range in.specs {
		f := &in.specs[i]
		if f.Name == "" {
			f.Name = freeName(f, names)
		}
		if slices.Contains(names, f.Name) {
			c.wrong(in.path(i), "there is a fault called %q, which is not over: rocebed fault heal %s ends it", f.Name, f.Name)
			continue
		}
		names = append(names, f.Name)
		all, err := faults.Expand(f, scope)
		c.take(in.path(i), err)
		for _, m := range all {
			made, keys = append(made, m), append(keys, in.path(i))
			names = append(names, m.Name)
		}
	}
	known := faults.Names{Workloads: []string{}, Faults: names, Metrics: metrics.Standard.Names(), Topology: s.Topology}
	for i := range made {
		c.take(keys[i], strict.Under("schedule", made[i].Schedule.Refers(known)))
		for _, t := range faults.Triggers(made[i : i+1]) {
			if t.On == faults.OnMetric {
				if _, err := selectorOf(t); err != nil {
					c.wrong(keys[i]+".schedule", "%v", err)
				}
			}
		}
	}
	c.circles(made, keys)
	return made, keys, in.placed(c.err())
}

func freeName(f *faults.Spec, names []string) string {
	base := string(f.Kind)
	switch {
	case f.Storm != nil:
		base = "storm"
	case f.Sequence != nil:
		base = "sequence"
	case f.Parallel != nil:
		base = "parallel"
	}
	for n, name := 2, base; ; n, name = n+1, fmt.Sprintf("%s-%d", base, n) {
		if !slices.Contains(names, name) {
			return name
		}
	}
}
