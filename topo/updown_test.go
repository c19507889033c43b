package topo

import (
	"strings"
	"testing"
)

func TestClosFabricsAreUpDownAndCannotDeadlock(t *testing.T) {
	for _, name := range []string{"spine-leaf", "spine-leaf, two NICs", "rail-optimised", "rail-only", "fat-tree(2)", "fat-tree(4)", "star", "dumbbell"} {
		p := planOf(t, fabrics()[name])
		if v := p.Valleys(); len(v) > 0 {
			t.Errorf("%s: %v", name, v[0])
		}
		if c := p.BufferCycle(); c != nil {
			t.Errorf("%s: circle %v", name, c)
		}
		if s := p.DeadlockStatement(); !strings.HasPrefix(s, "up-down") {
			t.Errorf("%s: %s", name, s)
		}
	}
}

func TestAChainIsNotUpDownYetCannotDeadlock(t *testing.T) {
	p := planOf(t, Spec{ParkingLot: &ParkingLot{Switches: 4}})
	if len(p.Valleys()) == 0 {
		t.Error("two links inside a tier passed as up-down")
	}
	if c := p.BufferCycle(); c != nil {
		t.Errorf("a circle in a chain: %v", c)
	}
}

func TestARingDeadlocksFromFourSwitchesOn(t *testing.T) {
	if c := planOf(t, Spec{Ring: &Ring{Switches: 3}}).BufferCycle(); c != nil {
		t.Errorf("in a ring of three nobody goes two links, yet: %v", c)
	}
	for n := 4; n < 9; n++ {
		p := planOf(t, Spec{Ring: &Ring{Switches: n}})
		c := p.BufferCycle()
		if len(c) != n {
			t.Errorf("ring of %d: circle %v", n, c)
		}
		for i := range c {
			from, _ := p.Port(c[i])
			if to := c[(i+1)%len(c)]; from.Peer.Node != to.Node {
				t.Errorf("ring of %d: %s leads to %s, not to %s", n, c[i], from.Peer.Node, to.Node)
			}
		}
	}
}

func TestALeafThatCarriesTransitIsAValley(t *testing.T) {
	// spine1 has lost leaf3 and spine2 has lost leaf1: leaf1 reaches leaf3 through leaf2.
	s := Spec{
		Nodes: []NodeSpec{{Host: "a"}, {Host: "b"}, {Host: "c"}, {Switch: "leaf1"}, {Switch: "leaf2"}, {Switch: "leaf3"}, {Switch: "spine1"}, {Switch: "spine2"}},
		Links: []LinkSpec{
			{Ends: "a -- leaf1"}, {Ends: "b -- leaf2"}, {Ends: "c -- leaf3"},
			{Ends: "leaf1 -- spine1"}, {Ends: "leaf2 -- spine1"}, {Ends: "leaf2 -- spine2"}, {Ends: "leaf3 -- spine2"},
		},
	}
	v := planOf(t, s).Valleys()
	if len(v) != 2 || v[0].Via != "leaf2" || v[1].Via != "leaf2" {
		t.Errorf("got %v", v)
	}
}
