package topo

import (
	"errors"
	"fmt"
	"slices"

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
	if err := b.routes(); err != nil {
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

// override applies the overrides in order.
func (b *builder) override() error {
	var errs []error
	for i, o := range b.spec.Override {
		errs = append(errs, strict.Under(fmt.Sprintf("override[%d]", i), o.apply(&b.t)))
	}
	return errors.Join(slices.DeleteFunc(errs, func(e error) bool { return e == nil })...)
}

// routes turns the section's routes into the topology's, and tries them.
func (b *builder) routes() error {
	var errs []error
	for i, r := range b.spec.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		at := b.t.Node(r.At)
		if at == nil {
			errs = append(errs, strict.At(path+".at", "no node %q%s", r.At, strict.DidYouMean(r.At, b.t.NodeNames())))
			continue
		}
		static := StaticRoute{At: r.At, To: r.To}
		for j, via := range r.Via {
			ports := at.portsTo(via, &b.t)
			if ports == nil {
				errs = append(errs, strict.At(fmt.Sprintf("%s.via[%d]", path, j), "%s has neither a port %q nor a link to a node of that name", r.At, via))
			}
			static.Ports = append(static.Ports, ports...)
		}
		b.t.Static = append(b.t.Static, static)
	}
	if len(errs) > 0 || len(b.spec.Routes) == 0 {
		return errors.Join(errs...)
	}
	_, err := b.t.Plan(PlanOptions{})
	if _, loop := errors.AsType[*LoopError](err); err == nil || loop {
		return strict.Under("routes", err)
	}
	// Which one it is: the first that is wrong by itself, with those before it.
	made := len(b.t.Static) - len(b.spec.Routes)
	for i := range b.spec.Routes {
		part := b.t
		part.Static = part.Static[:made+i+1]
		_, err := part.Plan(PlanOptions{})
		if _, loop := errors.AsType[*LoopError](err); err != nil && !loop {
			return strict.Under(fmt.Sprintf("routes[%d]", i), err)
		}
	}
	return strict.Under("routes", err)
}

// portsTo are the ports that a word means: one of that name, or all that lead to a neighbour.
func (n *Node) portsTo(via string, t *Topology) []string {
	for _, p := range n.Ports {
		if p.Name == via {
			return []string{via}
		}
	}
	var out []string
	for _, i := range t.LinksBetween(n.Name, via) {
		end := t.Links[i].A
		if end.Node != n.Name {
			end = t.Links[i].B
		}
		out = append(out, end.Port)
	}
	return out
}
