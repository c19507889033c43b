//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/testbed/fabric"
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
	return []feature{
		{"profile", m.Profile != "" && m.Profile != "rxe", "its NICs are rdma_rxe and nothing else", ""},
		{"recovery", m.Recovery != "" && m.Recovery != "go-back-n", "rdma_rxe goes back N", ""},
		{"dcqcn", m.DCQCN != nil && m.DCQCN.Profile != fabric.DCQCNOff, "rdma_rxe sends no CNPs and doesn't react to them", ""},
		{"max_unacked", m.MaxUnacked != 0, "rdma_rxe's limit of 128 unacknowledged packets is fixed", ""},
		{"ack", m.Ack != nil, "rdma_rxe's acknowledgements are as they are", ""},
		{"priorities", m.Priorities != nil, "an rxe port has one queue", ""},
		{"pfc", m.PFC != nil, "an rxe port neither sends nor obeys pauses", ""},
		{"memory", m.Memory == fabric.MemoryPhantom, "rdma_rxe moves real bytes", "the sim backend"},
		{"process", m.Process, "rdma_rxe is in the kernel", "the soft backend"},
		{"pcie", m.PCIe != nil, "rdma_rxe has no PCIe", ""},
		{"trace", m.Trace != 0, "rdma_rxe has no hardware stages", ""},
	}
}

func switchFeatures(m *fabric.SwitchModel) []feature {
	ecn := m.ECN
	if ecn == nil {
		ecn = &fabric.ECNSettings{}
	}
	return []feature{
		{"memory", m.Memory != 0, "a linux-switch's ports share no packet memory", ""},
		{"alpha", m.Alpha != 0, "a linux-switch's queues have fixed limits", ""},
		{"reserved", m.Reserved != nil, "a linux-switch's queues have fixed limits", ""},
		{"priorities", m.Priorities != nil, "a linux-switch's port has one queue", ""},
		{"queues", m.Queues != nil, "a linux-switch's port has one queue", ""},
		{"pfc", m.PFC != nil, "a linux-switch neither sends nor obeys pauses", ""},
		{"watchdog", m.Watchdog != nil, "a linux-switch neither sends nor obeys pauses", ""},
		{"routing", m.Routing != "" && m.Routing != "ecmp", "the kernel spreads flows, not packets", ""},
		{"ecn.priorities", ecn.Priorities != nil, "a linux-switch's port has one queue", ""},
		{"ecn.marker", ecn.Marker == fabric.MarkerBernoulli, "its marker is sch_red", ""},
	}
}
