//go:build linux

package kernel

import (
	"errors"

	"github.com/rocebed/rocebed/faults"
)

// Check refuses what of a plan and its settings this backend can't make at the configuration's
// dilation, before anything is made. Testbed isn't needed for it.
func (c *Config) Check() error {
	if c.Plan == nil {
		return errors.New("kernel fabric: a plan is required")
	}
	return c.checkNodes()
}

// CheckFault refuses a fault that this backend can't make at the configuration's dilation, before
// anything is made. What depends on other faults in force is refused when it is applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	_, err := newInjector(&Fabric{cfg: *c}).plan(spec)
	return err
}
