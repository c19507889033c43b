package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
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
	cfg := kernel.Config{Plan: s.Plan, Dilation: d, NICs: s.NICs, Switches: s.Switches, Seed: s.Seed, SoftHost: softHost(BuildConfig{Scenario: s})}
	errs := []error{strict.Under("topology", cfg.Check()), kernel.CheckSettings(&s.NICs, &s.Switches)}
	for i := range s.Faults {
		errs = append(errs, strict.Under(fmt.Sprintf("faults[%d]", i), cfg.CheckFault(s.Faults[i])))
	}
	return errors.Join(errs...)
}

// softHost makes the soft-hosts of a fabric that is the kernel's else.
func softHost(cfg BuildConfig) func(context.Context, *topo.Node, *linux.Namespace, time.Time) (kernel.SoftHost, error) {
	kinds := func(node string) topo.Kind { return cfg.Scenario.Plan.Node(node).Kind }
	return func(ctx context.Context, n *topo.Node, ns *linux.Namespace, epoch time.Time) (kernel.SoftHost, error) {
		return soft.NewSingle(ctx, soft.Config{
			Plan: cfg.Scenario.Plan, Dilation: cfg.Dilation, Seed: cfg.Seed, Log: cfg.Log,
			Settings: fabric.Settings{NICs: cfg.Scenario.NICs, Switches: cfg.Scenario.Switches},
		}, n, ns, epoch, kinds)
	}
}

func buildKernel(ctx context.Context, cfg BuildConfig) (fabric.Fabric, error) {
	bed, err := linux.Acquire(ctx, cfg.Testbed)
	if err != nil {
		return nil, err
	}
	fab, err := kernel.Build(ctx, kernel.Config{
		SoftHost: softHost(cfg),
		Testbed:  bed, Plan: cfg.Scenario.Plan, Dilation: cfg.Dilation, NICs: cfg.Scenario.NICs, Switches: cfg.Scenario.Switches,
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
