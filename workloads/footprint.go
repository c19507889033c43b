package workloads

import "github.com/rocebed/rocebed/topo"

// queuePairMemory is what a queue pair costs besides registered memory, both ends together:
// queues, completion queues and what is known of its messages (up to 254 KiB of latencies).
const queuePairMemory = 384 << 10

// widestMTU is the MTU that a footprint is reckoned with: devices, which know, aren't there yet.
const widestMTU = 4096

// Footprint is how much memory the workloads take on a topology while they run, in bytes: an
// upper bound, for whoever makes a machine for them. Workloads that Check refuses count nothing.
func Footprint(specs []Spec, t *topo.Topology) uint64 {
	var total uint64
	for i := range specs {
		registered, qps := specs[i].footprint(t)
		total += registered + qps*queuePairMemory
	}
	return total
}

// footprint is what a workload registers, and how many queue pairs it makes.
func (s *Spec) footprint(t *topo.Topology) (registered, qps uint64) {
	if s.Collective() {
		return s.collectiveFootprint(t)
	}
	pairs, err := pairsOf(s, t)
	if err != nil {
		return 0, 0
	}
	size, slots := s.size(widestMTU), s.slots(widestMTU)
	if s.op() == OpAtomic {
		slots = 1
	}
	there := size
	if s.Transport == UD {
		there += grh
	}
	each := newLayout(size, s.depth(widestMTU)).bytes() + newLayout(there, slots).bytes()
	qps = uint64(len(pairs)) * uint64(s.qps())
	return qps * uint64(each), qps
}

func (s *Spec) collectiveFootprint(t *topo.Topology) (registered, qps uint64) {
	ranks, err := ranksOf(s, t)
	if err != nil {
		return 0, 0
	}
	n := uint64(len(ranks))
	if s.Kind == AllToAll { // units go to their place: what is staged is none
		qps = n * (n - 1) * uint64(s.qps())
		return n*uint64(newLayout(s.size(0), 2).bytes()) + qps*uint64(newLayout(4, s.slots(widestMTU)).bytes()), qps
	}
	qps = n * uint64(s.qps())
	slice := min(s.slice(), s.size(0))
	return n*uint64(newLayout(s.size(0), 1).bytes()) + qps*uint64(newLayout(slice, s.slots(widestMTU)).bytes()), qps
}
