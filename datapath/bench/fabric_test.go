package bench

import (
	"math/rand/v2"
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

// fabric is the loops, the pools and the wires of a plan. What is at the nodes is connected to them.
type fabric struct {
	plan  *topo.Plan
	v     *loop.Virtual
	nodes []*loop.Node
	pools []*link.Pool // by partition
	wires [][]wire     // by node and port, outwards
	hosts []int        // the nodes that are
}

// wire is a cable's one direction in virtual time.
type wire struct {
	from, to *loop.Node
	delay    time.Duration
	port     uint16
	node     int // whose port that is
	far      link.Receiver
}

func (w *wire) Send(f *link.Frame, at loop.Time) {
	f.ArriveAt(w.far, w.port)
	w.from.Send(w.to, w.port, at.Add(w.delay), &f.Timer)
}

func newFabric(plan *topo.Plan, opts ...loop.Option) *fabric {
	f := &fabric{plan: plan, v: loop.NewVirtual(time.Microsecond, opts...)}
	t := plan.Topology
	index := map[string]int{}
	for i := range t.Nodes {
		index[t.Nodes[i].Name] = i
		f.nodes = append(f.nodes, f.v.Node(uint32(i)))
		for len(f.pools) <= f.nodes[i].Partition() {
			f.pools = append(f.pools, &link.Pool{})
		}
		if t.Nodes[i].Role == topo.Host {
			f.hosts = append(f.hosts, i)
		}
	}
	for i := range t.Nodes {
		first := plan.FirstPort(t.Nodes[i].Name)
		wires := make([]wire, len(t.Nodes[i].Ports))
		for j := range wires {
			far := plan.PortAt(plan.PeerNumber(first + j))
			to := index[far.Ref.Node]
			port := plan.PeerNumber(first+j) - plan.FirstPort(far.Ref.Node)
			wires[j] = wire{from: f.nodes[i], to: f.nodes[to], node: to, delay: t.Links[far.Link].Delay, port: uint16(port)}
		}
		f.wires = append(f.wires, wires)
	}
	f.v.Between(func() { link.Balance(f.pools) })
	return f
}

// connect says what is at each node.
func (f *fabric) connect(at []link.Receiver) {
	for i := range f.wires {
		for j := range f.wires[i] {
			w := &f.wires[i][j]
			w.far = at[w.node]
		}
	}
}

func (f *fabric) pool(node int) *link.Pool { return f.pools[f.nodes[node].Partition()] }

func (f *fabric) node(i int) *topo.Node { return &f.plan.Topology.Nodes[i] }

// first is the fabric's number of a node's first port.
func (f *fabric) first(node int) int { return f.plan.FirstPort(f.node(node).Name) }

func (f *fabric) rate(node, port int) uint64 {
	return uint64(f.plan.Topology.Links[f.plan.PortAt(f.first(node)+port).Link].Rate)
}

// frames is how many frames there are.
func (f *fabric) frames() (n uint64) {
	for _, p := range f.pools {
		n += p.Made()
	}
	return n
}

// permutation is whom each of n hosts sends to: one in the pod halfway around, so that all packets
// take six links, and each host gets one host's.
func permutation(n int, seed uint64) []int {
	to := rand.New(rand.NewPCG(seed, 0)).Perm(n / 2)
	out := make([]int, n)
	for i := range out {
		half := (i + n/2) % n / (n / 2) * (n / 2)
		out[i] = half + to[i%(n/2)]
	}
	return out
}
