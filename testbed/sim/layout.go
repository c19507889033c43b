package sim

import (
	"runtime"

	"github.com/rocebed/rocebed/topo"
)

// layout deals nodes out to partitions, which cores take. A switch and the hosts on it stay together.
type layout struct {
	workers int
	parts   int
	of      []int // by place in the topology
}

// nodesACore is how many nodes a core must have for a second one to pay: below it, meeting costs more than the
// work.
const nodesACore = 64

// maxWorkers is how many cores one fabric uses unless told.
const maxWorkers = 16

func newLayout(t *topo.Topology, workers int) *layout {
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), len(t.Nodes)/nodesACore, maxWorkers)
	}
	l := &layout{workers: max(workers, 1), of: make([]int, len(t.Nodes))}
	l.parts = l.workers
	place := map[string]int{}
	for i := range t.Nodes {
		place[t.Nodes[i].Name] = i
	}
	// Switches that have hosts are dealt out in runs, so that a pod stays together; the others one by one.
	above := map[int]int{} // a host's place: its first switch's
	edge := map[int]bool{}
	for i := range t.Links {
		a, b := place[t.Links[i].A.Node], place[t.Links[i].B.Node]
		for _, e := range [][2]int{{a, b}, {b, a}} {
			if t.Nodes[e[0]].Role == topo.Host && t.Nodes[e[1]].Role == topo.Switch {
				if _, has := above[e[0]]; !has {
					above[e[0]] = e[1]
				}
				edge[e[1]] = true
			}
		}
	}
	leaf, other := 0, 0
	for i := range t.Nodes {
		switch {
		case edge[i]:
			l.of[i] = leaf * l.parts / len(edge)
			leaf++
		case t.Nodes[i].Role == topo.Switch:
			l.of[i] = other % l.parts
			other++
		}
	}
	for h, sw := range above {
		l.of[h] = l.of[sw]
	}
	return l
}

// partition is a node's.
func (l *layout) partition(node uint32) int {
	if node == controlNode {
		return 0
	}
	return l.of[node-controlNode-1]
}
