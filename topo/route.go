package topo

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// class is a set of destinations that every switch routes alike: the hosts' links of a switch.
type class struct {
	dst netip.Prefix
	at  int32 // place in Plan.switches of the switch that they hang on
	// whole is the class that has these destinations too, where this one is for some of them
	// that routes by hand send elsewhere; else -1.
	whole int32
}

// nextHopSet is the equal-cost ports towards something, in port order.
type nextHopSet struct {
	ports []int32
	hops  []NextHop
}

// route finds, for every class at every switch, all the neighbours on a shortest path (fewest
// links), by a breadth-first search back from the class's switch. Sets of next hops are few
// and shared: a leaf has one for all other leaves.
func (p *Plan) route() {
	n := len(p.switches)
	p.hops = make([]int32, len(p.classes)*n)
	p.part = make([]int32, n)
	for i := range p.part {
		p.part[i] = -1
	}
	neighbours := p.neighbours()
	dist := make([]int32, n)
	queue := make([]int32, 0, n)
	search := func(from int32) {
		for i := range dist {
			dist[i] = -1
		}
		dist[from] = 0
		queue = append(queue[:0], from)
		for i := 0; i < len(queue); i++ {
			for _, nb := range neighbours[queue[i]] {
				if dist[nb.sw] < 0 {
					dist[nb.sw] = dist[queue[i]] + 1
					queue = append(queue, nb.sw)
				}
			}
		}
	}
	parts := int32(0)
	for s := range int32(n) {
		if p.part[s] < 0 {
			search(s)
			for _, q := range queue {
				p.part[q] = parts
			}
			parts++
		}
	}
	known := map[string]int32{}
	var key []byte
	for c := range p.classes {
		search(p.classes[c].at)
		row := p.hops[c*n : (c+1)*n]
		for s := range row {
			row[s] = -1
			if dist[s] <= 0 {
				continue
			}
			key = key[:0]
			for _, nb := range neighbours[s] {
				if dist[nb.sw] == dist[s]-1 {
					key = binary.LittleEndian.AppendUint32(key, uint32(nb.port))
				}
			}
			set, ok := known[string(key)]
			if !ok {
				set = p.addSet(key)
				known[string(key)] = set
			}
			row[s] = set
		}
	}
}

type neighbour struct{ sw, port int32 }

func (p *Plan) neighbours() [][]neighbour {
	out := make([][]neighbour, len(p.switches))
	for no, s := range p.switches {
		for i := p.base[s]; i < p.base[s+1]; i++ {
			if !p.edges[i] {
				out[no] = append(out[no], neighbour{p.switchNo[p.portNode[p.peer[i]]], i})
			}
		}
	}
	return out
}

func (p *Plan) addSet(key []byte) int32 {
	set := nextHopSet{ports: make([]int32, 0, len(key)/4), hops: make([]NextHop, 0, len(key)/4)}
	for ; len(key) > 0; key = key[4:] {
		port := int32(binary.LittleEndian.Uint32(key))
		set.ports = append(set.ports, port)
		set.hops = append(set.hops, p.hopTo(port))
	}
	p.sets = append(p.sets, set)
	return int32(len(p.sets) - 1)
}

func (p *Plan) hopTo(port int32) NextHop {
	return NextHop{Via: p.ports[port].PeerAddr, Port: p.ports[port].Ref.Port}
}

// Routes are the routes that a node needs beside those to its own links, which its addresses
// bring: at a switch one for every other switch with hosts, at a host the way out. Next-hop
// slices are shared and must not be changed. An unknown node has none.
func (p *Plan) Routes(node string) []Route {
	n, ok := p.nodes[node]
	if !ok {
		return nil
	}
	no := p.switchNo[n]
	if no < 0 {
		return p.hostRoutes(n)
	}
	out := make([]Route, 0, len(p.classes))
	for c := range p.classes {
		set := p.hops[c*len(p.switches)+int(no)]
		if whole := p.classes[c].whole; set < 0 || whole >= 0 && p.hops[int(whole)*len(p.switches)+int(no)] == set {
			continue // the whole class's route serves
		}
		out = append(out, Route{p.classes[c].dst, p.sets[set].hops})
	}
	return out
}

// hostRoutes are a host's main table: a default route through its first NIC, and, for parts
// of the fabric which that NIC can't reach (rails without spines), routes through one that can.
func (p *Plan) hostRoutes(n int32) []Route {
	var out []Route
	reached := map[int32]bool{}
	for i := p.base[n]; i < p.base[n+1]; i++ {
		c := p.classOf[i]
		if c < 0 { // the link leads to another host: it has nothing beyond
			continue
		}
		part := p.part[p.classes[c].at]
		if reached[part] {
			continue
		}
		if len(reached) == 0 {
			out = append(out, Route{p.everywhere(), []NextHop{p.hopTo(i)}})
		} else {
			for d := range p.classes {
				if p.classes[d].whole < 0 && p.part[p.classes[d].at] == part {
					out = append(out, Route{p.classes[d].dst, []NextHop{p.hopTo(i)}})
				}
			}
		}
		reached[part] = true
	}
	return out
}

func (p *Plan) everywhere() netip.Prefix {
	if p.Options.Family == IPv6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

// firstTable is the number of a host's first policy table; 253 to 255 are the kernel's.
const firstTable = 1000

// PolicyTables are the tables that a host with several NICs needs, one a NIC, so that what is
// bound to a NIC leaves through it. A host with one NIC, and a switch, needs none.
func (p *Plan) PolicyTables(node string) []PolicyTable {
	n, ok := p.nodes[node]
	if !ok || p.switchNo[n] >= 0 || p.base[n+1]-p.base[n] < 2 {
		return nil
	}
	var out []PolicyTable
	for i := p.base[n]; i < p.base[n+1]; i++ {
		port := &p.ports[i]
		t := PolicyTable{
			Table: firstTable + int(i-p.base[n]), Port: port.Ref.Port,
			Source: netip.PrefixFrom(port.Addr.Addr(), port.Addr.Addr().BitLen()),
			// The link itself, without which the gateway isn't reachable in this table.
			Routes: []Route{{port.Addr.Masked(), []NextHop{{Port: port.Ref.Port}}}},
		}
		if p.classOf[i] >= 0 {
			t.Routes = append(t.Routes, Route{p.everywhere(), []NextHop{p.hopTo(i)}})
		}
		out = append(out, t)
	}
	return out
}

// Lookup is where a node sends a packet for an address: the next hops of the longest prefix
// that matches, its own links included (there Via is the address itself). None: no route, or
// the address is the node's own.
func (p *Plan) Lookup(node string, dst netip.Addr) []NextHop {
	n, ok := p.nodes[node]
	if !ok {
		return nil
	}
	if owner, ok := p.byAddr[dst]; ok && p.portNode[owner] == n {
		return nil
	}
	for i := p.base[n]; i < p.base[n+1]; i++ {
		if p.ports[i].Addr.Contains(dst) {
			return []NextHop{{Via: dst, Port: p.ports[i].Ref.Port}}
		}
	}
	var best Route
	for _, r := range p.Routes(node) {
		if r.Dst.Contains(dst) && (best.NextHops == nil || r.Dst.Bits() > best.Dst.Bits()) {
			best = r
		}
	}
	return slices.Clone(best.NextHops)
}
