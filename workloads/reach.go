package workloads

import (
	"errors"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// CheckReach checks that the NICs of every flow reach each other: in a rail-only fabric, say, no packet
// goes from one rail to another, and a queue pair across would retry until it fails. It says the
// first such flow of each workload; paths are as CheckAll's. Workloads that Check refuses are left out.
func CheckReach(specs []Spec, t *topo.Topology, reaches func(src, dst topo.PortRef) bool) error {
	var errs []error
	for i := range specs {
		s := &specs[i]
		key, hint := "to", ""
		if s.Kind == AllPairs {
			key = "from"
		}
		pairs, err := pairsOf(s, t)
		if s.Collective() {
			key, hint = "ranks", "; name ranks whose neighbours share a rail, such as \"h*:gpu0\""
			pairs, err = collectivePairs(s, t)
		}
		if err != nil || Check(*s, t) != nil {
			continue
		}
		for _, p := range pairs {
			if !reaches(p.from, p.to) || !reaches(p.to, p.from) {
				errs = append(errs, strict.At("["+itoa(i)+"]."+key, "no route joins %s and %s%s", portName(p.from), portName(p.to), hint))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// collectivePairs are the NICs between which a collective's data crosses the fabric: ring
// neighbours', or of an all-to-all each with each.
func collectivePairs(s *Spec, t *topo.Topology) ([]pair, error) {
	ranks, err := ranksOf(s, t)
	if err != nil {
		return nil, err
	}
	var out []pair
	join := func(a, b rank) {
		if a.node != b.node {
			out = append(out, pair{a.port, b.port})
		}
	}
	for i, r := range ranks {
		if s.Kind == AllReduce {
			join(r, ranks[(i+1)%len(ranks)])
			continue
		}
		for _, other := range ranks[i+1:] {
			join(r, other)
		}
	}
	return out, nil
}
