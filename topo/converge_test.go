package topo

import (
	"testing"
)

func mustPlan(t *testing.T, s Spec) *Plan {
	t.Helper()
	top, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := top.Plan(s.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// walk follows every equal-cost choice from one NIC to another, with routes changed, over links
// that are up. It says whether every choice arrives, and whether any does.
func walk(t *testing.T, p *Plan, changed map[string][]Route, down map[int]bool, at string, dst PlanPort, steps int) (all, some bool) {
	t.Helper()
	if at == dst.Ref.Node {
		return true, true
	}
	if steps == 0 {
		return false, false
	}
	hops := p.Lookup(at, dst.Addr.Addr())
	for _, r := range changed[at] {
		if r.Dst.Contains(dst.Addr.Addr()) {
			hops = r.NextHops
		}
	}
	all = len(hops) > 0
	for _, h := range hops {
		port, ok := p.Port(PortRef{at, h.Port})
		if !ok || down[port.Link] {
			all = false
			continue
		}
		a, s := walk(t, p, changed, down, port.Peer.Node, dst, steps-1)
		all, some = all && a, some || s
	}
	return all, some
}

// Whatever single link is down, after convergence every choice of every switch arrives wherever
// any choice did.
func TestAfterConvergenceNoChoiceLeadsIntoALinkThatIsDown(t *testing.T) {
	for name, s := range map[string]Spec{
		"spine-leaf": {SpineLeaf: &SpineLeaf{Spines: 3, Leaves: 3, HostsPerLeaf: 1}},
		"fat-tree":   {FatTree: &FatTree{K: 4}},
		"ring":       {Ring: &Ring{Switches: 5, HostsPerSwitch: 1}},
	} {
		p := mustPlan(t, s)
		nics := p.Topology.NICs()
		for link := range p.Topology.Links {
			down := map[int]bool{link: true}
			changed := p.Converged(down)
			for _, from := range nics {
				for _, to := range nics {
					dst, _ := p.Port(to)
					if from == to || down[dst.Link] || p.Link(from) == &p.Topology.Links[link] {
						continue
					}
					_, before := walk(t, p, nil, down, from.Node, dst, 10)
					all, after := walk(t, p, changed, down, from.Node, dst, 10)
					if before && !all {
						t.Fatalf("%s without %s: from %v to %v: not every choice arrives", name, p.Topology.Links[link].Name(), from, to)
					}
					if after && !before {
						t.Fatalf("%s without %s: from %v to %v: a path came from nowhere", name, p.Topology.Links[link].Name(), from, to)
					}
				}
			}
		}
	}
}

func TestConvergenceChangesOnlyWhatLost(t *testing.T) {
	p := mustPlan(t, Spec{SpineLeaf: &SpineLeaf{Spines: 2, Leaves: 3, HostsPerLeaf: 2}})
	if c := p.Converged(nil); len(c) > 0 {
		t.Errorf("nothing is down and %v changes", c)
	}
	link := p.Topology.LinksBetween("leaf1", "spine1")[0]
	c := p.Converged(map[int]bool{link: true})
	// leaf1 loses one of two ways to the others, they one of two to it, spine1 its only one.
	for node, want := range map[string][2]int{"leaf1": {2, 1}, "leaf2": {1, 1}, "leaf3": {1, 1}, "spine1": {1, 0}} {
		if len(c[node]) != want[0] {
			t.Errorf("%s changes %v, expected %d routes", node, c[node], want[0])
			continue
		}
		for _, r := range c[node] {
			if len(r.NextHops) != want[1] {
				t.Errorf("%s keeps %v, expected %d next hops", node, r, want[1])
			}
		}
	}
	if len(c["spine2"]) > 0 {
		t.Errorf("spine2 changes %v and lost nothing", c["spine2"])
	}
	// A host's own link is its switch's to know; nobody else's routes change.
	host := p.Port
	nic, _ := host(PortRef{"h1", "eth0"})
	if c := p.Converged(map[int]bool{nic.Link: true}); len(c) > 0 {
		t.Errorf("a host's link is down and %v change", c)
	}
}
