//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// How many frames may wait at a port of the engine. A host's are its queue pairs' throttles together, 64 frames each.
const (
	switchSlots = 8192
	hostSlots   = 1 << 15
	mostFlows   = 1 << 13
)

// openEngine opens the port engine where the settings take it, and numbers its ports.
func (f *Fabric) openEngine() error {
	why := f.cfg.needsEngine()
	if why == "" && !f.cfg.likesEngine() {
		return nil
	}
	f.numbers = map[topo.PortRef]int{}
	cfg := engine.Config{Testbed: f.cfg.Testbed.Name(), Nodes: len(f.cfg.Plan.Topology.Nodes), Flows: f.cfg.flows}
	for i := range f.cfg.Plan.Topology.Nodes {
		n := &f.cfg.Plan.Topology.Nodes[i]
		for _, p := range f.cfg.Plan.Ports(n.Name) {
			_, l, _ := f.wiring.Link(p.Ref)
			end, _ := f.wiring.CableEnd(p.Ref)
			cfg.MaxIndex = max(cfg.MaxIndex, l.Index, end.Index)
			if f.cfg.made(n) {
				cfg.Ports++
				f.numbers[p.Ref] = cfg.Ports
				cfg.Slots += slotsOf(n)
			}
		}
	}
	e, err := engine.Open(cfg)
	switch {
	case err == nil:
	case why == "" && errors.Is(err, ebpf.ErrNotSupported):
		f.warn(fmt.Sprintf("switches mark by sch_red, which spaces its marks evenly: %v", err))
		return nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("this kernel can't have %s: that takes queueing disciplines in eBPF (Linux 6.16 with NET_SCH_BPF): %w", why, err)
	default:
		return err
	}
	f.engine, f.cfg.engine = e, true
	for i := range f.cfg.Plan.Topology.Nodes {
		n := &f.cfg.Plan.Topology.Nodes[i]
		if n.Role != topo.Switch || !f.cfg.made(n) {
			continue
		}
		s, _, err := f.cfg.switchSettings(n, topo.PortRef{})
		if err != nil {
			return err
		}
		if err := e.SetMemory(i, topo.Bytes(s.Shared(silicon.PortConfigs(f.cfg.Plan, f.cfg.Plan.Ports(n.Name))))); err != nil {
			return err
		}
	}
	return nil
}

// index is a node's, among the topology's.
func (f *Fabric) index(node string) int {
	return slices.IndexFunc(f.cfg.Plan.Topology.Nodes, func(n topo.Node) bool { return n.Name == node })
}

// made says whether this backend makes a node.
func (c *Config) made(n *topo.Node) bool {
	k := kindOf(n)
	return k == topo.RxeHost || k == topo.LinuxSwitch
}

func slotsOf(n *topo.Node) int {
	if n.Role == topo.Host {
		return hostSlots
	}
	return switchSlots
}

// place is where a port of the engine is.
func (f *Fabric) place(n *topo.Node, l linux.Link) engine.Place {
	at := engine.Place{Node: f.index(n.Name), Ifindex: l.Index, Slots: slotsOf(n)}
	if n.Role == topo.Switch {
		end, _ := f.wiring.CableEnd(topo.PortRef{Node: n.Name, Port: l.Port})
		at.End = end.Index
	}
	return at
}

// marks gives the program that marks what a port sends; nil: none does.
func (f *Fabric) marks(ref topo.PortRef) *ebpf.Program {
	if n := f.cfg.Plan.Node(ref.Node); f.engine == nil || n.Role != topo.Switch || !f.cfg.made(n) {
		return nil
	}
	return f.engine.Mark()
}
