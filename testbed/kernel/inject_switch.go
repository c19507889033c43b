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
	faults.SlowDMA:       "rdma_rxe is software: it has no DMA",
	faults.PCIeDowngrade: "rdma_rxe is software: it has no PCIe",
	faults.MTTThrash:     "rdma_rxe is software: it has no translation cache",
	faults.AckCoalesce:   "rdma_rxe acknowledges as it does, and nothing tells it otherwise",
	faults.SlowClock:     "rdma_rxe's timers are the kernel's, and the same for all hosts",
}

// inSwitch says whether a kind is of those in switches that this backend makes.
func inSwitch(k faults.Kind) bool {
	switch k {
	case faults.HashSeed, faults.RouteLate, faults.Reboot:
		return true
	}
	return inQueues(k)
}

// inQueues says whether a kind is one of what ports do: with their queues, their memory, and pauses.
func inQueues(k faults.Kind) bool {
	switch k {
	case faults.ECNOff, faults.ECNThresholds, faults.BufferShrink, faults.BufferAlpha, faults.DSCPMap, faults.PFCOff, faults.PFCThresholds, faults.WatchdogOff,
		faults.StuckQueue, faults.CNPStarved:
		return true
	}
	return false
}

// inOneQueue says whether a port that has one queue can have a fault: one that isn't about a priority, and changes but what there is.
func inOneQueue(s *faults.Spec) error {
	why := ""
	switch s.Kind {
	case faults.ECNOff, faults.ECNThresholds, faults.BufferShrink:
		if len(s.Priorities) == 0 || s.Priorities.Bits() == 0xff {
			return nil
		}
		return strict.At("priorities", "%s", oneQueue("leave them out, or "))
	case faults.DSCPMap, faults.StuckQueue, faults.CNPStarved:
		why = oneQueue("")
	case faults.PFCOff, faults.PFCThresholds:
		why = "the switch neither sends nor obeys pauses (give switches.pfc)"
	case faults.WatchdogOff:
		why = "the switch has no PFC watchdog (give switches.watchdog)"
	case faults.BufferAlpha:
		why = "the switch's ports share no packet memory (give switches.memory or switches.alpha)"
	}
	return strict.At("kind", "%s", why)
}

func oneQueue(or string) string {
	return "the switch's ports have one queue each: " + or + "give switches.pfc, priorities or queues"
}

// inSwitches is plan for faults in switches.
func (in *injector) inSwitches(s *faults.Spec) ([]effect, error) {
	return in.aimed(s, func(n *topo.Node, at topo.PortRef) ([]effect, error) {
		if k := kindOf(n); k != topo.LinuxSwitch && s.Kind != faults.Reboot { // which is done to its cables
			return nil, fmt.Errorf("%s is a %s, whose settings aren't the kernel's", n.Name, k)
		}
		return in.inNode(s, n, at)
	})
}

// aimed gathers what a fault does at each node, or port of one, that it is aimed at.
func (in *injector) aimed(s *faults.Spec, at func(*topo.Node, topo.PortRef) ([]effect, error)) (effects []effect, err error) {
	plan := in.f.Plan()
	targets, err := faults.Aim(s, faults.Scope{Topology: plan.Topology, Plan: plan, Seed: in.f.cfg.Seed})
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", s.Name, err)
	}
	for _, t := range targets {
		made, err := at(plan.Node(t.Port.Node), t.Port)
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
	if in.f.cfg.engine {
		e, err := in.turned(s, n, at)
		if err != nil {
			return nil, err
		}
		return []effect{e}, nil
	}
	if err := inOneQueue(s); err != nil {
		return nil, err
	}
	for _, p := range in.f.Plan().Ports(n.Name) {
		if at.Port == "" || p.Ref == at {
			effects = append(effects, &treed{f: in.f, ref: p.Ref, turn: turnOf(s)})
		}
	}
	return effects, nil
}
