package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft"
)

func init() {
	Register(&Builder{
		Backend:   Soft,
		Built:     func() error { return nil },
		Capable:   func(context.Context) error { return soft.Capable() },
		Rootless:  soft.Rootless,
		CheckName: linux.CheckName,
		Check:     softCheck,
		Calibrate: func(ctx context.Context, s *Scenario) (loop.Dilation, string, error) {
			d, why, err := calibrateOn(ctx, s, buildSoft, soft.LeastDilation)
			if err != nil {
				return 0, "", err
			}
			enough, err := inTime(ctx, s, buildSoft, d)
			if enough > d {
				why += ", and at less it wouldn't serve them in time"
			}
			return enough, why, err
		},
		Build: buildSoft,
	})
}

// ProcessIfAsked must be called first of all in a program that runs scenarios: soft-hosts with a process of their own, and the agent of
// a kernel fabric, are that program again. In such a process it doesn't return.
func ProcessIfAsked() {
	soft.ProcessIfAsked()
	kernel.AgentIfAsked()
}

// softCheck refuses node kinds, settings and faults that software nodes don't have.
func softCheck(s *Scenario, d loop.Dilation) error {
	cfg := soft.Config{Plan: s.Plan, Dilation: d, Settings: fabric.Settings{NICs: s.NICs, Switches: s.Switches}, Seed: s.Seed}
	errs := []error{cfg.Check()}
	errs = append(errs, s.checkFaults(Soft, d, cfg.CheckFault))
	return errors.Join(errs...)
}

func buildSoft(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
	bed, err := linux.Acquire(ctx, cfg.Testbed)
	if err != nil {
		return nil, err
	}
	fab, err := soft.Build(ctx, soft.Config{
		Testbed: bed, Plan: cfg.Scenario.Plan, Dilation: cfg.Dilation, Seed: cfg.Seed, Log: cfg.Log,
		Settings: fabric.Settings{NICs: cfg.Scenario.NICs, Switches: cfg.Scenario.Switches},
		Progress: func(stage string, done, total int) {
			if cfg.Step != nil {
				cfg.Step(fmt.Sprintf("%s %d of %d", stage, done, total))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return fab, nil
}
