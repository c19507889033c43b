//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// CheckSettings refuses what of NIC and switch settings rdma_rxe and tc can't do, by key from the scenario's top: what is
// said of soft nodes in the same fabric is not this backend's business.
func (c *Config) CheckSettings() error {
	var errs []error
	said := map[string]bool{}
	refuse := func(n *topo.Node, kind, instead topo.Kind, all []feature, section func(i int) string) {
		for i, f := range all {
			if !f.given {
				continue
			}
			at, who := section(i)+"."+f.key, fmt.Sprintf("a %s, here and on the backends soft and sim,", instead)
			if f.instead != "" {
				who = f.instead
			}
			if !said[at] {
				said[at] = true
				errs = append(errs, strict.At(at, "%s %s can't: %s (%s can)", kind, n.Name, f.why, who))
			}
		}
	}
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		switch kindOf(n) {
		case topo.RxeHost:
			m := c.NICs.Of(n.Name)
			refuse(n, topo.RxeHost, topo.SoftHost, nicFeatures(&m), func(i int) string {
				return c.NICs.Section(n.Name, func(m *fabric.NICModel) bool { return nicFeatures(m)[i].given })
			})
		case topo.LinuxSwitch:
			m := c.Switches.Of(n.Name)
			refuse(n, topo.LinuxSwitch, topo.SoftSwitch, switchFeatures(&m), func(i int) string {
				return c.Switches.Section(n.Name, func(m *fabric.SwitchModel) bool { return switchFeatures(m)[i].given })
			})
		}
	}
	return errors.Join(errs...)
}

// feature is a setting that is given or not, and why it can't be had here.
type feature struct {
	key   string
	given bool
	why   string
	// instead is who can, where that isn't the soft node in the same place.
	instead string
}

func nicFeatures(m *fabric.NICModel) []feature {
	pfc := m.PFC
	if pfc == nil {
		pfc = &fabric.NICPFCSettings{}
	}
	return []feature{
		{"profile", m.Profile != "" && m.Profile != "rxe", "its NICs are rdma_rxe and nothing else", ""},
		{"recovery", m.Recovery != "" && m.Recovery != "go-back-n", "rdma_rxe goes back N", ""},
		{"max_unacked", m.MaxUnacked != 0, "rdma_rxe's limit of 128 unacknowledged packets is fixed", ""},
		{"ack", m.Ack != nil, "rdma_rxe's acknowledgements are as they are", ""},
		{"pfc.xoff", pfc.XOFF != nil, "rdma_rxe takes what comes and pauses nobody", ""},
		{"pfc.xon", pfc.XON != nil, "rdma_rxe takes what comes and pauses nobody", ""},
		{"pfc.headroom", pfc.Headroom != nil, "rdma_rxe takes what comes and pauses nobody", ""},
		{"memory", m.Memory == fabric.MemoryPhantom, "rdma_rxe moves real bytes", "the sim backend"},
		{"process", m.Process, "rdma_rxe is in the kernel", "the soft backend"},
		{"pcie", m.PCIe != nil, "rdma_rxe has no PCIe", ""},
		{"trace", m.Trace != 0, "rdma_rxe has no hardware stages", ""},
	}
}

func switchFeatures(m *fabric.SwitchModel) []feature {
	red := m.ECN != nil && m.ECN.Marker == fabric.MarkerRED
	return []feature{
		{"routing", m.Routing != "" && m.Routing != "ecmp", "the kernel spreads flows, not packets", ""},
		{"ecn.marker", red && inEngine(m) != "", "sch_red marks ports that have one queue", ""},
	}
}

// inEngine names what of a switch's settings takes the port engine; empty: nothing.
func inEngine(m *fabric.SwitchModel) string {
	for _, f := range []struct {
		given bool
		name  string
	}{
		{m.PFC != nil, "PFC"}, {m.Memory != 0 || m.Alpha != 0 || m.Reserved != nil, "a shared packet memory"}, {m.Priorities != nil || m.Queues != nil, "a queue a priority"},
		{m.Watchdog != nil, "a PFC watchdog"}, {m.ECN != nil && (m.ECN.Priorities != nil || m.ECN.Marker == fabric.MarkerBernoulli), "DCQCN's marker"},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// Lacks says what the fabric takes that this kernel was not built with; nil: nothing.
func (c *Config) Lacks() error {
	what := c.needsEngine()
	if what == "" {
		return nil
	}
	if err := engine.Supported(); err != nil {
		return fmt.Errorf("it can't have %s: %w", what, err)
	}
	return nil
}

// needsEngine names what of the settings takes the port engine; empty: nothing.
func (c *Config) needsEngine() string {
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		switch kindOf(n) {
		case topo.RxeHost:
			if c.dcqcn(n.Name) != nil {
				return "DCQCN"
			}
		case topo.LinuxSwitch:
			m := c.Switches.Of(n.Name)
			if what := inEngine(&m); what != "" {
				return what
			}
		}
	}
	for i := range c.Faults {
		if s := &c.Faults[i]; c.takesQueues(s) {
			return fmt.Sprintf("fault %s (%s)", s.Name, s.Kind)
		}
	}
	return ""
}

// takesQueues says whether a fault takes ports with a queue a priority, which it would change though the settings don't ask for them.
func (c *Config) takesQueues(s *faults.Spec) bool {
	switch s.Kind {
	case faults.DSCPMap, faults.StuckQueue, faults.CNPStarved:
	case faults.ECNOff, faults.ECNThresholds:
		ecn := false
		for i := range c.Plan.Topology.Nodes {
			n := &c.Plan.Topology.Nodes[i]
			m := c.Switches.Of(n.Name)
			ecn = ecn || kindOf(n) == topo.LinuxSwitch && m.ECN != nil
			if m.ECN != nil && m.ECN.Marker == fabric.MarkerRED {
				return false // it was chosen
			}
		}
		if len(s.Priorities) == 0 && (ecn || s.Kind == faults.ECNOff) {
			return false
		}
	default:
		return false
	}
	// Where the fault strikes soft switches alone, their ports are none of this backend's.
	targets, err := faults.Aim(s, faults.Scope{Topology: c.Plan.Topology, Plan: c.Plan, Seed: c.Seed})
	if err != nil {
		return false
	}
	for _, t := range targets {
		if kindOf(c.Plan.Node(t.Port.Node)) != topo.LinuxSwitch {
			return false
		}
	}
	return len(targets) > 0
}

// wantsEngine says whether a fabric's ports are the engine's, where the kernel has what that takes.
func (c *Config) wantsEngine() bool { return c.needsEngine() != "" || c.likesEngine() }

// likesEngine says whether the settings are better served by the port engine: its marker is DCQCN's.
func (c *Config) likesEngine() bool {
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		if m := c.Switches.Of(n.Name); kindOf(n) == topo.LinuxSwitch && m.ECN != nil && m.ECN.Marker == "" {
			return true
		}
	}
	return false
}
