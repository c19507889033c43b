package soak

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/sim"
	"github.com/rocebed/rocebed/topo/strict"
)

// Result is a run that was judged.
type Result struct {
	Summary record.Summary
	Metrics *metrics.Table
}

// Count is how much a metric grew, over all of its series that match; 0 where there is none.
func (r *Result) Count(metric string, labels map[string]string) int64 {
	return int64(r.Metrics.Total(metric, labels))
}

// Run makes a run of a scenario in virtual time, on so many cores, and leaves its record in dir, which doesn't exist yet.
// change, unless nil, changes what the fabric is made from.
func Run(ctx context.Context, s *testbed.Scenario, dir string, cores int, change func(*sim.Config)) (*Result, error) {
	ctx = context.WithValue(ctx, fabricKey{}, func(c *sim.Config) {
		c.Workers = cores
		if change != nil {
			change(c)
		}
	})
	out, err := testbed.Run(ctx, s, testbed.RunOptions{Backend: testbed.Sim, Out: dir})
	if err != nil {
		return nil, err
	}
	rd, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := rd.Verify(); err != nil {
		return nil, err
	}
	r := &Result{Summary: out.Summary}
	r.Metrics, err = rd.Table(metrics.Standard)
	return r, err
}

// fabricKey is the context's key of what changes a fabric's configuration.
type fabricKey struct{}

// The backend of these runs is sim's with the number of cores that a run asks for.
func init() {
	testbed.Register(&testbed.Builder{
		Backend: testbed.Sim, Virtual: true,
		Built:   func() error { return nil },
		Capable: func(context.Context) error { return nil },
		Check:   func(s *testbed.Scenario, _ loop.Dilation) error { return Possible(s) },
		Build: func(ctx context.Context, b testbed.BuildConfig) (fabric.Fabric, error) {
			c := config(b.Scenario)
			if change, ok := ctx.Value(fabricKey{}).(func(*sim.Config)); ok {
				change(&c)
			}
			return sim.Build(ctx, c)
		},
	})
}

func config(s *testbed.Scenario) sim.Config {
	return sim.Config{Plan: s.Plan, Settings: fabric.Settings{NICs: s.NICs, Switches: s.Switches}, Seed: s.Seed}
}

// Possible refuses what virtual time has not.
func Possible(s *testbed.Scenario) error {
	c := config(s)
	errs := []error{c.Check()}
	for i := range s.Faults {
		errs = append(errs, strict.Under(fmt.Sprintf("faults[%d]", i), c.CheckFault(s.Faults[i])))
	}
	return errors.Join(errs...)
}

// Twice makes a seed's run on one core and again on two, in folders of their own below dir, and judges it. Its error names what was violated, the
// seed, and shows the scenario.
func Twice(ctx context.Context, seed uint64, dir string, change func(*sim.Config)) (*Result, error) {
	s, err := Scenario(seed, Possible)
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error {
		return fmt.Errorf("seed %d: %w\n(save this and run it with rocebed run --backend sim FILE)\n%s", seed, err, s.Source)
	}
	first, err := Run(ctx, s, filepath.Join(dir, fmt.Sprintf("%d-1", seed)), 1, change)
	if err != nil {
		return nil, wrong(err)
	}
	if err := Judge(s, first); err != nil {
		return nil, wrong(err)
	}
	second, err := Run(ctx, s, filepath.Join(dir, fmt.Sprintf("%d-2", seed)), 2, change)
	if err != nil {
		return nil, wrong(err)
	}
	if a, b := first.Summary.Hash, second.Summary.Hash; a != b {
		return nil, wrong(fmt.Errorf("the record of one core has the hash %s, that of two %s", a, b))
	}
	return first, nil
}
