package faults

import (
	"testing"

	"github.com/rocebed/rocebed/topo"
)

// net draws a line:
//
//	h1:eth0 ── eth0:leaf-1:eth1 ── eth0:spine1:eth1 ── eth1:leaf-2:eth0 ── eth0:h2
//	                       eth2 ── eth2:spine1           (a second link)
func net() *topo.Topology {
	sw := func(name string, ports ...string) topo.Node {
		n := topo.Node{Name: name, Role: topo.Switch}
		for _, p := range ports {
			n.Ports = append(n.Ports, topo.Port{Name: p})
		}
		return n
	}
	ref := func(n, p string) topo.PortRef { return topo.PortRef{Node: n, Port: p} }
	return &topo.Topology{
		Nodes: []topo.Node{
			{Name: "h1", Role: topo.Host, Ports: []topo.Port{{Name: "eth0"}}},
			{Name: "h2", Role: topo.Host, Ports: []topo.Port{{Name: "eth0"}}},
			sw("leaf-1", "eth0", "eth1", "eth2"),
			sw("leaf-2", "eth0", "eth1"),
			sw("spine1", "eth0", "eth1", "eth2"),
		},
		Links: []topo.Link{
			{A: ref("h1", "eth0"), B: ref("leaf-1", "eth0")},
			{A: ref("leaf-1", "eth1"), B: ref("spine1", "eth0")},
			{A: ref("leaf-1", "eth2"), B: ref("spine1", "eth2")},
			{A: ref("spine1", "eth1"), B: ref("leaf-2", "eth1")},
			{A: ref("leaf-2", "eth0"), B: ref("h2", "eth0")},
		},
	}
}

func strikes(t *testing.T, dir Direction, at ...string) []Strike {
	t.Helper()
	got, err := Resolve(&Spec{At: at, Direction: dir}, net())
	if err != nil {
		t.Fatalf("resolve %q: %v", at, err)
	}
	return got
}
