package topo

import (
	"fmt"
	"math/bits"
	"strings"
)

// Hop is one link of a path: out of one port, into another.
type Hop struct{ Out, In PortRef }

// Path is the links from a NIC to another, in order.
type Path []Hop

// Nodes are the names of the nodes on the path, both ends included.
func (p Path) Nodes() []string {
	if len(p) == 0 {
		return nil
	}
	out := []string{p[0].Out.Node}
	for _, h := range p {
		out = append(out, h.In.Node)
	}
	return out
}

// String writes "h1 > leaf1 > spine2 > leaf2 > h3".
func (p Path) String() string { return strings.Join(p.Nodes(), " > ") }

// Paths are all the paths that packets from one NIC to another may take, in the order of
// their next hops. None, without an error: the one does not reach the other. A fabric with
// parallel ways in many tiers has as many as PathCount says: ask it first.
func (p *Plan) Paths(src, dst PortRef) ([]Path, error) {
	s, d, err := p.pair(src, dst)
	if err != nil {
		return nil, err
	}
	var out []Path
	var walk func(at int32, sofar Path)
	hop := func(port int32) Hop { return Hop{p.ports[port].Ref, p.ports[p.peer[port]].Ref} }
	walk = func(port int32, sofar Path) {
		sofar = append(sofar[:len(sofar):len(sofar)], hop(port))
		in := p.peer[port]
		if in == d {
			out = append(out, sofar)
			return
		}
		for _, next := range p.onward(in, d) {
			walk(next, sofar)
		}
	}
	walk(s, nil)
	return out, nil
}

// PathCount is how many paths Paths would give, without making them. It stops counting at
// the largest uint64.
func (p *Plan) PathCount(src, dst PortRef) (uint64, error) {
	s, d, err := p.pair(src, dst)
	if err != nil {
		return 0, err
	}
	known := map[int32]uint64{} // by the node that the packet is in
	var count func(in int32) uint64
	count = func(in int32) uint64 {
		if in == d {
			return 1
		}
		if n, ok := known[p.portNode[in]]; ok {
			return n
		}
		var sum uint64
		for _, next := range p.onward(in, d) {
			n, carry := bits.Add64(sum, count(p.peer[next]), 0)
			if carry != 0 {
				n = ^uint64(0)
			}
			sum = n
		}
		known[p.portNode[in]] = sum
		return sum
	}
	return count(p.peer[s]), nil
}

// Reaches reports whether packets from one NIC arrive at another.
func (p *Plan) Reaches(src, dst PortRef) bool {
	n, err := p.PathCount(src, dst)
	return err == nil && n > 0
}

func (p *Plan) pair(src, dst PortRef) (s, d int32, err error) {
	for i, ref := range []PortRef{src, dst} {
		port := p.find(ref)
		switch {
		case port < 0:
			return 0, 0, fmt.Errorf("no port %s", ref)
		case p.switchNo[p.portNode[port]] >= 0:
			return 0, 0, fmt.Errorf("%s is a switch's port, not a NIC", ref)
		}
		if i == 0 {
			s = port
		} else {
			d = port
		}
	}
	if s == d {
		return 0, 0, fmt.Errorf("a path from %s to itself", src)
	}
	return s, d, nil
}

// onward is the ports through which a packet for NIC dst that came in by port in goes on.
func (p *Plan) onward(in, dst int32) []int32 {
	no := p.switchNo[p.portNode[in]]
	if no < 0 || p.classOf[dst] < 0 { // hosts don't forward
		return nil
	}
	if p.peer[dst] >= p.base[p.switches[no]] && p.peer[dst] < p.base[p.switches[no]+1] {
		return []int32{p.peer[dst]}
	}
	if set := p.hops[int(p.classOf[dst])*len(p.switches)+int(no)]; set >= 0 {
		return p.sets[set].ports
	}
	return nil
}
