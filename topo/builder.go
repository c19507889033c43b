package topo

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// builder puts a topology together from nodes and links by name.
type builder struct {
	spec *Spec
	t    Topology
	at   map[string]int
	made int           // hosts made by hosts
	rate map[Tier]Rate // what a shape wants of a tier whose rate nobody set
}

// The defaults of a link. A delay of 1 µs is 200 m of fibre, or 20 m and a switch's latency.
const (
	defaultRate  = 100 * Gbps
	defaultDelay = time.Microsecond
	defaultMTU   = 4200
)

func newBuilder(s *Spec, name string) *builder {
	return &builder{spec: s, t: Topology{Name: cmp.Or(s.Name, name)}, at: map[string]int{}, rate: map[Tier]Rate{}}
}

func (b *builder) host(name string) string {
	b.add(Node{Name: name, Role: Host, Kind: b.spec.Hosts.Kind, GPUs: -1})
	return name
}

func (b *builder) sw(name string, tier Tier) string {
	n := Node{Name: name, Role: Switch, Kind: b.spec.Switches.Kind, Tier: tier, HashSeed: seedOf(name)}
	if s := b.spec.Switches.HashSeed; s != nil {
		n.HashSeed = *s
	}
	b.add(n)
	return name
}

// seedOf gives each switch an ECMP hash seed of its own.
func seedOf(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}

func (b *builder) add(n Node) {
	b.at[n.Name] = len(b.t.Nodes)
	b.t.Nodes = append(b.t.Nodes, n)
}

// hosts attaches n hosts to a switch, each with as many links as it has NICs, and numbers them on.
func (b *builder) hosts(n int, sw string) {
	for range n {
		h := b.host(numbered("h", b.made))
		for rail := range b.nics() {
			b.link(h, sw, rail)
		}
		b.made++
	}
}

func (b *builder) nics() int { return max(1, b.spec.Hosts.NICs) }

// link joins two nodes by their next free ports. The rail is that of the first, if a host.
func (b *builder) link(low, high string, rail int) {
	b.t.Links = append(b.t.Links, Link{A: b.port(low, rail), B: b.port(high, 0)})
}

func (b *builder) port(node string, rail int) PortRef {
	n := &b.t.Nodes[b.at[node]]
	p := Port{Name: "eth" + strconv.Itoa(len(n.Ports)), Rail: rail}
	n.Ports = append(n.Ports, p)
	return PortRef{node, p.Name}
}

// finish gives links their settings and hosts their GPUs.
func (b *builder) finish() {
	for i := range b.t.Links {
		l := &b.t.Links[i]
		if l.MTU == 0 {
			b.settle(l)
		}
	}
	for i := range b.t.Nodes {
		if n := &b.t.Nodes[i]; n.GPUs < 0 {
			n.GPUs = len(n.Ports)
			if g := b.spec.Hosts.GPUs; g != nil {
				n.GPUs = *g
			}
		}
	}
}

// settle sets what a link has from its tier, else from all links, else by default.
func (b *builder) settle(l *Link) {
	tier := min(b.t.Nodes[b.at[l.A.Node]].Tier, b.t.Nodes[b.at[l.B.Node]].Tier)
	s := b.spec
	t := []LinkSettings{s.Tiers.Host, s.Tiers.Leaf, s.Tiers.Spine}[min(tier, 2)]
	l.Rate = cmp.Or(t.Rate, b.rate[tier], s.Rate, defaultRate)
	l.MTU = cmp.Or(t.MTU, s.MTU, defaultMTU)
	l.Delay = defaultDelay
	for _, d := range []*time.Duration{s.Delay, t.Delay} {
		if d != nil {
			l.Delay = *d
		}
	}
}

func (s LinkSettings) apply(l *Link) {
	l.Rate = cmp.Or(s.Rate, l.Rate)
	l.MTU = cmp.Or(s.MTU, l.MTU)
	if s.Delay != nil {
		l.Delay = *s.Delay
	}
}

// sortPorts puts a node's ports in the order of their names, numbers by value.
func (n *Node) sortPorts() {
	slices.SortStableFunc(n.Ports, func(a, b Port) int { return CompareNames(a.Name, b.Name) })
}
