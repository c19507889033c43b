package topo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spec is the topology section of a scenario: one shape (or nodes and links by name), the
// settings of its links by tier, and what differs from them. Build makes a Topology of it.
type Spec struct {
	Name string `yaml:"name"` // default: the shape's name

	// The shape: exactly one of these, or Nodes and Links.
	SpineLeaf     *SpineLeaf     `yaml:"spine-leaf"`
	RailOptimised *RailOptimised `yaml:"rail-optimised"`
	FatTree       *FatTree       `yaml:"fat-tree"`
	Star          *Star          `yaml:"star"`
	Dumbbell      *Dumbbell      `yaml:"dumbbell"`
	ParkingLot    *ParkingLot    `yaml:"parking-lot"`
	Ring          *Ring          `yaml:"ring"`
	Nodes         []NodeSpec     `yaml:"nodes"`
	Links         []LinkSpec     `yaml:"links"`

	// What every link has, unless its tier or an override says otherwise.
	LinkSettings `yaml:",inline"`
	Tiers        TierSettings   `yaml:"tiers"`
	Hosts        HostSettings   `yaml:"hosts"`
	Switches     SwitchSettings `yaml:"switches"`
	Override     []Override     `yaml:"override"` // applied in order, the last one wins

	Routes []RouteSpec `yaml:"routes"` // by hand, instead of the equal-cost shortest paths

	Addresses Family `yaml:"addresses"` // ipv4 (default) or ipv6
}

// LinkSettings are what links have; what is left out is as the wider setting says.
type LinkSettings struct {
	Rate  Rate           `yaml:"rate,nonzero"` // line rate, fabric time. Default 100Gbps
	Delay *time.Duration `yaml:"delay"`        // one-way propagation, fabric time. Default 1us
	MTU   int            `yaml:"mtu,nonzero"`  // bytes of an IP packet. Default 4200, enough for IB MTU 4096
}

// TierSettings are link settings by the tier of a link's lower end.
type TierSettings struct {
	Host  LinkSettings `yaml:"host"`  // host to switch
	Leaf  LinkSettings `yaml:"leaf"`  // leaf to spine, and between leaves
	Spine LinkSettings `yaml:"spine"` // spine (aggregation) to core, and above
}

// HostSettings are what all hosts have.
type HostSettings struct {
	Kind Kind `yaml:"kind"`         // default: the backend chooses
	NICs int  `yaml:"nics,nonzero"` // NICs a host, default 1. Shapes that fix it (rail-optimised, explicit nodes) refuse it
	GPUs *int `yaml:"gpus"`         // emulated GPUs a host, default one a NIC
}

// SwitchSettings are what all switches have.
type SwitchSettings struct {
	Kind Kind `yaml:"kind"` // default: the backend chooses
	// HashSeed, when given, is every switch's ECMP hash seed: equal seeds polarise traffic.
	// Default: a seed of its own for each, from its name.
	HashSeed *uint32 `yaml:"hash_seed"`
}

// Override changes what matches it: nodes by name, or links by the nodes they join.
type Override struct {
	Node string `yaml:"node"` // a name or glob: "h3", "leaf*"
	Link string `yaml:"link"` // two node names or globs: "leaf1 -- spine*"; or one link "leaf1:eth2 -- spine1:eth0"

	Kind     Kind    `yaml:"kind"`      // of a node
	GPUs     *int    `yaml:"gpus"`      // of a host
	HashSeed *uint32 `yaml:"hash_seed"` // of a switch

	LinkSettings `yaml:",inline"` // of a link
}

// NodeSpec is an explicit node; its ports come from the links that name it.
type NodeSpec struct {
	Host   string `yaml:"host"`   // the host's name, or
	Switch string `yaml:"switch"` // the switch's name

	Kind     Kind    `yaml:"kind"`
	GPUs     *int    `yaml:"gpus"`      // of a host; default one a NIC
	Tier     Tier    `yaml:"tier"`      // of a switch; default: one more than the least of its neighbours'
	HashSeed *uint32 `yaml:"hash_seed"` // of a switch
}

// LinkSpec is an explicit link: in short "h1:eth0 -- leaf1:eth0", or "h1 -- leaf1" where the
// next free port will do, or {ends: "h1 -- leaf1", rate: 25Gbps}.
type LinkSpec struct {
	Ends         string `yaml:"ends,required"`
	LinkSettings `yaml:",inline"`
}

// UnmarshalText reads the short form.
func (l *LinkSpec) UnmarshalText(b []byte) error {
	*l = LinkSpec{Ends: string(b)}
	return nil
}

// RouteSpec is a route by hand at a switch.
type RouteSpec struct {
	At  string   `yaml:"at,required"`  // the switch
	To  string   `yaml:"to,required"`  // a host, or a switch for all hosts on it
	Via []string `yaml:"via,required"` // neighbouring switches (all links to them), or ports of At
}

// Ratio is how much more comes in from below than goes out above: "3:1", or just 3.
type Ratio float64

// UnmarshalText reads "3:1", "3" or "1.5".
func (r *Ratio) UnmarshalText(b []byte) error {
	over, under, ok := strings.Cut(string(b), ":")
	if !ok {
		under = "1"
	}
	a, aerr := strconv.ParseFloat(strings.TrimSpace(over), 64)
	c, cerr := strconv.ParseFloat(strings.TrimSpace(under), 64)
	if aerr != nil || cerr != nil || !(c > 0) || !(a/c >= 0.01) || !(a/c <= 1000) {
		return fmt.Errorf("%q is not a ratio from 1:100 to 1000:1 (write \"3:1\")", b)
	}
	*r = Ratio(a / c)
	return nil
}

// UnmarshalText reads "ipv4" or "ipv6".
func (f *Family) UnmarshalText(b []byte) error {
	if *f = Family(b); *f != IPv4 && *f != IPv6 {
		return fmt.Errorf("%q is neither %q nor %q", b, IPv4, IPv6)
	}
	return nil
}

// PlanOptions are what the section says about the plan.
func (s *Spec) PlanOptions() PlanOptions { return PlanOptions{Family: s.Addresses} }
