package topo

import (
	"slices"
	"testing"
)

func TestRoutesByPortAreThoseByAddress(t *testing.T) {
	for name, spec := range map[string]Spec{
		"spine-leaf": {SpineLeaf: &SpineLeaf{Spines: 3, Leaves: 4, HostsPerLeaf: 2}},
		"fat-tree":   {FatTree: &FatTree{K: 4}},
		"dumbbell":   {Dumbbell: &Dumbbell{Left: 2, Right: 3}},
		"rails":      {RailOptimised: &RailOptimised{HostsPerGroup: 2, Rails: 2, Groups: 2, Spines: 2}},
	} {
		top, err := spec.Build()
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := top.Plan(PlanOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, sw := range top.Switches() {
			byPort := p.RoutesByPort(sw.Name, nil)
			if len(byPort) != p.PortCount() {
				t.Fatalf("%s: %d routes for %d ports", name, len(byPort), p.PortCount())
			}
			for i := range byPort {
				port := p.PortAt(i)
				if p.PortNumber(port.Ref) != i || p.PortAt(p.PeerNumber(i)).Ref != port.Peer {
					t.Fatalf("%s: port %d is %v", name, i, port.Ref)
				}
				if p.Node(port.Ref.Node).Role == Switch {
					if byPort[i] != nil {
						t.Fatalf("%s: %s has a route to a switch's port", name, sw.Name)
					}
					continue
				}
				var want []uint16
				for _, h := range p.Lookup(sw.Name, port.Addr.Addr()) {
					want = append(want, uint16(p.PortNumber(PortRef{sw.Name, h.Port})-p.FirstPort(sw.Name)))
				}
				if !slices.Equal(byPort[i], want) || !slices.Equal(p.Towards(sw.Name, i, nil), want) {
					t.Fatalf("%s: %s to %v by %v and %v, want %v", name, sw.Name, port.Ref, byPort[i], p.Towards(sw.Name, i, nil), want)
				}
			}
		}
	}
}

func TestRoutesByPortAvoidLinksThatAreDown(t *testing.T) {
	top, err := (&Spec{SpineLeaf: &SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 1}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := top.Plan(PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	down := map[int]bool{top.LinksBetween("leaf2", "spine1")[0]: true}
	h2 := p.PortNumber(top.NICs()[1])
	// leaf1 must not use spine1, which has no way on to leaf2; spine1 has none at all.
	before, after := p.RoutesByPort("leaf1", nil)[h2], p.RoutesByPort("leaf1", down)[h2]
	if len(before) != 2 || len(after) != 1 {
		t.Errorf("leaf1: ports %v, with the link down %v", before, after)
	}
	if way := p.RoutesByPort("spine1", down)[h2]; len(way) != 0 {
		t.Errorf("spine1 still sends by %v", way)
	}
}
