package asic

import (
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/datapath/link"
)

// Routes say for every destination which ports lead there at equal cost. Build them with
// AddSet and To; the switch copies what it needs.
type Routes struct {
	Sets  [][]int // each the ports of one set of next hops
	ByDst []int32 // by Frame.Dst: index into Sets; negative, or beyond the end: no route
}

// AddSet adds a set of equal-cost ports and returns its index. A set that is there already is
// shared.
func (r *Routes) AddSet(ports ...int) int {
	for i, s := range r.Sets {
		if slices.Equal(s, ports) {
			return i
		}
	}
	r.Sets = append(r.Sets, slices.Clone(ports))
	return len(r.Sets) - 1
}

// To routes a destination over a set that AddSet returned; a negative one withdraws its route.
func (r *Routes) To(dst uint32, set int) {
	for uint32(len(r.ByDst)) <= dst {
		r.ByDst = append(r.ByDst, -1)
	}
	r.ByDst[dst] = int32(set)
}

// hop is a destination's compiled route: a port, or bySet plus a set's index, or one of these.
type hop uint16

const (
	bySet   hop = 1 << 14
	toSelf  hop = 0xfffe
	nowhere hop = 0xffff
)

// set is a set of next hops.
type set struct {
	all  []uint16
	live []uint16 // those whose link is up
	turn uint32   // of round robin
}

// SetRoutes replaces all routes, from the next frame on. It refuses ports that don't exist;
// then the old routes stay.
func (s *Switch) SetRoutes(r Routes) error {
	if len(r.Sets) > maxSets {
		return fmt.Errorf("%s: %d sets of next hops, at most %d fit", s.name, len(r.Sets), maxSets)
	}
	sets := make([]set, len(r.Sets))
	for i, ports := range r.Sets {
		for _, p := range ports {
			if p < 0 || p >= len(s.ports) {
				return fmt.Errorf("%s: a route leads to port %d of %d", s.name, p, len(s.ports))
			}
			sets[i].all = append(sets[i].all, uint16(p))
		}
	}
	size := len(r.ByDst)
	for i := range s.config {
		if n := s.config[i].Number; n != link.NoDst {
			size = max(size, int(n)+1)
		}
	}
	hops := make([]hop, size)
	for dst := range hops {
		hops[dst] = nowhere
		if dst >= len(r.ByDst) || r.ByDst[dst] < 0 {
			continue
		}
		n := int(r.ByDst[dst])
		if n >= len(sets) {
			return fmt.Errorf("%s: the route to port %d of the fabric names set %d of %d", s.name, dst, n, len(sets))
		}
		switch all := sets[n].all; len(all) {
		case 0:
		case 1:
			hops[dst] = hop(all[0])
		default:
			hops[dst] = bySet + hop(n)
		}
	}
	for i := range s.config {
		if n := s.config[i].Number; n != link.NoDst {
			hops[n] = toSelf
		}
	}
	s.hops, s.sets = hops, sets
	s.findLive()
	return nil
}

// findLive works out which members of each set can be used.
func (s *Switch) findLive() {
	for i := range s.sets {
		t := &s.sets[i]
		t.live = t.live[:0]
		for _, p := range t.all {
			if s.ports[p].routed {
				t.live = append(t.live, p)
			}
		}
	}
}
