package topo

// Ports are numbered through the plan, node by node in the topology's order: a dense name for whoever
// routes by slices and not by addresses.

// PortCount is how many ports there are.
func (p *Plan) PortCount() int { return len(p.ports) }

// PortNumber is a port's number; −1 when there is no such port.
func (p *Plan) PortNumber(ref PortRef) int { return int(p.find(ref)) }

// PortAt is the plan of the port of a number. It is the plan's own and must not be changed.
func (p *Plan) PortAt(number int) *PlanPort { return &p.ports[number] }

// PeerNumber is the number of the port across the link.
func (p *Plan) PeerNumber(number int) int { return int(p.peer[number]) }

// FirstPort is the number of a node's first port; the others follow. −1: there is no such node.
func (p *Plan) FirstPort(node string) int {
	n, ok := p.nodes[node]
	if !ok {
		return -1
	}
	return int(p.base[n])
}

// Towards are the ports by which a switch sends packets on to the NIC of a number, all of equal cost,
// as places among the switch's own ports. down, which may be nil, are links that routing has noticed to be down,
// by their indices in the topology; see Converged. None: there is no way, or the node is no switch.
func (p *Plan) Towards(node string, nic int, down map[int]bool) []uint16 {
	n, ok := p.nodes[node]
	if !ok || p.switchNo[n] < 0 || p.classOf[nic] < 0 {
		return nil
	}
	s := p.switchNo[n]
	if peer := p.peer[nic]; p.portNode[peer] == n {
		return []uint16{uint16(peer - p.base[n])}
	}
	c := int(p.classOf[nic])
	set := p.hops[c*len(p.switches)+int(s)]
	if set < 0 {
		return nil
	}
	return p.places(n, c, s, set, down)
}

func (p *Plan) places(n int32, c int, s, set int32, down map[int]bool) []uint16 {
	var out []uint16
	var reach []int8
	if len(down) > 0 {
		reach = make([]int8, len(p.switches))
	}
	for _, port := range p.sets[set].ports {
		if len(down) > 0 && (down[p.ports[port].Link] || !p.reaches(c, p.switchNo[p.portNode[p.peer[port]]], down, reach)) {
			continue
		}
		out = append(out, uint16(port-p.base[n]))
	}
	return out
}

// RoutesByPort is Towards for all ports at once: at a port's number the way to it, nil for what is no NIC or
// can't be reached. Ways that are the same share their slice, so that a fabric of a thousand hosts costs a
// slice header a switch and port.
func (p *Plan) RoutesByPort(node string, down map[int]bool) [][]uint16 {
	out := make([][]uint16, len(p.ports))
	n, ok := p.nodes[node]
	if !ok || p.switchNo[n] < 0 {
		return out
	}
	s := p.switchNo[n]
	known := map[int32][]uint16{} // by class, since what is left of a set depends on where it leads
	own := make([][]uint16, p.base[n+1]-p.base[n])
	for i := range out {
		c := p.classOf[i]
		if c < 0 {
			continue
		}
		if peer := p.peer[i]; p.portNode[peer] == n {
			place := peer - p.base[n]
			if own[place] == nil {
				own[place] = []uint16{uint16(place)}
			}
			out[i] = own[place]
			continue
		}
		way, ok := known[c]
		if !ok {
			if set := p.hops[int(c)*len(p.switches)+int(s)]; set >= 0 {
				way = p.places(n, int(c), s, set, down)
			}
			known[c] = way
		}
		out[i] = way
	}
	return out
}
