package bench

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// fatTree plans a three-tier fat tree of k-port switches, k³/4 hosts, 100 Gb/s and 1 µs a link.
func fatTree(tb testing.TB, k int) *topo.Plan {
	tb.Helper()
	spec := topo.Spec{FatTree: &topo.FatTree{K: k}}
	t, err := spec.Build()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := t.Plan(topo.PlanOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// wire is a cable's one direction in virtual time.
type wire struct {
	from, to *loop.Node
	delay    time.Duration
	port     uint16
	far      link.Receiver
}

func (w *wire) Send(f *link.Frame, at loop.Time) {
	f.ArriveAt(w.far, w.port)
	w.from.Send(w.to, w.port, at.Add(w.delay), &f.Timer)
}

// pods is a partition of a fat tree of k-port switches by its pods; the core is dealt out. Nodes
// are in the order of the topology: core, spines, leaves, hosts, and within these by pod.
func pods(k, parts int) func(node uint32) int {
	half := k / 2
	return func(node uint32) int {
		n := int(node)
		if n < half*half {
			return n * parts / (half * half)
		}
		n -= half * half
		if switches := k * k; n < switches {
			return n % (k * half) / half * parts / k
		}
		return (n - k*k) / (half * half) * parts / k
	}
}
