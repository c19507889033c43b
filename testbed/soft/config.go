//go:build linux

package soft

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Config is what a fabric is built from. Testbed, Plan and Dilation are required.
type Config struct {
	Testbed  *linux.Testbed
	Plan     *topo.Plan
	Dilation loop.Dilation
	Settings fabric.Settings
	// Seed is where all randomness of devices and faults comes from.
	Seed uint64
	// Log says what is being done; nil: slog.Default.
	Log *slog.Logger
	// Progress, if set, hears how far the build is.
	Progress func(stage string, done, total int)
}

// Check refuses what of a plan and its settings this backend can't make, by path from the scenario's top.
func (c *Config) Check() error {
	if c.Plan == nil {
		return errors.New("soft fabric: a plan is required")
	}
	var errs []error
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		if want := kindOf(n); n.Kind != "" && n.Kind != want {
			errs = append(errs, strict.At("topology", "node %s: the soft backend makes %s and %s nodes, not %s (the kernel backend does)", n.Name, topo.SoftHost, topo.SoftSwitch, n.Kind))
		}
	}
	nics := &c.Settings.NICs
	refuseNIC := func(at string, m *fabric.NICModel) {
		if m.Memory == fabric.MemoryPhantom {
			errs = append(errs, strict.At(at+".memory", "the soft backend can't: its packets are real bytes (backend sim can do without)"))
		}
	}
	refuseNIC("nics", &nics.NICModel)
	for i := range nics.Override {
		refuseNIC("nics.override["+strconv.Itoa(i)+"]", &nics.Override[i].NICModel)
	}
	return errors.Join(append(errs, silicon.CheckSettings(c.Plan, &c.Settings))...)
}

// CheckFault refuses a fault that this backend can't make. What depends on other faults in force is refused when it is
// applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	return silicon.NewInjector(c.Plan, c.Seed, nil, func(topo.PortRef) *silicon.Port { return nil }, nil).Possible(spec)
}

// kindOf is what this backend makes of a node.
func kindOf(n *topo.Node) topo.Kind {
	if n.Role == topo.Switch {
		return topo.SoftSwitch
	}
	return topo.SoftHost
}

// leastTCPRTO is TCP's least retransmission timeout on the fabric, in fabric time, where that is more than the
// kernel's own.
const (
	leastTCPRTO   = time.Millisecond
	kernelsTCPRTO = 200 * time.Millisecond
)

func (c *Config) tcpRTO() time.Duration {
	if rto := c.Dilation.Wall(leastTCPRTO); rto > kernelsTCPRTO {
		return rto
	}
	return 0
}

// How much the kernel holds for a port: what comes in while the node's thread waits for a processor, within what all ports of
// a fabric may take together.
const (
	stall      = 100 * time.Millisecond
	mostRoom   = 4 << 20
	roomForAll = 512 << 20
)

func (c *Config) room(l *topo.Link) int {
	bytes := float64(l.Rate) / 8 / float64(c.Dilation.Factor()) * stall.Seconds()
	return int(min(bytes, mostRoom, float64(roomForAll)/float64(2*len(c.Plan.Topology.Links))))
}
