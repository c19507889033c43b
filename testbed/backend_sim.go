package testbed

import (
	"context"
	"errors"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/sim"
)

func init() {
	Register(&Builder{
		Backend: Sim,
		Virtual: true,
		Built:   func() error { return nil },
		Capable: func(context.Context) error { return nil },
		Check:   simCheck,
		Build: func(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
			f, err := sim.Build(ctx, simConfig(cfg.Scenario))
			if err != nil {
				return nil, err
			}
			return f, nil
		},
	})
}

func simConfig(s *Scenario) sim.Config {
	return sim.Config{Plan: s.Plan, Settings: fabric.Settings{NICs: s.NICs, Switches: s.Switches}, Seed: s.Seed, Dilation: loop.Dilation(s.Dilation)}
}

// simCheck refuses what virtual time has not.
func simCheck(s *Scenario, d loop.Dilation) error {
	cfg := simConfig(s)
	errs := []error{cfg.Check()}
	errs = append(errs, s.checkFaults(Sim, d, cfg.CheckFault))
	return errors.Join(errs...)
}
