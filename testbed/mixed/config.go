//go:build linux

package mixed

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Config is what a fabric is built from. Testbed, Plan and Dilation are required. Nodes without a kind are the
// kernel's.
type Config struct {
	Testbed  *linux.Testbed
	Plan     *topo.Plan
	Dilation loop.Dilation
	Settings fabric.Settings
	// Seed is where all randomness of devices and faults comes from.
	Seed uint64
	// Faults are those that are known beforehand.
	Faults []faults.Spec
	// Log says what is being done; nil: slog.Default.
	Log *slog.Logger
	// Progress, if set, hears how far the build is.
	Progress func(stage string, done, total int)
}

// Wanted says whether a topology has nodes of both worlds, soft ones among the kernel's.
func Wanted(t *topo.Topology) bool { return slices.ContainsFunc(t.Nodes, Soft) }

// Soft says whether a node is one of the soft room's.
func Soft(n topo.Node) bool { return n.Kind == topo.SoftHost || n.Kind == topo.SoftSwitch }

func (c *Config) kernel(foreign kernel.Foreign) kernel.Config {
	return kernel.Config{
		Testbed: c.Testbed, Plan: c.Plan, Dilation: c.Dilation, NICs: c.Settings.NICs, Switches: c.Settings.Switches, Seed: c.Seed, Faults: c.Faults,
		Log: c.Log, Progress: c.Progress, Foreign: foreign,
	}
}

func (c *Config) soft(w *soft.Within) soft.Config {
	return soft.Config{Plan: c.Plan, Dilation: c.Dilation, Settings: c.Settings, Seed: c.Seed, Log: c.Log, Progress: c.Progress, Within: w}
}

// Check refuses what of a plan and its settings can't be made, by path from the scenario's top.
func (c *Config) Check() error {
	if c.Plan == nil {
		return errors.New("mixed fabric: a plan is required")
	}
	k, s := c.kernel(&part{}), c.soft(&soft.Within{})
	return errors.Join(strict.Under("topology", k.Check()), k.CheckSettings(), s.Check(), c.checkRecovery())
}

// checkRecovery refuses what only two soft-hosts understand between them where there is a host that isn't one.
func (c *Config) checkRecovery() error {
	others := slices.DeleteFunc(c.Plan.Topology.Hosts(), func(n *topo.Node) bool { return Soft(*n) })
	if len(others) == 0 {
		return nil
	}
	given := func(m *fabric.NICModel) bool { return m.Recovery == selectiveRepeat }
	for _, n := range c.Plan.Topology.Hosts() {
		if m := c.Settings.NICs.Of(n.Name); Soft(*n) && given(&m) {
			return strict.At(c.Settings.NICs.Section(n.Name, given)+".recovery",
				"%s would repeat selectively, which an %s (%s) doesn't understand: InfiniBand has no packets for it. Give go-back-n, or make every host a %s (the backends soft and sim do)",
				n.Name, topo.RxeHost, others[0].Name, topo.SoftHost)
		}
	}
	return nil
}

// selectiveRepeat is nics.recovery's name for it.
const selectiveRepeat = "selective-repeat"

// CheckFault refuses a fault that can't be made. What depends on other faults in force is refused when it is applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	soft, err := c.inSoft(&spec)
	if err != nil {
		return err
	}
	k, s := c.kernel(&part{}), c.soft(nil)
	if soft {
		return s.CheckFault(spec)
	}
	return k.CheckFault(spec)
}

// errEmpty is what a part says that isn't built.
var errEmpty = fmt.Errorf("the soft nodes are not there yet")
