package topo

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"
)

// fabrics are one of every shape, small enough to walk every pair.
func fabrics() map[string]Spec {
	two := HostSettings{NICs: 2}
	return map[string]Spec{
		"spine-leaf":             {SpineLeaf: &SpineLeaf{Spines: 2, Leaves: 3, HostsPerLeaf: 2}},
		"spine-leaf, two NICs":   {SpineLeaf: &SpineLeaf{Spines: 3, Leaves: 2, HostsPerLeaf: 2, LinksPerSpine: 2}, Hosts: two},
		"spine-leaf, ipv6":       {SpineLeaf: &SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 2}, Addresses: IPv6},
		"one leaf":               {SpineLeaf: &SpineLeaf{Spines: 1, Leaves: 1, HostsPerLeaf: 3}},
		"rail-optimised":         {RailOptimised: &RailOptimised{Groups: 2, HostsPerGroup: 2, Rails: 4, Spines: 2}},
		"rail-only":              {RailOptimised: &RailOptimised{HostsPerGroup: 3, Rails: 3}},
		"rail-only, ipv6":        {RailOptimised: &RailOptimised{HostsPerGroup: 3, Rails: 3}, Addresses: IPv6},
		"fat-tree(2)":            {FatTree: &FatTree{K: 2}},
		"fat-tree(4)":            {FatTree: &FatTree{K: 4}},
		"star":                   {Star: &Star{Hosts: 5}},
		"dumbbell":               {Dumbbell: &Dumbbell{Left: 2, Right: 3}},
		"parking-lot":            {ParkingLot: &ParkingLot{Switches: 4}, Hosts: two},
		"ring of 3":              {Ring: &Ring{Switches: 3}},
		"clockwise ring":         {Ring: &Ring{Switches: 4, Clockwise: true}, Addresses: IPv6},
		"ring of 4":              {Ring: &Ring{Switches: 4, HostsPerSwitch: 2}},
		"explicit, back to back": {Nodes: []NodeSpec{{Host: "a"}, {Host: "b"}}, Links: []LinkSpec{{Ends: "a -- b"}}},
		"explicit": {
			Nodes: []NodeSpec{{Host: "a"}, {Host: "b"}, {Switch: "s"}, {Switch: "t"}, {Switch: "up"}},
			Links: []LinkSpec{{Ends: "a:eth1 -- s"}, {Ends: "a:eth0 -- t:eth0"}, {Ends: "b -- t"}, {Ends: "s -- up:eth7"}, {Ends: "t -- up"}, {Ends: "a -- b"}},
		},
	}
}

func planOf(t testing.TB, s Spec) *Plan {
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

func eachFabric(t *testing.T, f func(t *testing.T, p *Plan)) {
	for name, s := range fabrics() {
		t.Run(name, func(t *testing.T) { f(t, planOf(t, s)) })
	}
}

// deliver follows every next hop for dst from a node, as the kernel would look routes up, and
// counts the ways in which it arrives. It fails the test on a loop or a dead end.
func deliver(t *testing.T, p *Plan, node string, dst netip.Addr, owner PortRef, links int) uint64 {
	t.Helper()
	if node == owner.Node {
		return 1
	}
	if links > len(p.Topology.Nodes) {
		t.Fatalf("a packet for %s (%s) goes round and round, now in %s", owner, dst, node)
	}
	hops := p.Lookup(node, dst)
	if len(hops) == 0 {
		t.Fatalf("%s has no route to %s (%s)", node, owner, dst)
	}
	var ways uint64
	for _, h := range hops {
		port, ok := p.Port(PortRef{node, h.Port})
		if !ok || port.PeerAddr != h.Via {
			t.Fatalf("%s: next hop %v is not across port %s", node, h, h.Port)
		}
		ways += deliver(t, p, port.Peer.Node, dst, owner, links+1)
	}
	return ways
}

func TestEveryNICReachesEveryOtherAlongTheRoutes(t *testing.T) {
	eachFabric(t, func(t *testing.T, p *Plan) {
		pairs := 0
		for _, src := range p.Topology.NICs() {
			for _, dst := range p.Topology.NICs() {
				if src.Node == dst.Node {
					continue
				}
				paths, err := p.Paths(src, dst)
				if err != nil {
					t.Fatal(err)
				}
				count, err := p.PathCount(src, dst)
				if err != nil || count != uint64(len(paths)) {
					t.Fatalf("%s to %s: counted %d paths, enumerated %d (%v)", src, dst, count, len(paths), err)
				}
				if len(paths) == 0 {
					continue
				}
				pairs++
				to, _ := p.Port(dst)
				from, _ := p.Port(src)
				ways := uint64(1)
				if from.Peer != dst {
					ways = deliver(t, p, from.Peer.Node, to.Addr.Addr(), dst, 0)
				}
				if ways != count {
					t.Errorf("%s to %s: routes give %d ways, paths are %d", src, dst, ways, count)
				}
				checkPaths(t, p, src, dst, paths)
			}
		}
		if pairs == 0 {
			t.Error("no NIC reaches any other")
		}
	})
}

// checkPaths wants paths that join up, differ, and visit no node twice.
func checkPaths(t *testing.T, p *Plan, src, dst PortRef, paths []Path) {
	t.Helper()
	seen := map[string]bool{}
	for _, path := range paths {
		at, visited := src, map[string]bool{src.Node: true}
		for i, h := range path {
			if i == 0 && h.Out != src || h.Out.Node != at.Node {
				t.Errorf("%v: hop %d leaves from %s, the packet is in %s", path, i, h.Out, at.Node)
			}
			if port, _ := p.Port(h.Out); port.Peer != h.In {
				t.Errorf("%v: no link from %s to %s", path, h.Out, h.In)
			}
			if visited[h.In.Node] {
				t.Errorf("%v visits %s twice", path, h.In.Node)
			}
			visited[h.In.Node] = true
			at = h.In
		}
		if at != dst {
			t.Errorf("%v ends in %s, not %s", path, at, dst)
		}
		if key := fmt.Sprint([]Hop(path)); seen[key] {
			t.Errorf("%v is there twice", path)
		} else {
			seen[key] = true
		}
	}
}

func TestAddressesAreUniqueAndInTheirLinks(t *testing.T) {
	eachFabric(t, func(t *testing.T, p *Plan) {
		addrs, macs := map[netip.Addr]PortRef{}, map[MAC]PortRef{}
		for _, n := range p.Topology.Nodes {
			for _, port := range p.Ports(n.Name) {
				a := port.Addr.Addr()
				if o, twice := addrs[a]; twice {
					t.Errorf("%s and %s are both %s", o, port.Ref, a)
				}
				if o, twice := macs[port.MAC]; twice {
					t.Errorf("%s and %s are both %s", o, port.Ref, port.MAC)
				}
				addrs[a], macs[port.MAC] = port.Ref, port.Ref
				if a.Is4() != (p.Options.Family == IPv4) {
					t.Errorf("%s has %s in a plan for %s", port.Ref, a, p.Options.Family)
				}
				if !port.Addr.Contains(port.PeerAddr) || port.PeerAddr == a {
					t.Errorf("%s (%s) and its peer (%s) share no subnet", port.Ref, port.Addr, port.PeerAddr)
				}
				peer, ok := p.Port(port.Peer)
				if !ok || peer.Peer != port.Ref || peer.MAC != port.PeerMAC || peer.Addr.Addr() != port.PeerAddr || peer.Link != port.Link {
					t.Errorf("%s and %s don't agree on each other", port.Ref, port.Peer)
				}
				if owner, ok := p.Owner(a); !ok || owner != port.Ref {
					t.Errorf("%s is %s's, Owner says %s", a, port.Ref, owner)
				}
				if port.MAC[0]&3 != 2 {
					t.Errorf("%s is not a local unicast address", port.MAC)
				}
			}
		}
	})
}

func TestAPlanIsTheSameEveryTime(t *testing.T) {
	for name, s := range fabrics() {
		if a, b := planOf(t, s), planOf(t, s); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two plans differ", name)
		}
	}
}

func TestANICsPolicyTableReachesWhateverTheNICDoes(t *testing.T) {
	eachFabric(t, func(t *testing.T, p *Plan) {
		for _, h := range p.Topology.Hosts() {
			tables := p.PolicyTables(h.Name)
			if len(h.Ports) == 1 {
				if tables != nil {
					t.Errorf("%s has one NIC and %d tables", h.Name, len(tables))
				}
				continue
			}
			if len(tables) != len(h.Ports) {
				t.Fatalf("%s has %d NICs and %d tables", h.Name, len(h.Ports), len(tables))
			}
			numbers := map[int]bool{}
			for i, table := range tables {
				nic := PortRef{h.Name, h.Ports[i].Name}
				port, _ := p.Port(nic)
				if table.Port != nic.Port || table.Source.Addr() != port.Addr.Addr() || !table.Source.IsSingleIP() || numbers[table.Table] {
					t.Errorf("%s: table %+v is not the NIC's", nic, table)
				}
				numbers[table.Table] = true
				for _, dst := range p.Topology.NICs() {
					if dst.Node == h.Name || !p.Reaches(nic, dst) {
						continue
					}
					to, _ := p.Port(dst)
					covered := false
					for _, r := range table.Routes {
						covered = covered || r.Dst.Contains(to.Addr.Addr())
						for _, hop := range r.NextHops {
							if hop.Port != nic.Port || hop.Via.IsValid() && hop.Via != port.PeerAddr {
								t.Errorf("%s: table %d sends by %v", nic, table.Table, hop)
							}
						}
					}
					if !covered {
						t.Errorf("%s: table %d has no route to %s", nic, table.Table, dst)
					}
				}
			}
		}
	})
}

func TestRoutesGrowWithSwitchesNotWithHosts(t *testing.T) {
	few := planOf(t, Spec{SpineLeaf: &SpineLeaf{Spines: 4, Leaves: 8, HostsPerLeaf: 1}})
	many := planOf(t, Spec{SpineLeaf: &SpineLeaf{Spines: 4, Leaves: 8, HostsPerLeaf: 64}})
	for _, n := range few.Topology.Switches() {
		a, b := few.Routes(n.Name), many.Routes(n.Name)
		if len(a) != len(b) {
			t.Errorf("%s has %d routes with 8 hosts, %d with 512", n.Name, len(a), len(b))
		}
	}
	// A leaf sends to all other leaves through the same four spines: one set, shared.
	routes := many.Routes("leaf1")
	for _, r := range routes[1:] {
		if &r.NextHops[0] != &routes[0].NextHops[0] {
			t.Errorf("%s has next hops of its own", r.Dst)
		}
	}
	top := many.Topology
	hosts := len(top.Hosts())
	if allocs := testing.AllocsPerRun(3, func() { _, _ = top.Plan(PlanOptions{}) }); allocs > float64(4*hosts) {
		t.Errorf("planning %d hosts takes %.0f allocations", hosts, allocs)
	}
}

func TestRailsWithoutSpinesAreIslands(t *testing.T) {
	p := planOf(t, fabrics()["rail-only"])
	if !p.Reaches(PortRef{"h1", "eth1"}, PortRef{"h2", "eth1"}) {
		t.Error("rail 1 doesn't reach rail 1")
	}
	if p.Reaches(PortRef{"h1", "eth0"}, PortRef{"h2", "eth1"}) {
		t.Error("rail 0 reaches rail 1 without a spine")
	}
	// What isn't bound to a NIC still finds the NIC that gets there.
	to, _ := p.Port(PortRef{"h2", "eth1"})
	if hops := p.Lookup("h1", to.Addr.Addr()); len(hops) != 1 || hops[0].Port != "eth1" {
		t.Errorf("h1 sends to rail 1 by %v", hops)
	}
}

func TestAskingForWhatIsNotThere(t *testing.T) {
	p := planOf(t, fabrics()["star"])
	h1, h2 := PortRef{"h1", "eth0"}, PortRef{"h2", "eth0"}
	for _, pair := range [][2]PortRef{{h1, h1}, {h1, {"h9", "eth0"}}, {{"h1", "eth7"}, h2}, {h1, {"leaf1", "eth0"}}, {{}, {}}} {
		if _, err := p.Paths(pair[0], pair[1]); err == nil {
			t.Errorf("a path from %s to %s", pair[0], pair[1])
		}
		if p.Reaches(pair[0], pair[1]) {
			t.Errorf("%s reaches %s", pair[0], pair[1])
		}
	}
	if p.Node("x") != nil || p.Ports("x") != nil || p.Routes("x") != nil || p.PolicyTables("x") != nil || p.Link(PortRef{"h1", "x"}) != nil || p.Lookup("x", netip.Addr{}) != nil {
		t.Error("an unknown node has something")
	}
	if _, ok := p.Owner(netip.MustParseAddr("192.0.2.1")); ok {
		t.Error("somebody owns an address outside the plan")
	}
	if _, err := p.Topology.Plan(PlanOptions{Family: "ipx"}); err == nil {
		t.Error("a plan for ipx")
	}
}
