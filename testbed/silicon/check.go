package silicon

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// CheckNICs refuses NICs that there can't be, profiles that nobody knows among them, by key from the scenario's top.
func CheckNICs(s *fabric.NICSettings) error {
	var errs []error
	nic := func(at string, m *fabric.NICModel) {
		if _, err := profileOf(m, 0); err != nil {
			errs = append(errs, strict.Under(at, err))
		}
	}
	nic("nics", &s.NICModel)
	for i := range s.Override {
		nic(fmt.Sprintf("nics.override[%d]", i), &s.Override[i].NICModel)
	}
	return errors.Join(errs...)
}

// refusal is a setting that a switch doesn't take, or that would change nothing.
type refusal struct {
	key string
	has func(*fabric.SwitchModel) bool // gives it
	bad func(*fabric.SwitchModel) bool // it can't be beside what else the switch has; nil: never
	why string
}

// inSoftware are a software switch's.
var inSoftware = []refusal{
	{"ecn.marker", func(m *fabric.SwitchModel) bool { return red(m.ECN) }, nil, byLot},
	{"queues", func(m *fabric.SwitchModel) bool {
		return slices.ContainsFunc(m.Queues, func(q fabric.QueueSettings) bool { return red(q.ECN) })
	}, nil, byLot},
}

// anywhere are every switch's.
var anywhere = []refusal{
	{"alpha", func(m *fabric.SwitchModel) bool { return m.Alpha != 0 }, unshared, ofShared},
	{"reserved", func(m *fabric.SwitchModel) bool { return m.Reserved != nil }, unshared, ofShared},
	{"queues", func(m *fabric.SwitchModel) bool {
		return slices.ContainsFunc(m.Queues, func(q fabric.QueueSettings) bool { return q.Alpha != 0 })
	}, unshared, ofShared},
	{"watchdog", func(m *fabric.SwitchModel) bool { return m.Watchdog != nil }, func(m *fabric.SwitchModel) bool { return m.PFC == nil },
		"a port that nobody pauses needs no watchdog: give pfc, or leave it out"},
}

const (
	byLot    = "a software switch marks each packet by lot, not by sch_red: that is a linux-switch's, on the kernel backend"
	ofShared = "shares are of a memory for all ports, and here each queue has its buffer: give memory or pfc, or leave alpha and reserved out"
)

func red(e *fabric.ECNSettings) bool      { return e != nil && e.Marker == fabric.MarkerRED }
func shared(m *fabric.SwitchModel) bool   { return m.Memory != 0 || m.PFC != nil }
func unshared(m *fabric.SwitchModel) bool { return !shared(m) }

// CheckSettings refuses what of NIC and switch settings software NICs and switches can't do, by key from the
// scenario's top. made says which nodes of the plan are software.
func CheckSettings(plan *topo.Plan, s *fabric.Settings, made func(*topo.Node) bool) error {
	return errors.Join(CheckNICs(&s.NICs), checkSwitches(plan, &s.Switches, made, append(slices.Clone(inSoftware), anywhere...)))
}

// CheckSwitches refuses switch settings that no backend can have, by key from the scenario's top.
func CheckSwitches(plan *topo.Plan, s *fabric.SwitchSettings) error {
	return checkSwitches(plan, s, func(*topo.Node) bool { return true }, anywhere)
}

func checkSwitches(plan *topo.Plan, s *fabric.SwitchSettings, made func(*topo.Node) bool, refusals []refusal) error {
	var errs []error
	told := map[string]bool{}
	for _, n := range plan.Topology.Switches() {
		if !made(n) {
			continue
		}
		m := s.Of(n.Name)
		for _, r := range refusals {
			if !r.has(&m) || r.bad != nil && !r.bad(&m) {
				continue
			}
			at := s.Section(n.Name, r.has) + "." + r.key
			if !told[at] {
				errs = append(errs, strict.At(at, "%s: %s", n.Name, r.why))
			}
			told[at] = true
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, n := range plan.Topology.Switches() {
		if !made(n) {
			continue
		}
		m := s.Of(n.Name)
		if _, err := SwitchSettings(&m, plan, n); err != nil {
			at := "switches"
			if m.Memory != 0 {
				at = s.Section(n.Name, func(m *fabric.SwitchModel) bool { return m.Memory != 0 }) + ".memory"
			}
			return strict.At(at, "%s: %w", n.Name, err) // the others are most likely the same
		}
	}
	return nil
}
