package testbed

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// faults judges the file's faults, takes them apart and binds them to what they strike.
func (c *checker) faults() {
	names := map[string]bool{}
	scope := c.scope()
	for i := range c.f.Faults {
		f, path := &c.f.Faults[i], fmt.Sprintf("faults[%d]", i)
		if names[f.Name] && f.Name != "" {
			c.wrong(path+".name", "there are two faults called %q", f.Name)
		}
		names[f.Name] = true
		if c.sound(path) {
			c.take(path, f.Validate())
		}
		if !c.sound(path) || c.s.Topology == nil {
			c.unmade = append(c.unmade, f.Name)
			continue
		}
		made, err := faults.Expand(f, scope)
		c.take(path, err)
		if err != nil {
			c.unmade = append(c.unmade, f.Name)
		}
		for _, m := range made {
			c.s.Faults, c.s.faultKeys = append(c.s.Faults, m), append(c.s.faultKeys, path)
		}
	}
	c.schedules()
	if c.s.Topology != nil {
		refused := faults.Together(c.s.Faults, scope)
		for i, key := range c.s.faultKeys {
			c.take(key, refused[i])
		}
	}
}

// schedules judges when the faults strike: what they wait for must be there, and must come about.
func (c *checker) schedules() {
	known := faults.Names{Workloads: workloadNames(c.s.Workloads), Metrics: metrics.Standard.Names(), Topology: c.s.Topology}
	for _, f := range c.f.Faults {
		known.Faults = append(known.Faults, f.Name)
	}
	known.Faults = append(known.Faults, faultNames(c.s.Faults)...)
	for i := range c.s.Faults {
		f, key := &c.s.Faults[i], c.s.faultKeys[i]
		if !c.sound(key) {
			continue
		}
		c.take(key, c.namesWorkloads(f, known.Workloads))
		err := f.Schedule.Refers(known)
		c.take(key, strict.Under("schedule", err))
		for _, t := range faults.Triggers(c.s.Faults[i : i+1]) {
			if err == nil && t.On == faults.OnMetric {
				if _, err := selectorOf(t); err != nil {
					c.wrong(key+".schedule", "%v", err)
				}
			}
		}
		if f.Schedule.Every > 0 && f.Schedule.Count == 0 && len(c.s.Workloads) == 0 {
			c.wrong(key+".schedule.every", "it comes back for ever, and there is no workload whose end would end the run: give a count, or a workload")
		}
	}
	c.circles(c.s.Faults, c.s.faultKeys)
}

// circles refuses faults that only wait for each other.
func (c *checker) circles(all []faults.Spec, keys []string) {
	refused := faults.Circles(all)
	for i, key := range keys {
		c.take(key, strict.Under("schedule", refused[i]))
	}
}

// namesWorkloads says which workloads that the fault is about aren't there. Nothing is wrong while none is there at all: then programs may be.
func (c *checker) namesWorkloads(f *faults.Spec, names []string) error {
	var errs []error
	find := func(key, pattern string) {
		globbed := func(n string) bool { ok, _ := path.Match(pattern, n); return ok && key != "workload" }
		if pattern == "" || slices.Contains(names, pattern) || slices.ContainsFunc(names, globbed) {
			return
		}
		errs = append(errs, strict.At(key, "there is no workload %q%s", pattern, strict.DidYouMean(pattern, names)))
	}
	if len(names) > 0 {
		find("workload", f.Workload)
		for i := range f.Events {
			find(fmt.Sprintf("events[%d].match.workload", i), f.Events[i].Match.Workload)
		}
	}
	return errors.Join(errs...)
}

// scope is what the faults' selectors are resolved in. A workload that is wrong has no flows.
func (c *checker) scope() faults.Scope {
	scope := faults.Scope{Topology: c.s.Topology, Plan: c.s.Plan, Seed: c.s.Seed}
	if c.s.Topology == nil || !slices.ContainsFunc(c.f.Faults, func(f faults.Spec) bool { return f.ByFlow() }) {
		return scope
	}
	for i := range c.s.Workloads {
		w := &c.s.Workloads[i]
		if !c.sound(fmt.Sprintf("workloads[%d]", i)) {
			continue
		}
		ends, err := workloads.Ends(w, c.s.Topology)
		if err != nil { // CheckAll says so
			continue
		}
		for _, e := range ends {
			scope.Flows = append(scope.Flows, faults.Flow{Workload: w.Name, Index: e.Index, Src: e.Src, Dst: e.Dst})
		}
	}
	return scope
}

// checkFaults asks a backend which of the faults can't be made there. nodes is asked for those that its nodes make.
func (s *Scenario) checkFaults(b Backend, d loop.Dilation, nodes func(faults.Spec) error) error {
	var errs []error
	for i := range s.Faults {
		errs = append(errs, strict.Under(s.faultKeys[i], s.canFault(b, d, s.Faults[i], nodes)))
	}
	return errors.Join(errs...)
}
