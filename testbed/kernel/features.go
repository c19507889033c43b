//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo/strict"
)

// CheckSettings refuses what of NIC and switch settings rdma_rxe and tc can't do, by key from the scenario's top.
func CheckSettings(nics *fabric.NICSettings, switches *fabric.SwitchSettings) error {
	errs := []error{refuseNIC("nics", &nics.NICModel)}
	for i := range nics.Override {
		errs = append(errs, refuseNIC(fmt.Sprintf("nics.override[%d]", i), &nics.Override[i].NICModel))
	}
	errs = append(errs, refuseSwitch("switches", &switches.SwitchModel))
	for i := range switches.Override {
		errs = append(errs, refuseSwitch(fmt.Sprintf("switches.override[%d]", i), &switches.Override[i].SwitchModel))
	}
	return errors.Join(errs...)
}

// feature is a setting that is given or not, and why it can't be had here.
type feature struct {
	key   string
	given bool
	why   string
}

func refuse(at string, all []feature) error {
	var errs []error
	for _, f := range all {
		if f.given {
			errs = append(errs, strict.At(at+"."+f.key, "the kernel backend can't: %s (backends sim and soft can)", f.why))
		}
	}
	return errors.Join(errs...)
}

func refuseNIC(at string, m *fabric.NICModel) error {
	err := refuse(at, []feature{
		{"profile", m.Profile != "" && m.Profile != "rxe", "its NICs are rdma_rxe and nothing else"},
		{"recovery", m.Recovery != "" && m.Recovery != "go-back-n", "rdma_rxe goes back N"},
		{"dcqcn", m.DCQCN != nil && m.DCQCN.Profile != fabric.DCQCNOff, "rdma_rxe sends no CNPs and doesn't react to them"},
		{"max_unacked", m.MaxUnacked != 0, "rdma_rxe's limit of 128 unacknowledged packets is fixed"},
		{"ack", m.Ack != nil, "rdma_rxe's acknowledgements are as they are"},
		{"priorities", m.Priorities != nil, "an rxe port has one queue"},
		{"pfc", m.PFC != nil, "an rxe port neither sends nor obeys pauses"},
		{"pcie", m.PCIe != nil, "rdma_rxe has no PCIe"},
	})
	if m.Memory == fabric.MemoryPhantom {
		err = errors.Join(err, strict.At(at+".memory", "the kernel backend can't: rdma_rxe moves real bytes (backend sim can do without)"))
	}
	return err
}

func refuseSwitch(at string, m *fabric.SwitchModel) error {
	all := []feature{
		{"memory", m.Memory != 0, "a linux-switch's ports share no packet memory"},
		{"alpha", m.Alpha != 0, "a linux-switch's queues have fixed limits"},
		{"reserved", m.Reserved != nil, "a linux-switch's queues have fixed limits"},
		{"priorities", m.Priorities != nil, "a linux-switch's port has one queue"},
		{"queues", m.Queues != nil, "a linux-switch's port has one queue"},
		{"pfc", m.PFC != nil, "a linux-switch neither sends nor obeys pauses"},
		{"watchdog", m.Watchdog != nil, "a linux-switch neither sends nor obeys pauses"},
		{"routing", m.Routing != "" && m.Routing != "ecmp", "the kernel spreads flows, not packets"},
	}
	if e := m.ECN; e != nil {
		all = append(all,
			feature{"ecn.priorities", e.Priorities != nil, "a linux-switch's port has one queue"},
			feature{"ecn.marker", e.Marker == fabric.MarkerBernoulli, "its marker is sch_red"})
	}
	return refuse(at, all)
}
