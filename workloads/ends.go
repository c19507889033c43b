package workloads

import "github.com/rocebed/rocebed/topo"

// FlowEnds are the NICs that a flow's data goes between, known before anything runs.
type FlowEnds struct {
	Index    int // in the workload, as in its results
	Src, Dst topo.PortRef
}

// Ends are the flows that a workload which Check accepts will have on a topology, in the order of its results. Those between
// ranks of one host are left out: they don't leave it.
func Ends(s *Spec, t *topo.Topology) ([]FlowEnds, error) {
	if s.Collective() {
		return collectiveEnds(s, t)
	}
	pairs, err := pairsOf(s, t)
	if err != nil {
		return nil, err
	}
	var out []FlowEnds
	for _, p := range pairs {
		src, dst := p.from, p.to
		if s.op() == OpRead {
			src, dst = dst, src
		}
		for range s.qps() {
			out = append(out, FlowEnds{len(out), src, dst})
		}
	}
	return out, nil
}

func collectiveEnds(s *Spec, t *topo.Topology) ([]FlowEnds, error) {
	ranks, err := ranksOf(s, t)
	if err != nil {
		return nil, err
	}
	var out []FlowEnds
	index := 0
	join := func(a, b rank) {
		if a.node != b.node {
			out = append(out, FlowEnds{index, a.port, b.port})
		}
		index++
	}
	if s.Kind == AllReduce {
		for range s.qps() {
			for i, r := range ranks {
				join(r, ranks[(i+1)%len(ranks)])
			}
		}
		return out, nil
	}
	block := s.size(0) / len(ranks) / 4 * 4
	slice := min(s.slice(), block)
	qps := min(s.qps(), (block+slice-1)/slice)
	for i, r := range ranks {
		for off := 1; off < len(ranks); off++ {
			for range qps {
				join(r, ranks[(i+off)%len(ranks)])
			}
		}
	}
	return out, nil
}
