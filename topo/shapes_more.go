package topo

import (
	"fmt"

	"github.com/rocebed/rocebed/topo/strict"
)

// RailOptimised is the fabric of GPU clusters: in each group NIC r of every host hangs on the
// group's leaf for rail r, so that equal rails are one switch apart; spines join leaves of all
// rails and groups. Without spines rails are islands (rail-only). Leaves are called
// leaf1r0 (group 1, rail 0) and so on.
type RailOptimised struct {
	Groups           int   `yaml:"groups,nonzero"` // default 1
	HostsPerGroup    int   `yaml:"hosts_per_group,required"`
	Rails            int   `yaml:"rails,required"` // NICs a host
	Spines           int   `yaml:"spines"`         // default 0: rail-only
	Oversubscription Ratio `yaml:"oversubscription"`
}

func (s *RailOptimised) check() []error {
	errs := checkCounts(count{"groups", s.Groups, 0}, count{"hosts_per_group", s.HostsPerGroup, 1}, count{"rails", s.Rails, 1}, count{"spines", s.Spines, 0})
	if s.Rails > 64 {
		errs = append(errs, strict.At("rails", "rails: %d is more than 64", s.Rails))
	}
	return errs
}

func (s *RailOptimised) size() (nodes, links float64) {
	g, h, r, sp := float64(max(1, s.Groups)), float64(s.HostsPerGroup), float64(s.Rails), float64(s.Spines)
	return sp + g*r + g*h, g*h*r + g*r*sp
}

func (s *RailOptimised) build(b *builder) {
	if s.Oversubscription > 0 {
		b.oversubscribe(1, s.HostsPerGroup, s.Spines, s.Oversubscription)
	}
	leaf := func(g, r int) string { return fmt.Sprintf("leaf%dr%d", g+1, r) }
	groups := max(1, s.Groups)
	for i := range s.Spines {
		b.sw(numbered("spine", i), 2)
	}
	for g := range groups {
		for r := range s.Rails {
			b.sw(leaf(g, r), 1)
		}
	}
	for g := range groups {
		for i := range s.HostsPerGroup {
			h := b.host(numbered("h", g*s.HostsPerGroup+i))
			for r := range s.Rails {
				b.link(h, leaf(g, r), r)
			}
		}
	}
	for g := range groups {
		for r := range s.Rails {
			for i := range s.Spines {
				b.link(leaf(g, r), numbered("spine", i), 0)
			}
		}
	}
}

// FatTree is the three-tier fat-tree of k-port switches: k pods of k/2 edge (leaf) and k/2
// aggregation (spine) switches, (k/2)² cores, k/2 hosts an edge (Al-Fares, SIGCOMM 2008).
// Edge e of pod p is called pod1leaf1, its aggregation switch pod1spine1.
type FatTree struct {
	K            int `yaml:"k,required"`             // even
	HostsPerLeaf int `yaml:"hosts_per_leaf,nonzero"` // default k/2
}

func (s *FatTree) check() []error {
	errs := checkCounts(count{"k", s.K, 2}, count{"hosts_per_leaf", s.HostsPerLeaf, 0})
	if len(errs) == 0 && s.K%2 != 0 {
		errs = append(errs, strict.At("k", "k: %d is odd; a fat-tree's switches have half their ports up, half down", s.K))
	}
	return errs
}

func (s *FatTree) hostsPerLeaf() int {
	if s.HostsPerLeaf > 0 {
		return s.HostsPerLeaf
	}
	return s.K / 2
}

func (s *FatTree) size() (nodes, links float64) {
	k, h := float64(s.K), float64(s.hostsPerLeaf())
	return k/2*k/2 + k*k + k*k/2*h, k*k/2*h + k*k*k/2
}

func (s *FatTree) build(b *builder) {
	half := s.K / 2
	leaf := func(p, i int) string { return fmt.Sprintf("pod%dleaf%d", p+1, i+1) }
	spine := func(p, i int) string { return fmt.Sprintf("pod%dspine%d", p+1, i+1) }
	for i := range half * half {
		b.sw(numbered("core", i), 3)
	}
	for p := range s.K {
		for i := range half {
			b.sw(spine(p, i), 2)
		}
	}
	for p := range s.K {
		for i := range half {
			b.sw(leaf(p, i), 1)
		}
	}
	for p := range s.K {
		for i := range half {
			b.hosts(s.hostsPerLeaf(), leaf(p, i))
		}
	}
	for p := range s.K {
		for i := range half {
			for j := range half {
				b.link(leaf(p, i), spine(p, j), 0)
			}
		}
		for i := range half {
			for j := range half {
				b.link(spine(p, i), numbered("core", i*half+j), 0)
			}
		}
	}
}

// Star is one switch with hosts.
type Star struct {
	Hosts int `yaml:"hosts,required"`
}

func (s *Star) check() []error { return checkCounts(count{"hosts", s.Hosts, 1}) }

func (s *Star) size() (nodes, links float64) { return float64(s.Hosts) + 1, float64(s.Hosts) }

func (s *Star) build(b *builder) { b.hosts(s.Hosts, b.sw("leaf1", 1)) }

// Dumbbell is two switches joined by a link that all traffic between their hosts shares:
// h1 … on leaf1, the rest on leaf2. The link is of tier leaf.
type Dumbbell struct {
	Left       int  `yaml:"left,required"`  // hosts on leaf1
	Right      int  `yaml:"right,required"` // hosts on leaf2
	Bottleneck Rate `yaml:"bottleneck"`     // of the link; default as tier leaf
}

func (s *Dumbbell) check() []error {
	return checkCounts(count{"left", s.Left, 0}, count{"right", s.Right, 0})
}

func (s *Dumbbell) size() (nodes, links float64) {
	n := float64(s.Left) + float64(s.Right)
	return n + 2, n + 1
}

func (s *Dumbbell) build(b *builder) {
	if s.Bottleneck > 0 {
		b.rate[1] = s.Bottleneck
	}
	b.chain(1, s.Left, s.Right)
}

// ParkingLot is a chain of switches with hosts on each: traffic from the far end shares every
// link with traffic that joins later.
type ParkingLot struct {
	Switches       int `yaml:"switches,required"`
	HostsPerSwitch int `yaml:"hosts_per_switch"` // default 1
}

func (s *ParkingLot) check() []error {
	return checkCounts(count{"switches", s.Switches, 2}, count{"hosts_per_switch", s.HostsPerSwitch, 0})
}

func (s *ParkingLot) size() (nodes, links float64) {
	n, h := float64(s.Switches), float64(max(1, s.HostsPerSwitch))
	return n + n*h, n*h + n - 1
}

func (s *ParkingLot) build(b *builder) { b.chain(1, each(s.Switches, s.HostsPerSwitch)...) }

// Ring is a circle of switches with hosts on each. From four switches on, shortest paths
// around it wait on each other in a circle, which is what a PFC deadlock needs; with all
// traffic clockwise, from three on.
type Ring struct {
	Clockwise      bool `yaml:"clockwise"` // leaf1 to leaf2 to leaf3 …, never back
	Switches       int  `yaml:"switches,required"`
	HostsPerSwitch int  `yaml:"hosts_per_switch"` // default 1
}

func (s *Ring) check() []error {
	return checkCounts(count{"switches", s.Switches, 3}, count{"hosts_per_switch", s.HostsPerSwitch, 0})
}

func (s *Ring) size() (nodes, links float64) {
	n, h := float64(s.Switches), float64(max(1, s.HostsPerSwitch))
	return n + n*h, n*h + n
}

func (s *Ring) build(b *builder) {
	b.chain(1, each(s.Switches, s.HostsPerSwitch)...)
	b.link(numbered("leaf", s.Switches-1), "leaf1", 0)
	if !s.Clockwise {
		return
	}
	for i := range s.Switches {
		at := numbered("leaf", i)
		ports := b.t.Nodes[b.at[at]].Ports
		next := ports[len(ports)-1].Name
		if i == 0 { // leaf1's last link closes the ring, the one before it leads on
			next = ports[len(ports)-2].Name
		}
		for j := range s.Switches {
			if j != i {
				b.t.Static = append(b.t.Static, StaticRoute{At: at, To: numbered("leaf", j), Ports: []string{next}})
			}
		}
	}
}

func each(switches, hosts int) []int {
	out := make([]int, switches)
	for i := range out {
		out[i] = max(1, hosts)
	}
	return out
}

// chain makes switches leaf1, leaf2, … with so many hosts each, each joined to the next.
func (b *builder) chain(tier Tier, hosts ...int) {
	for i := range hosts {
		b.sw(numbered("leaf", i), tier)
	}
	for i, n := range hosts {
		b.hosts(n, numbered("leaf", i))
	}
	for i := 1; i < len(hosts); i++ {
		b.link(numbered("leaf", i-1), numbered("leaf", i), 0)
	}
}
