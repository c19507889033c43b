package topo

// Converged are the routes that switches change when links are down, by switch: every route that
// loses next hops, with those that are left; none left means that the route is withdrawn. A next
// hop is lost when its link is down, or when the switch behind it has lost all of its own towards
// the destination. It is what a routing protocol arrives at; no path is found that was not one of
// the shortest before, as in fabrics whose routing is valley-free.
//
// down holds indices into Topology.Links. Next-hop slices that are whole are shared and must not
// be changed.
func (p *Plan) Converged(down map[int]bool) map[string][]Route {
	if len(down) == 0 {
		return nil
	}
	n := len(p.switches)
	changes := map[string][]Route{}
	reach := make([]int8, n) // by switch, for one class: 0 unknown, 1 yes, −1 no or being asked
	for c := range p.classes {
		clear(reach)
		for s := range n {
			set := p.hops[c*n+s]
			if whole := p.classes[c].whole; set < 0 || whole >= 0 && p.hops[int(whole)*n+s] == set {
				continue
			}
			if left := p.left(c, int32(s), down, reach); len(left) < len(p.sets[set].hops) {
				node := p.Topology.Nodes[p.switches[s]].Name
				changes[node] = append(changes[node], Route{p.classes[c].dst, left})
			}
		}
	}
	return changes
}

// left are a switch's next hops towards a class that still lead there.
func (p *Plan) left(c int, s int32, down map[int]bool, reach []int8) []NextHop {
	set := &p.sets[p.hops[c*len(p.switches)+int(s)]]
	var left []NextHop
	for i, port := range set.ports {
		if !down[p.ports[port].Link] && p.reaches(c, p.switchNo[p.portNode[p.peer[port]]], down, reach) {
			left = append(left, set.hops[i])
		}
	}
	return left
}

func (p *Plan) reaches(c int, s int32, down map[int]bool, reach []int8) bool {
	if s == p.classes[c].at {
		return true
	}
	if reach[s] == 0 {
		reach[s] = -1 // routes by hand may lead in a circle
		if p.hops[c*len(p.switches)+int(s)] >= 0 && len(p.left(c, s, down, reach)) > 0 {
			reach[s] = 1
		}
	}
	return reach[s] > 0
}
