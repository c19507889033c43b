//go:build linux

package soft

import (
	"errors"
	"log/slog"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Config is what a fabric is built from. Plan and Dilation are required, and Testbed or Within.
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
	// Within, if set, is the fabric that the soft nodes are a part of.
	Within *Within
}

// Within is a fabric whose other nodes are somebody else's, on links that are somebody else's.
type Within struct {
	// Wiring has the namespaces and the links, which delay what goes over them by themselves.
	Wiring *linux.Wiring
	// Epoch is the wall time at which the fabric's time is zero.
	Epoch time.Time
}

// makes says whether a node is one of this backend's.
func (c *Config) makes(n *topo.Node) bool {
	return c.Within == nil || n.Kind == topo.SoftHost || n.Kind == topo.SoftSwitch
}

// Check refuses what of a plan and its settings this backend can't make, by path from the scenario's top.
func (c *Config) Check() error {
	if c.Plan == nil {
		return errors.New("soft fabric: a plan is required")
	}
	var errs []error
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		if !c.makes(n) {
			continue
		}
		if want := kindOf(n); n.Kind != "" && n.Kind != want {
			errs = append(errs, strict.At("topology", "node %s: the soft backend makes %s and %s nodes, not %s (the kernel backend does)", n.Name, topo.SoftHost, topo.SoftSwitch, n.Kind))
		}
		phantom := func(m *fabric.NICModel) bool { return m.Memory == fabric.MemoryPhantom }
		if m := c.Settings.NICs.Of(n.Name); n.Role == topo.Host && phantom(&m) {
			errs = append(errs, strict.At(c.Settings.NICs.Section(n.Name, phantom)+".memory", "%s: in real time a %s's frames are bytes (the sim backend's needn't be)", n.Name, topo.SoftHost))
			break // the others are most likely the same
		}
	}
	errs = append(errs, c.checkProcesses())
	return errors.Join(append(errs, silicon.CheckSettings(c.Plan, &c.Settings, c.makes))...)
}

// checkProcesses refuses processes for hosts where their frames can't be struck on arrival.
func (c *Config) checkProcesses() error {
	own := func(m *fabric.NICModel) bool { return m.Process }
	for _, n := range c.Plan.Topology.Hosts() {
		if m := c.Settings.NICs.Of(n.Name); !c.makes(n) || !own(&m) {
			continue
		}
		section := c.Settings.NICs.Section(n.Name, own)
		if c.Within != nil {
			return strict.At(section+".process", "%s: among nodes of the kernel's, soft-hosts are in the fabric's process (the soft backend gives them their own)", n.Name)
		}
		for _, p := range c.Plan.Ports(n.Name) {
			if c.Plan.Node(p.Peer.Node).Role != topo.Switch {
				return strict.At(section+".process", "%s: a host with a process of its own needs a switch at the end of its links, and %s isn't one", n.Name, p.Peer.Node)
			}
		}
	}
	return nil
}

// CheckFault refuses a fault that this backend can't make. What depends on other faults in force is refused when it is
// applied.
func (c *Config) CheckFault(spec faults.Spec) error {
	return silicon.NewInjector(silicon.Config{Plan: c.Plan, Settings: c.Settings, Seed: c.Seed, Pace: c.Dilation}, nil, func(topo.PortRef) *silicon.Port { return nil }, nil).Possible(spec)
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
	stall      = 250 * time.Millisecond
	mostRoom   = 4 << 20
	roomForAll = 512 << 20
)

func (c *Config) room(l *topo.Link) int {
	bytes := float64(l.Rate) / 8 / float64(c.Dilation.Factor()) * stall.Seconds()
	return int(min(bytes, mostRoom, float64(roomForAll)/float64(2*len(c.Plan.Topology.Links))))
}
