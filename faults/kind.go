package faults

import (
	"slices"

	"github.com/rocebed/rocebed/topo/strict"
)

// Kind is what goes wrong.
type Kind string

// Group is the part of a fabric that a kind of fault is about.
type Group string

// The groups.
const (
	GroupPacket  Group = "packet"  // single packets, chosen by name
	GroupLink    Group = "link"    // what is on a link, or the link itself
	GroupSwitch  Group = "switch"  // a switch's settings and its state
	GroupNIC     Group = "nic"     // an RDMA NIC and its queue pairs
	GroupHost    Group = "host"    // processes, GPUs, clocks
	GroupTraffic Group = "traffic" // what others send beside the workloads
)

// Groups are all of them, in the order of the documentation.
func Groups() []Group {
	return []Group{GroupPacket, GroupLink, GroupSwitch, GroupNIC, GroupHost, GroupTraffic}
}

// TargetType is what a fault of a kind strikes, one or more of them.
type TargetType string

// The target types.
const (
	TargetDirection TargetType = "direction" // one direction of a link, or both, named by the switch port at its end
	TargetLink      TargetType = "link"      // a link as a whole, named by a switch port at one end
	TargetPort      TargetType = "port"      // a switch port: its queues, what comes in there
	TargetSwitch    TargetType = "switch"    // a whole switch
	TargetNIC       TargetType = "nic"       // a host's port
	TargetHost      TargetType = "host"      // a whole host
	TargetFabric    TargetType = "fabric"    // everything; nothing is selected
)

// Def is a kind of fault: the one definition that validation and documentation come from.
type Def struct {
	Kind   Kind
	Group  Group
	Target TargetType
	Keys   []Use
	// Doc is a sentence: what happens while the fault is in force.
	Doc string
	// Source is where the field has published it, or the incident it is from (docs/faults.md says what the marks mean); may be empty.
	Source string
	// Hits is what a hit is; empty: a packet that the fault did something to.
	Hits string
	// Example is a whole fault in YAML, on a spine-leaf of two each with two hosts a leaf; Variants are others, of what not every backend
	// may have of the kind.
	Example  string
	Variants []string

	check func(*validator) // what the table can't say
}

// Use is a key as a kind uses it.
type Use struct {
	Key  string // as in YAML; Keys has its unit
	Need Need
	Doc  string // in place of the key's own
}

// Need says whether a kind must have a key.
type Need uint8

// The needs.
const (
	Optional Need = iota
	Required
	OneOf // exactly one of the kind's keys with this need
	AnyOf // at least one of the kind's keys with this need
)

// Kinds lists the fault kinds, group by group.
func Kinds() []Kind {
	all := make([]Kind, len(defs))
	for i := range defs {
		all[i] = defs[i].Kind
	}
	return all
}

// Defs are the definitions of all kinds, in the order of Kinds. They are not to be changed.
func Defs() []Def { return defs }

// DefOf is the definition of a kind; nil: there is no such kind.
func DefOf(k Kind) *Def { return byKind[k] }

// Use is how the kind uses a key; false: it doesn't.
func (d *Def) Use(key string) (Use, bool) {
	i := slices.IndexFunc(d.Keys, func(u Use) bool { return u.Key == key })
	if i < 0 {
		return Use{}, false
	}
	return d.Keys[i], true
}

// keyNames are the keys with one of some needs; without any, all.
func (d *Def) keyNames(needs ...Need) (names []string) {
	for _, u := range d.Keys {
		if len(needs) == 0 || slices.Contains(needs, u.Need) {
			names = append(names, u.Key)
		}
	}
	return names
}

var defs = slices.Concat(packetKinds, linkKinds, switchKinds, nicKinds, hostKinds, trafficKinds)

var byKind = func() map[Kind]*Def {
	m := map[Kind]*Def{}
	for i := range defs {
		m[defs[i].Kind] = &defs[i]
	}
	return m
}()

func kindNames() []string {
	names := make([]string, len(defs))
	for i := range defs {
		names[i] = string(defs[i].Kind)
	}
	return names
}

// unknown says that there is no such kind.
func (k Kind) unknown() error {
	return strict.At("kind", "%q is no kind of fault%s", string(k), strict.DidYouMean(string(k), kindNames()))
}

func req(keys ...string) []Use   { return uses(Required, keys) }
func opt(keys ...string) []Use   { return uses(Optional, keys) }
func oneOf(keys ...string) []Use { return uses(OneOf, keys) }
func anyOf(keys ...string) []Use { return uses(AnyOf, keys) }

func uses(n Need, keys []string) (out []Use) {
	for _, k := range keys {
		out = append(out, Use{Key: k, Need: n})
	}
	return out
}

func keys(parts ...[]Use) []Use { return slices.Concat(parts...) }

// say gives a key that is used a description of its own.
func say(u []Use, doc string) []Use {
	for i := range u {
		u[i].Doc = doc
	}
	return u
}
