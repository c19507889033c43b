package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/mixed"
	"github.com/rocebed/rocebed/topo/strict"
)

func init() {
	Register(&Builder{
		Backend:   Kernel,
		Built:     kernel.Built,
		Capable:   kernel.Capable,
		Lacks:     kernelLacks,
		CheckName: linux.CheckName,
		Check:     kernelCheck,
		Reaction:  kernel.Reaction,
		Calibrate: calibrate,
		Build:     buildKernel,
	})
}

func kernelConfig(s *Scenario, d loop.Dilation) kernel.Config {
	return kernel.Config{Plan: s.Plan, Dilation: d, NICs: s.NICs, Switches: s.Switches, Seed: s.Seed, Faults: s.Faults}
}

// kernelLacks is about what not every kernel that has a working rxe was built with.
func kernelLacks(s *Scenario) error {
	c := kernelConfig(s, loop.Dilation(s.Dilation))
	return c.Lacks()
}

// mixedConfig is for scenarios with soft nodes among the kernel's.
func mixedConfig(s *Scenario, d loop.Dilation) mixed.Config {
	return mixed.Config{Plan: s.Plan, Dilation: d, Settings: fabric.Settings{NICs: s.NICs, Switches: s.Switches}, Seed: s.Seed, Faults: s.Faults}
}

// kernelCheck refuses node kinds, rates and faults that the backend doesn't make.
func kernelCheck(s *Scenario, d loop.Dilation) error {
	k, m := kernelConfig(s, d), mixedConfig(s, d)
	var errs []error
	check := k.CheckFault
	if mixed.Wanted(s.Topology) {
		errs = append(errs, m.Check())
		check = m.CheckFault
	} else {
		errs = append(errs, strict.Under("topology", k.Check()), k.CheckSettings())
	}
	return errors.Join(append(errs, s.checkFaults(Kernel, d, check))...)
}

func buildKernel(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
	bed, err := linux.Acquire(ctx, cfg.Testbed)
	if err != nil {
		return nil, err
	}
	s := cfg.Scenario
	progress := func(stage string, done, total int) {
		if cfg.Step != nil {
			cfg.Step(fmt.Sprintf("%s %d of %d", stage, done, total))
		}
	}
	if mixed.Wanted(s.Topology) {
		m := mixedConfig(s, cfg.Dilation)
		m.Testbed, m.Seed, m.Log, m.Progress = bed, cfg.Seed, cfg.Log, progress
		fab, err := mixed.Build(ctx, m)
		if err != nil {
			return nil, err
		}
		return fab, nil
	}
	k := kernelConfig(s, cfg.Dilation)
	k.Testbed, k.Seed, k.Log, k.Progress = bed, cfg.Seed, cfg.Log, progress
	fab, err := kernel.Build(ctx, k)
	if err != nil {
		return nil, err
	}
	return fab, nil
}
