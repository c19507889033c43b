package topo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/topo/strict"
)

// maxLinks bounds what a shape may make.
const maxLinks = 1 << 20

// Build makes the topology that the section describes, valid as Validate says. Its errors are
// strict.PathErrors, with paths relative to the section, as far as they belong to a key.
func (s *Spec) Build() (*Topology, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	name, sh := s.shape()
	b := newBuilder(s, name)
	var err error
	if sh != nil {
		sh.build(b)
	} else {
		err = b.explicit()
	}
	if err != nil {
		return nil, err
	}
	b.finish()
	if err := b.override(); err != nil {
		return nil, err
	}
	if err := b.t.Validate(); err != nil {
		return nil, err
	}
	return &b.t, nil
}

type namedShape struct {
	key   string
	shape shape
}

// given are the shapes that the section has. A nil pointer in an interface isn't nil, so each
// is asked by itself.
func (s *Spec) given() []namedShape {
	var out []namedShape
	if s.SpineLeaf != nil {
		out = append(out, namedShape{"spine-leaf", s.SpineLeaf})
	}
	if s.RailOptimised != nil {
		out = append(out, namedShape{"rail-optimised", s.RailOptimised})
	}
	if s.FatTree != nil {
		out = append(out, namedShape{"fat-tree", s.FatTree})
	}
	if s.Star != nil {
		out = append(out, namedShape{"star", s.Star})
	}
	if s.Dumbbell != nil {
		out = append(out, namedShape{"dumbbell", s.Dumbbell})
	}
	if s.ParkingLot != nil {
		out = append(out, namedShape{"parking-lot", s.ParkingLot})
	}
	if s.Ring != nil {
		out = append(out, namedShape{"ring", s.Ring})
	}
	return out
}

func (s *Spec) shape() (string, shape) {
	for _, g := range s.given() {
		return g.key, g.shape
	}
	return "explicit", nil
}

func (s *Spec) check() error {
	given := s.given()
	explicit := len(s.Nodes) > 0 || len(s.Links) > 0
	switch {
	case len(given) > 1:
		return strict.At(given[1].key, "two shapes, %s and %s: a topology has one", given[0].key, given[1].key)
	case len(given) == 1 && explicit:
		key := "nodes"
		if len(s.Nodes) == 0 {
			key = "links"
		}
		return strict.At(key, "%s beside the shape %s: give a shape, or nodes and links (override changes what a shape made)", key, given[0].key)
	case len(given) == 0 && !explicit:
		return errors.New("no shape: give one of spine-leaf, rail-optimised, fat-tree, star, dumbbell, parking-lot, ring, or nodes and links")
	}
	var errs []error
	if s.Name != "" {
		if err := CheckName(s.Name); err != nil {
			errs = append(errs, strict.At("name", "name %q: %w", s.Name, err))
		}
	}
	for _, set := range []struct {
		path string
		s    LinkSettings
	}{{"", s.LinkSettings}, {"tiers.host", s.Tiers.Host}, {"tiers.leaf", s.Tiers.Leaf}, {"tiers.spine", s.Tiers.Spine}} {
		errs = append(errs, set.s.check(set.path)...)
	}
	errs = append(errs, s.checkNodes(given)...)
	for _, g := range given {
		if bad := g.shape.check(); len(bad) > 0 {
			errs = append(errs, strict.Under(g.key, errors.Join(bad...)))
			continue
		}
		if nodes, links := g.shape.size(); nodes > MaxNodes || links*float64(max(1, s.Hosts.NICs)) > maxLinks {
			errs = append(errs, strict.At(g.key, "%.0f nodes and %.0f links: at most %d and %d", nodes, links, MaxNodes, maxLinks))
		}
	}
	return errors.Join(errs...)
}

// checkNodes looks at the settings of hosts and switches, and at what shapes don't go with.
func (s *Spec) checkNodes(given []namedShape) []error {
	var errs []error
	bad := func(path, format string, args ...any) { errs = append(errs, strict.At(path, format, args...)) }
	if err := s.Hosts.Kind.check(Host); err != nil {
		bad("hosts.kind", "%w", err)
	}
	if err := s.Switches.Kind.check(Switch); err != nil {
		bad("switches.kind", "%w", err)
	}
	if n := s.Hosts.NICs; n < 0 || n > 64 {
		bad("hosts.nics", "hosts.nics: %d is not from 1 to 64", n)
	}
	if g := s.Hosts.GPUs; g != nil && (*g < 0 || *g > 1024) {
		bad("hosts.gpus", "hosts.gpus: %d is not from 0 to 1024", *g)
	}
	if s.Hosts.NICs != 0 {
		if s.RailOptimised != nil {
			bad("hosts.nics", "hosts.nics: rail-optimised hosts have a NIC a rail; set rails")
		}
		if len(given) == 0 {
			bad("hosts.nics", "hosts.nics: explicit hosts have a NIC a link")
		}
	}
	if s.Tiers.Leaf.Rate != 0 {
		switch {
		case s.SpineLeaf != nil && s.SpineLeaf.Oversubscription != 0:
			bad("spine-leaf.oversubscription", "oversubscription and tiers.leaf.rate both set the uplinks' rate: give one")
		case s.RailOptimised != nil && s.RailOptimised.Oversubscription != 0:
			bad("rail-optimised.oversubscription", "oversubscription and tiers.leaf.rate both set the uplinks' rate: give one")
		case s.Dumbbell != nil && s.Dumbbell.Bottleneck != 0:
			bad("dumbbell.bottleneck", "bottleneck and tiers.leaf.rate both set the link's rate: give one")
		}
	}
	return errs
}

func (s LinkSettings) check(path string) []error {
	var errs []error
	probe := Link{A: PortRef{Node: "a"}, B: PortRef{Node: "b"}, Rate: 1, MTU: MinMTU}
	if s.MTU != 0 {
		l := probe
		l.MTU = s.MTU
		if err := l.validate(); err != nil {
			errs = append(errs, strict.At(strict.Join(path, "mtu"), "mtu: %w", err))
		}
	}
	if s.Delay != nil {
		l := probe
		l.Delay = *s.Delay
		if err := l.validate(); err != nil {
			errs = append(errs, strict.At(strict.Join(path, "delay"), "delay: %w", err))
		}
	}
	return errs
}

func (s LinkSettings) empty() bool { return s.Rate == 0 && s.Delay == nil && s.MTU == 0 }

// explicit makes nodes and links that are given by name.
func (b *builder) explicit() error {
	var errs []error
	bad := func(path, format string, args ...any) { errs = append(errs, strict.At(path, format, args...)) }
	tiers := map[string]bool{}
	for i, n := range b.spec.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		name := n.Host + n.Switch
		if (n.Host == "") == (n.Switch == "") {
			bad(path, "a node is either {host: NAME} or {switch: NAME}")
			continue
		}
		if err := CheckName(name); err != nil {
			bad(path, "node %q: %w", name, err)
			continue
		}
		if _, twice := b.at[name]; twice {
			bad(path, "two nodes are called %q", name)
			continue
		}
		if n.Host != "" {
			b.host(name)
			if n.Tier != 0 || n.HashSeed != nil {
				bad(path, "host %q: tier and hash_seed are for switches", name)
			}
		} else {
			b.sw(name, n.Tier)
			tiers[name] = n.Tier != 0
			if n.GPUs != nil {
				bad(path+".gpus", "switch %q: gpus are for hosts", name)
			}
		}
		node := &b.t.Nodes[b.at[name]]
		if n.Kind != "" {
			if err := n.Kind.check(node.Role); err != nil {
				bad(path+".kind", "node %q: %w", name, err)
			}
			node.Kind = n.Kind
		}
		if n.GPUs != nil {
			node.GPUs = max(0, *n.GPUs)
		}
		if n.HashSeed != nil {
			node.HashSeed = *n.HashSeed
		}
	}
	errs = append(errs, b.explicitLinks()...)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.tiers(tiers)
	for i, l := range b.spec.Links {
		b.settle(&b.t.Links[i])
		l.apply(&b.t.Links[i])
	}
	return nil
}

// explicitLinks makes the links. Ends that name a port come first, so that those which take
// the next free one find it free.
func (b *builder) explicitLinks() []error {
	var errs []error
	ends := make([][2]PortRef, len(b.spec.Links))
	used := map[PortRef]bool{}
	for i, l := range b.spec.Links {
		path := fmt.Sprintf("links[%d]", i)
		errs = append(errs, l.check(path)...)
		two, err := parseEnds(l.Ends)
		if err != nil {
			errs = append(errs, strict.At(path, "%w", err))
			continue
		}
		for _, e := range two {
			if _, ok := b.at[e.Node]; !ok {
				errs = append(errs, strict.At(path, "link %q: no node %q%s", l.Ends, e.Node, strict.DidYouMean(e.Node, b.t.NodeNames())))
				continue
			}
			if e.Port == "" {
				continue
			}
			if err := CheckName(e.Port); err != nil {
				errs = append(errs, strict.At(path, "link %q: port %q: %w", l.Ends, e.Port, err))
			}
			if used[e] {
				errs = append(errs, strict.At(path, "link %q: port %s has a link already", l.Ends, e))
			}
			used[e] = true
		}
		ends[i] = two
	}
	if len(errs) > 0 {
		return errs
	}
	for i := range ends {
		for j := range ends[i] {
			e := &ends[i][j]
			for n := 0; e.Port == ""; n++ {
				if free := (PortRef{e.Node, fmt.Sprintf("eth%d", n)}); !used[free] {
					e.Port = free.Port
					used[free] = true
				}
			}
			node := &b.t.Nodes[b.at[e.Node]]
			node.Ports = append(node.Ports, Port{Name: e.Port})
		}
		b.t.Links = append(b.t.Links, Link{A: ends[i][0], B: ends[i][1]})
	}
	for i := range b.t.Nodes {
		n := &b.t.Nodes[i]
		n.sortPorts()
		for j := range n.Ports {
			if n.Role == Host {
				n.Ports[j].Rail = j
			}
		}
	}
	return nil
}

// parseEnds reads "a:eth0 -- b:eth1", where either port may be left out.
func parseEnds(s string) (ends [2]PortRef, err error) {
	a, z, ok := strings.Cut(s, "--")
	if !ok {
		return ends, fmt.Errorf("%q is not a link (write \"h1:eth0 -- leaf1:eth0\" or \"h1 -- leaf1\")", s)
	}
	for i, e := range []string{a, z} {
		e = strings.TrimSpace(e)
		if strings.Contains(e, ":") {
			ends[i], err = ParsePortRef(e)
		} else if ends[i].Node = e; e == "" {
			err = fmt.Errorf("%q is not a link: an end is missing", s)
		}
		if err != nil {
			return ends, err
		}
	}
	return ends, nil
}

// tiers gives switches without a tier one more than the least of their neighbours', from
// hosts up; a switch that no host leads to is tier 1.
func (b *builder) tiers(fixed map[string]bool) {
	next := map[string][]string{}
	for _, l := range b.t.Links {
		next[l.A.Node] = append(next[l.A.Node], l.B.Node)
		next[l.B.Node] = append(next[l.B.Node], l.A.Node)
	}
	var queue []string
	depth := map[string]Tier{}
	for _, n := range b.t.Nodes {
		if n.Role == Host {
			queue = append(queue, n.Name)
			depth[n.Name] = 0
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, o := range next[queue[0]] {
			if _, seen := depth[o]; !seen {
				depth[o] = depth[queue[0]] + 1
				queue = append(queue, o)
			}
		}
	}
	for i := range b.t.Nodes {
		if n := &b.t.Nodes[i]; n.Role == Switch && !fixed[n.Name] {
			n.Tier = max(1, depth[n.Name])
		}
	}
}

// override applies the overrides in order.
func (b *builder) override() error {
	var errs []error
	for i, o := range b.spec.Override {
		errs = append(errs, strict.Under(fmt.Sprintf("override[%d]", i), o.apply(&b.t)))
	}
	return errors.Join(slices.DeleteFunc(errs, func(e error) bool { return e == nil })...)
}
