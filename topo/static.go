package topo

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rocebed/rocebed/topo/strict"
)

// StaticRoute is a route by hand: at a switch, packets to a host or to the hosts of another
// switch leave by these ports only. What an operator's mistake or a traffic engineer makes.
type StaticRoute struct {
	At    string   `json:"at"`    // a switch
	To    string   `json:"to"`    // a host (all its NICs), or a switch (all hosts on it)
	Ports []string `json:"ports"` // of At, each to another switch
}

// LoopError says that routes by hand send packets round and round.
type LoopError struct {
	From, To string // From sends packets on to To, where they have been
	Dst      netip.Prefix
}

func (e *LoopError) Error() string {
	return fmt.Sprintf("routes by hand make a loop: %s sends packets for %s on to %s, where they have been", e.From, e.Dst, e.To)
}

// applyStatic puts routes by hand in the place of those worked out: first those to switches,
// then those to hosts, which are more particular and get destinations of their own.
func (p *Plan) applyStatic() error {
	statics := p.Topology.Static
	touched := map[int]bool{}
	for _, toHosts := range []bool{false, true} {
		for _, r := range statics {
			to, ok := p.nodes[r.To]
			if !ok {
				return r.wrong("no node %q%s", r.To, strict.DidYouMean(r.To, p.Topology.NodeNames()))
			}
			if (p.switchNo[to] < 0) != toHosts {
				continue
			}
			set, err := p.staticSet(r)
			if err != nil {
				return err
			}
			classes, err := p.staticClasses(r, to)
			if err != nil {
				return err
			}
			at := p.switchNo[p.nodes[r.At]]
			for _, c := range classes {
				if p.classes[c].at == at {
					return r.wrong("%s hangs on %s itself", r.To, r.At)
				}
				p.hops[c*len(p.switches)+int(at)] = set
				touched[c] = true
			}
		}
	}
	for c := range p.classes {
		if touched[c] {
			if err := p.checkLoop(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r StaticRoute) wrong(format string, args ...any) error {
	return fmt.Errorf("route at %s to %s: %w", r.At, r.To, fmt.Errorf(format, args...))
}

func (p *Plan) staticSet(r StaticRoute) (int32, error) {
	at, ok := p.nodes[r.At]
	switch {
	case !ok:
		return 0, r.wrong("no node %q%s", r.At, strict.DidYouMean(r.At, p.Topology.NodeNames()))
	case p.switchNo[at] < 0:
		return 0, r.wrong("%s is a host; only switches have routes by hand", r.At)
	case len(r.Ports) == 0:
		return 0, r.wrong("no port")
	}
	var set nextHopSet
	for _, name := range r.Ports {
		port := p.find(PortRef{r.At, name})
		switch {
		case port < 0:
			return 0, r.wrong("no port %q%s", name, strict.DidYouMean(name, p.Topology.Nodes[at].portNames()))
		case p.edges[port]:
			return 0, r.wrong("port %s leads to a host", name)
		case slices.Contains(set.ports, port):
			return 0, r.wrong("port %s twice", name)
		}
		set.ports = append(set.ports, port)
	}
	slices.Sort(set.ports)
	for _, port := range set.ports {
		set.hops = append(set.hops, p.hopTo(port))
	}
	p.sets = append(p.sets, set)
	return int32(len(p.sets) - 1), nil
}

// staticClasses are the destinations a route is for; a host's NICs get theirs made.
func (p *Plan) staticClasses(r StaticRoute, to int32) ([]int, error) {
	if no := p.switchNo[to]; no >= 0 {
		for c := range p.classes {
			if p.classes[c].at == no && p.classes[c].whole < 0 {
				return []int{c}, nil
			}
		}
		return nil, r.wrong("%s has no hosts", r.To)
	}
	var out []int
	for i := p.base[to]; i < p.base[to+1]; i++ {
		c := int(p.classOf[i])
		if c < 0 {
			continue
		}
		if p.classes[c].whole < 0 {
			addr := p.ports[i].Addr.Addr()
			own := class{dst: netip.PrefixFrom(addr, addr.BitLen()), at: p.classes[c].at, whole: int32(c)}
			n := len(p.switches)
			p.hops = append(p.hops, p.hops[c*n:(c+1)*n]...)
			c = len(p.classes)
			p.classes = append(p.classes, own)
			p.classOf[i] = int32(c)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, r.wrong("%s is on no switch", r.To)
	}
	return out, nil
}

// checkLoop refuses routes that lead a packet of a class through a switch twice.
func (p *Plan) checkLoop(c int) error {
	const unseen, open, closed = 0, 1, 2
	state := make([]uint8, len(p.switches))
	var walk func(s int32) error
	walk = func(s int32) error {
		state[s] = open
		if set := p.hops[c*len(p.switches)+int(s)]; set >= 0 {
			for _, port := range p.sets[set].ports {
				to := p.switchNo[p.portNode[p.peer[port]]]
				if state[to] == open {
					return &LoopError{From: p.ports[port].Ref.Node, To: p.ports[p.peer[port]].Ref.Node, Dst: p.classes[c].dst}
				}
				if state[to] == unseen {
					if err := walk(to); err != nil {
						return err
					}
				}
			}
		}
		state[s] = closed
		return nil
	}
	for s := range p.switches {
		if state[s] == unseen {
			if err := walk(int32(s)); err != nil {
				return err
			}
		}
	}
	return nil
}
