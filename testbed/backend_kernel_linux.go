package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo/strict"
)

func init() {
	Register(&Builder{
		Backend:   Kernel,
		Built:     kernel.Built,
		Capable:   kernel.Capable,
		CheckName: linux.CheckName,
		Check:     kernelCheck,
		Calibrate: calibrate,
		Build:     buildKernel,
	})
}

// kernelCheck refuses node kinds, rates and faults that the backend doesn't make.
func kernelCheck(s *Scenario, d loop.Dilation) error {
	cfg := kernel.Config{Plan: s.Plan, Dilation: d, NICs: s.NICs, Switches: s.Switches, Seed: s.Seed}
	errs := []error{strict.Under("topology", cfg.Check()), kernel.CheckSettings(&s.NICs, &s.Switches)}
	for i := range s.Faults {
		errs = append(errs, strict.Under(fmt.Sprintf("faults[%d]", i), cfg.CheckFault(s.Faults[i])))
	}
	return errors.Join(errs...)
}

func buildKernel(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
	bed, err := linux.Acquire(ctx, cfg.Testbed)
	if err != nil {
		return nil, err
	}
	fab, err := kernel.Build(ctx, kernel.Config{
		Testbed: bed, Plan: cfg.Scenario.Plan, Dilation: cfg.Dilation, NICs: cfg.Scenario.NICs, Switches: cfg.Scenario.Switches,
		Seed: cfg.Seed, Log: cfg.Log,
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
