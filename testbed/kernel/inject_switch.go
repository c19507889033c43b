//go:build linux

package kernel

import (
	"fmt"
	"math"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// impossible are the kinds that this backend's nodes can't have, and what they lack.
var impossible = map[faults.Kind]string{
	faults.DSCPMap:       "a linux-switch's port has one queue, and no DSCP leads anywhere else",
	faults.PFCOff:        "a linux-switch neither sends nor obeys pauses",
	faults.PFCThresholds: "a linux-switch neither sends nor obeys pauses",
	faults.WatchdogOff:   "a linux-switch obeys no pauses, and so has no watchdog",
	faults.BufferAlpha:   "a linux-switch's ports share no packet memory",
	faults.StuckQueue:    "a linux-switch's port has one queue for everything, ARP too: for a port that sends nothing there is unidirectional",
	faults.CNPStarved:    "a linux-switch's port has one queue, in which CNPs are served as all else",
	faults.PFCStorm:      "nobody on this backend obeys a pause",
	faults.SlowDMA:       "rdma_rxe is software: it has no DMA",
	faults.PCIeDowngrade: "rdma_rxe is software: it has no PCIe",
	faults.MTTThrash:     "rdma_rxe is software: it has no translation cache",
	faults.AckCoalesce:   "rdma_rxe acknowledges as it does, and nothing tells it otherwise",
	faults.CNPOff:        "rdma_rxe sends no CNPs",
	faults.CNPCap:        "rdma_rxe sends no CNPs",
	faults.DCQCNParams:   "rdma_rxe has no DCQCN",
	faults.SlowClock:     "rdma_rxe's timers are the kernel's, and the same for all hosts",
}

// inSwitch says whether a kind is of those in switches that this backend makes.
func inSwitch(k faults.Kind) bool {
	switch k {
	case faults.ECNOff, faults.ECNThresholds, faults.BufferShrink, faults.HashSeed, faults.RouteLate, faults.Reboot:
		return true
	}
	return false
}

// inSwitches is plan for faults in switches.
func (in *injector) inSwitches(s *faults.Spec) ([]effect, error) {
	plan := in.f.Plan()
	targets, err := faults.Aim(s, faults.Scope{Topology: plan.Topology, Plan: plan, Seed: in.f.cfg.Seed})
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", s.Name, err)
	}
	var effects []effect
	for _, t := range targets {
		n := plan.Node(t.Port.Node)
		if k := kindOf(n); k != topo.LinuxSwitch && s.Kind != faults.Reboot { // which is done to its cables
			return nil, fmt.Errorf("fault %s: %s is a %s, whose settings aren't the kernel's", s.Name, n.Name, k)
		}
		made, err := in.inNode(s, n, t.Port)
		if err != nil {
			return nil, fmt.Errorf("fault %s: %w", s.Name, err)
		}
		effects = append(effects, made...)
	}
	return effects, nil
}

// inNode is what a fault does in one switch, or at one of its ports.
func (in *injector) inNode(s *faults.Spec, n *topo.Node, at topo.PortRef) (effects []effect, err error) {
	switch s.Kind {
	case faults.HashSeed:
		seed := uint64(0)
		if s.HashSeed != nil {
			seed = *s.HashSeed
		}
		if seed > math.MaxUint32 {
			return nil, strict.At("hash_seed", "%d: the kernel's seeds have 32 bits", seed)
		}
		return []effect{&seeded{f: in.f, node: n.Name, was: linux.HashSeed(n.HashSeed), seed: linux.HashSeed(uint32(seed))}}, nil
	case faults.RouteLate:
		return []effect{&lateRoutes{f: in.f, name: s.Name, node: n.Name, delay: in.f.cfg.Dilation.Wall(s.Delay)}}, nil
	case faults.Reboot:
		return []effect{in.reboot(s, n.Name)}, nil
	}
	if len(s.Priorities) > 0 && s.Priorities.Bits() != 0xff {
		return nil, strict.At("priorities", "a linux-switch's port has one queue for all priorities: leave them out")
	}
	for _, p := range in.f.Plan().Ports(n.Name) {
		if at.Port == "" || p.Ref == at {
			effects = append(effects, &treed{f: in.f, ref: p.Ref, turn: turnOf(s)})
		}
	}
	return effects, nil
}
