//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/topo"
)

// stageKey names a loaded stage: a fault's on one direction of a cable.
type stageKey struct {
	fault string
	from  topo.PortRef
}

// Prepare loads the programs of a fault that will be applied, perhaps several times. Loading takes
// milliseconds of a machine that may be busy by then.
func (in *injector) Prepare(spec faults.Spec) error {
	effects, err := in.plan(spec)
	if err != nil {
		return err
	}
	a := &applied{in: in, name: spec.Name, effects: effects}
	return a.named("prepare", a.each(func(e effect) error {
		if p, ok := e.(interface{ prepare() error }); ok {
			return p.prepare()
		}
		return nil
	}))
}

// stage is an impairment's loaded program, from the last time that it was wanted if that was the
// same. Stages stay loaded until the fabric closes.
func (in *injector) stage(from topo.PortRef, imp cable.Impairment) (*cable.Stage, error) {
	key := stageKey{imp.ID, from}
	in.stagesMu.Lock()
	have := in.stages[key]
	in.stagesMu.Unlock()
	if have != nil && have.Is(imp.Model, imp.Seed) {
		return have, nil
	}
	s, err := in.f.cables.Load(from, imp.Model, imp.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", imp.ID, err)
	}
	in.stagesMu.Lock()
	defer in.stagesMu.Unlock()
	in.outdated = append(in.outdated, in.stages[key]) // it may be in force still, under the same name
	in.stages[key] = s
	return s, nil
}

// unload frees all stages.
func (in *injector) unload() error {
	in.stagesMu.Lock()
	defer in.stagesMu.Unlock()
	var errs []error
	for _, s := range in.stages {
		in.outdated = append(in.outdated, s)
	}
	for _, s := range in.outdated {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	in.outdated = nil
	clear(in.stages)
	return errors.Join(errs...)
}
