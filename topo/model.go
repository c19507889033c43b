package topo

import (
	"net/netip"
	"time"
)

// Kind says what a node is made of. The empty kind leaves the choice to the backend.
type Kind string

// The node kinds. A backend is a set of them; kinds mix in one real-time fabric.
const (
	RxeHost     Kind = "rxe-host"     // a namespace with rdma_rxe on every NIC, driven through libibverbs
	SoftHost    Kind = "soft-host"    // rocebed's software RNIC
	LinuxSwitch Kind = "linux-switch" // a namespace that forwards with the kernel's ECMP and tc
	SoftSwitch  Kind = "soft-switch"  // rocebed's software switch
)

// Role separates what sends and receives from what forwards.
type Role string

// The roles.
const (
	Host   Role = "host"
	Switch Role = "switch"
)

// Tier counts a node's distance from the hosts: 0 a host, 1 a leaf (ToR), 2 a spine
// (aggregation), 3 a core. Up-down validation and selectors use it.
type Tier int

// Topology is what a fabric is. It is a value: a fabric never changes it.
// Names are unique; a port belongs to exactly one link.
type Topology struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
	// Static are routes by hand, instead of the equal-cost shortest paths.
	Static []StaticRoute `json:"static,omitempty"`
}

// Node is a host or a switch with its ports in order.
type Node struct {
	Name  string `json:"name"`
	Role  Role   `json:"role"`
	Kind  Kind   `json:"kind"` // empty: the backend chooses
	Tier  Tier   `json:"tier"`
	Ports []Port `json:"ports"`
	// GPUs is the number of emulated GPUs of a host; GPU g is nearest to NIC g mod len(Ports).
	GPUs int `json:"gpus"`
	// HashSeed seeds a switch's ECMP hash. Equal seeds on successive tiers polarise.
	HashSeed uint32 `json:"hash_seed"`
}

// Port is one end of a link. A host's ports are its NICs.
type Port struct {
	Name string `json:"name"` // unique in its node: eth0, eth1, …
	Rail int    `json:"rail"` // the rail of a host's NIC (0 for switches' ports)
}

// PortRef names a port: "leaf1:eth3" in text.
type PortRef struct {
	Node string
	Port string
}

// Link joins two ports. Both directions have the same rate, delay and MTU.
type Link struct {
	A     PortRef       `json:"a"`
	B     PortRef       `json:"b"`
	Rate  Rate          `json:"rate"`     // line rate, bits per second of fabric time
	Delay time.Duration `json:"delay_ns"` // one-way propagation delay, fabric time
	MTU   int           `json:"mtu"`      // bytes of an IP packet; IB MTU 4096 needs 4200
}

// Route is one destination at one node, with all its equal-cost next hops in port order.
type Route struct {
	Dst      netip.Prefix `json:"dst"`
	NextHops []NextHop    `json:"next_hops"`
}

// NextHop is a neighbour's address and the port that leads to it. Without an address the
// destination is on the link itself.
type NextHop struct {
	Via  netip.Addr `json:"via,omitzero"`
	Port string     `json:"port"`
}
