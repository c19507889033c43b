//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"math"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
)

// Check refuses what of a plan and its settings this backend can't make at the configuration's
// dilation, before anything is made. Testbed isn't needed for it.
func (c *Config) Check() error {
	if c.Plan == nil {
		return errors.New("kernel fabric: a plan is required")
	}
	drivers := driversOf(&Fabric{cfg: *c})
	var errs []error
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		d, err := drivers.of(n)
		if err == nil {
			err = d.Check(n)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// CheckFault refuses a fault that this backend can't make at the configuration's dilation, before
// anything is made. What depends on other faults in force is refused when it is applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	cfg := *c
	cfg.engine = c.wantsEngine()
	effects, err := newInjector(&Fabric{cfg: cfg}).plan(spec)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if err := e.possible(); err != nil {
			return fmt.Errorf("fault %s: %w", spec.Name, err)
		}
	}
	return nil
}

// exactEnough is how far a rate may be from its exact image without a word.
const exactEnough = 1e-4

// rounded warns of link rates that the dilation's division has moved.
func (f *Fabric) rounded() {
	seen := map[topo.Rate]bool{}
	for i := range f.cfg.Plan.Topology.Links {
		rate := f.cfg.Plan.Topology.Links[i].Rate
		if seen[rate] {
			continue
		}
		seen[rate] = true
		image := float64(wallRate(rate, f.cfg.Dilation)) * float64(f.cfg.Dilation.Factor())
		if off := math.Abs(image-float64(rate)) / float64(rate); off > exactEnough {
			f.warn(fmt.Sprintf("links of %v run at %v: at a dilation of %v the shaper counts whole bytes per second", rate, topo.Rate(image), f.cfg.Dilation))
		}
	}
}
