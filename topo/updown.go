package topo

import (
	"fmt"
	"strings"
)

// Valley is a place where packets don't go up and then down: having come down, or sideways,
// they go up or sideways again. Up-down (valley-free) routing rises through the tiers,
// crosses at most one link inside a tier, and falls; then no circle of buffers can form.
type Valley struct {
	Via     string  // the switch where packets turn
	In, Out PortRef // its ports
	Class   string  // where the packets go, such as 10.0.3.0/24
	To      string  // the switch that has those addresses
}

func (v Valley) String() string {
	return fmt.Sprintf("%s: packets to %s (%s) that came in by %s, down or sideways, leave by %s, up or sideways", v.Via, v.Class, v.To, v.In.Port, v.Out.Port)
}

// Valleys are the turns of the plan's routes that are not up-down, each port pair once, in
// the order of destinations; none: the routes are valley-free. Only routes that carry packets
// of some host count.
func (p *Plan) Valleys() []Valley {
	var out []Valley
	seen := map[[2]int32]bool{}
	p.eachTurn(func(c int, in, outPort int32, falling bool) {
		if !falling || p.tierOf(p.peer[outPort]) < p.tierOf(outPort) || seen[[2]int32{in, outPort}] {
			return
		}
		seen[[2]int32{in, outPort}] = true
		at, to := p.switches[p.classes[c].at], &p.classes[c]
		out = append(out, Valley{
			Via: p.ports[in].Ref.Node, In: p.ports[in].Ref, Out: p.ports[outPort].Ref,
			Class: to.dst.String(), To: p.Topology.Nodes[at].Name,
		})
	})
	return out
}

// BufferCycle is a circle of switch ports whose queues can all wait on the next: lossless
// traffic can deadlock there when pause closes the circle (a cyclic buffer dependency, CBD).
// Nil: there is none and PFC can't deadlock these routes. Of several circles it is the first.
func (p *Plan) BufferCycle() []PortRef {
	// An edge from port a to port b: some host's packets leave by a and, one switch on, by b.
	next := make([][]int32, len(p.ports))
	seen := map[[2]int32]bool{}
	p.eachTurn(func(_ int, in, out int32, _ bool) {
		if e := [2]int32{p.peer[in], out}; !seen[e] {
			seen[e] = true
			next[e[0]] = append(next[e[0]], out)
		}
	})
	// Depth-first, without recursion: a fabric's circles are as long as it is wide.
	const unseen, open, closed = 0, 1, 2
	state := make([]uint8, len(p.ports))
	turn := make([]int, len(p.ports))
	for start := range next {
		if state[start] != unseen {
			continue
		}
		stack := []int32{int32(start)}
		state[start] = open
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			if turn[at] == len(next[at]) {
				state[at] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			to := next[at][turn[at]]
			turn[at]++
			switch state[to] {
			case unseen:
				state[to] = open
				stack = append(stack, to)
			case open:
				return p.circle(stack, to)
			}
		}
	}
	return nil
}

func (p *Plan) circle(stack []int32, from int32) []PortRef {
	i := len(stack) - 1
	for stack[i] != from {
		i--
	}
	var out []PortRef
	for _, port := range stack[i:] {
		out = append(out, p.ports[port].Ref)
	}
	return out
}

// DeadlockStatement says in a sentence whether pause can deadlock the plan's routes, and where.
func (p *Plan) DeadlockStatement() string {
	cycle := p.BufferCycle()
	switch valleys := p.Valleys(); {
	case cycle != nil:
		names := make([]string, 0, len(cycle)+1)
		for _, c := range append(cycle, cycle[0]) {
			names = append(names, c.String())
		}
		return "cyclic buffer dependency: " + strings.Join(names, " > ") + "; lossless traffic can deadlock"
	case len(valleys) > 0:
		return fmt.Sprintf("not up-down (%s), yet free of cyclic buffer dependencies: lossless traffic can't deadlock", valleys[0])
	}
	return "up-down, free of cyclic buffer dependencies: lossless traffic can't deadlock"
}

func (p *Plan) tierOf(port int32) Tier { return p.Topology.Nodes[p.portNode[port]].Tier }

// eachTurn calls f for every way in which some host's packets of a class come into a switch
// by port in, from another switch, and leave it by port out, to another switch. Falling says
// that they have gone down or sideways before. A turn may be reported both ways.
func (p *Plan) eachTurn(f func(class int, in, out int32, falling bool)) {
	n := len(p.switches)
	type state struct {
		sw      int32
		in      int32 // the port that they came in by; -1: from a host
		falling bool
	}
	seen := make(map[state]bool)
	var queue []state
	sources := make([]bool, n)
	for i := range p.classes {
		sources[p.classes[i].at] = true
	}
	for c := range p.classes {
		clear(seen)
		queue = queue[:0]
		for s := range int32(n) {
			if sources[s] && s != p.classes[c].at {
				queue = append(queue, state{s, -1, false})
			}
		}
		for i := 0; i < len(queue); i++ {
			at := queue[i]
			set := p.hops[c*n+int(at.sw)]
			if set < 0 {
				continue
			}
			for _, out := range p.sets[set].ports {
				if at.in >= 0 {
					f(c, at.in, out, at.falling)
				}
				in := p.peer[out]
				to := state{p.switchNo[p.portNode[in]], in, at.falling || p.tierOf(in) <= p.tierOf(out)}
				if to.sw != p.classes[c].at && !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
	}
}
