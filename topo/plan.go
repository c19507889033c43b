package topo

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// Family is the address family of a plan.
type Family string

// The families. The empty family is IPv4.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// PlanOptions are what a plan leaves open. The zero value is a plan for IPv4.
type PlanOptions struct {
	Family Family
}

// MAC is an Ethernet address; mac[:] is a net.HardwareAddr.
type MAC [6]byte

// String writes 02:52:6f:00:00:01.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText writes the address as String does.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (m *MAC) UnmarshalText(b []byte) error {
	raw, err := hex.DecodeString(strings.ReplaceAll(string(b), ":", ""))
	if err != nil || len(raw) != len(m) {
		return fmt.Errorf("%q is not a MAC address", b)
	}
	copy(m[:], raw)
	return nil
}

// Plan is a topology with addresses and routes worked out. It is made once and then only
// read, by any number of goroutines. The same topology and options always give the same plan.
//
// Every link is a subnet of its own (/31 or /127), switches route between them. The hosts'
// links of one switch share a block, so that other switches need one route for all of them.
type Plan struct {
	Topology *Topology
	Options  PlanOptions

	nodes    map[string]int32
	ports    []PlanPort // all ports, node by node
	base     []int32    // where a node's ports begin, by node; one more at the end
	portNode []int32    // the node a port is on
	peer     []int32    // the port across the link
	byAddr   map[netip.Addr]int32

	switches []int32      // nodes that forward, in order
	switchNo []int32      // by node: its place in switches, or -1
	part     []int32      // by place in switches: which connected part of the fabric it is in
	classes  []class      // destinations that are routed alike
	classOf  []int32      // by port: the class of a host's NIC, or -1
	hops     []int32      // by class, then place in switches: a next-hop set, or -1
	sets     []nextHopSet // shared by all the routes that use them
	edges    []bool       // ports that lead to a host, by port
}

// PlanPort is a port with its addresses and its neighbour.
type PlanPort struct {
	Ref  PortRef      `json:"ref"`
	Rail int          `json:"rail"`
	Addr netip.Prefix `json:"addr"` // the port's own address, with its link's prefix length
	MAC  MAC          `json:"mac"`
	Link int          `json:"link"` // index into Topology.Links
	// The other end of the link.
	Peer     PortRef    `json:"peer"`
	PeerAddr netip.Addr `json:"peer_addr"`
	PeerMAC  MAC        `json:"peer_mac"`
}

// PolicyTable is a routing table for what is bound to one NIC of a host with several: by its
// source address, or by the interface itself, as an RDMA device's route lookups are.
type PolicyTable struct {
	Table  int          `json:"table"` // the table's number, unique in its host
	Port   string       `json:"port"`
	Source netip.Prefix `json:"source"` // the NIC's own address, as a single host
	Routes []Route      `json:"routes"`
}

// Plan works out addresses and routes. It refuses a topology that Validate refuses, and one
// with more hosts or links than the address plan holds, and routes by hand that loop.
func (t *Topology) Plan(opt PlanOptions) (*Plan, error) {
	if opt.Family == "" {
		opt.Family = IPv4
	}
	if opt.Family != IPv4 && opt.Family != IPv6 {
		return nil, fmt.Errorf("address family %q is neither %q nor %q", opt.Family, IPv4, IPv6)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{Topology: t, Options: opt}
	p.index()
	if err := p.address(); err != nil {
		return nil, err
	}
	p.route()
	if err := p.applyStatic(); err != nil {
		return nil, err
	}
	return p, nil
}

// index numbers nodes and ports and finds each port's peer.
func (p *Plan) index() {
	t := p.Topology
	total := 0
	for i := range t.Nodes {
		total += len(t.Nodes[i].Ports)
	}
	p.nodes = make(map[string]int32, len(t.Nodes))
	p.base = make([]int32, len(t.Nodes)+1)
	p.ports = make([]PlanPort, 0, total)
	p.portNode = make([]int32, 0, total)
	p.peer = make([]int32, total)
	p.switchNo = make([]int32, len(t.Nodes))
	p.edges = make([]bool, total)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		p.nodes[n.Name] = int32(i)
		p.base[i] = int32(len(p.ports))
		p.switchNo[i] = -1
		if n.Role == Switch {
			p.switchNo[i] = int32(len(p.switches))
			p.switches = append(p.switches, int32(i))
		}
		for _, port := range n.Ports {
			p.ports = append(p.ports, PlanPort{Ref: PortRef{n.Name, port.Name}, Rail: port.Rail})
			p.portNode = append(p.portNode, int32(i))
		}
	}
	p.base[len(t.Nodes)] = int32(total)
	for i := range t.Links {
		a, b := p.find(t.Links[i].A), p.find(t.Links[i].B)
		p.peer[a], p.peer[b] = b, a
		p.ports[a].Link, p.ports[b].Link = i, i
		p.ports[a].Peer, p.ports[b].Peer = p.ports[b].Ref, p.ports[a].Ref
	}
}

// find is the number of a port, or -1. Ports are mostly called eth0, eth1, … in order, so the
// guess that a name's number is its place is nearly always right.
func (p *Plan) find(ref PortRef) int32 {
	n, ok := p.nodes[ref.Node]
	if !ok {
		return -1
	}
	lo, hi := p.base[n], p.base[n+1]
	guess := 0
	for i := len(ref.Port) - digitsAtEnd(ref.Port); i < len(ref.Port) && guess < 1<<20; i++ {
		guess = guess*10 + int(ref.Port[i]-'0')
	}
	if g := lo + int32(guess); g < hi && p.ports[g].Ref.Port == ref.Port {
		return g
	}
	for i := lo; i < hi; i++ {
		if p.ports[i].Ref.Port == ref.Port {
			return i
		}
	}
	return -1
}

func digitsAtEnd(s string) int {
	n := 0
	for n < len(s) && s[len(s)-1-n] >= '0' && s[len(s)-1-n] <= '9' {
		n++
	}
	return n
}

// Node finds a node by name; nil: there is none.
func (p *Plan) Node(name string) *Node {
	if i, ok := p.nodes[name]; ok {
		return &p.Topology.Nodes[i]
	}
	return nil
}

// Port is the plan of one port.
func (p *Plan) Port(ref PortRef) (PlanPort, bool) {
	if i := p.find(ref); i >= 0 {
		return p.ports[i], true
	}
	return PlanPort{}, false
}

// Ports are a node's ports in order; nil for an unknown node. The slice is the plan's own.
func (p *Plan) Ports(node string) []PlanPort {
	i, ok := p.nodes[node]
	if !ok {
		return nil
	}
	return p.ports[p.base[i]:p.base[i+1]:p.base[i+1]]
}

// Link is the link of a port; nil for an unknown port.
func (p *Plan) Link(ref PortRef) *Link {
	if i := p.find(ref); i >= 0 {
		return &p.Topology.Links[p.ports[i].Link]
	}
	return nil
}

// Owner is the port that has an address.
func (p *Plan) Owner(addr netip.Addr) (PortRef, bool) {
	if i, ok := p.byAddr[addr]; ok {
		return p.ports[i].Ref, true
	}
	return PortRef{}, false
}
