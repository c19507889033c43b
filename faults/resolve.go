package faults

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Strike is where a fault hits: a switch port and the direction seen from it.
type Strike struct {
	Port      topo.PortRef
	Direction Direction // Egress, Ingress or Both
}

// Resolve turns a fault's selectors into switch ports. A selector is a port ("leaf1:eth0"), a
// glob over ports ("leaf*:*"), a node ("leaf1": all its ports) or a link ("leaf1-spine2", with
// globs too: all links between the two). A selector that names a host's port means the
// switch's end of its link. On a link, egress is from the first named node to the second.
//
// Each direction of a link is struck once however many selectors name it, so that "leaf*:*" and
// "spine*:*" together don't double the fault. Strikes come in the order of the selectors,
// then of the topology. A selector that selects nothing is an error of the key "at".
func Resolve(spec *Spec, t *topo.Topology) ([]Strike, error) {
	r := &resolver{
		t:     t,
		links: map[topo.PortRef]int{},
		roles: map[string]topo.Role{},
		hit:   map[travel]bool{},
		at:    map[topo.PortRef]int{},
	}
	for i, l := range t.Links {
		r.links[l.A], r.links[l.B] = i, i
	}
	for i := range t.Nodes {
		r.roles[t.Nodes[i].Name] = t.Nodes[i].Role
	}
	dir := spec.Direction
	if dir == "" {
		dir = Both
	}
	var errs []error
	for _, sel := range spec.At {
		if err := r.add(sel, dir); err != nil {
			errs = append(errs, strict.At("at", "%w", err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r.out, nil
}

// travel is one direction of a link.
type travel struct {
	link int
	back bool // from B to A
}

type resolver struct {
	t     *topo.Topology
	links map[topo.PortRef]int
	roles map[string]topo.Role
	hit   map[travel]bool
	at    map[topo.PortRef]int // place in out
	out   []Strike
}

func (r *resolver) add(sel string, dir Direction) error {
	if err := checkPattern(sel); err != nil {
		return err
	}
	found := false
	if node, port, ok := strings.Cut(sel, ":"); ok {
		r.eachPort(node, port, func(p topo.PortRef) { found = r.strike(p, dir) || found })
		if !found {
			return fmt.Errorf("%q selects no linked port%s", sel, r.suggestPort(node, sel))
		}
		return nil
	}
	r.eachPort(sel, "*", func(p topo.PortRef) { found = r.strike(p, dir) || found })
	if found {
		return nil
	}
	for i := range r.t.Links {
		l := &r.t.Links[i]
		switch {
		case matchLink(sel, l.A.Node, l.B.Node):
			found = r.strike(l.A, dir) || found
		case matchLink(sel, l.B.Node, l.A.Node):
			found = r.strike(l.B, dir) || found
		}
	}
	if !found {
		return fmt.Errorf("%q selects no port and no link%s", sel, strict.DidYouMean(sel, r.names(sel)))
	}
	return nil
}

func (r *resolver) eachPort(node, port string, do func(topo.PortRef)) {
	for i := range r.t.Nodes {
		n := &r.t.Nodes[i]
		if !match(node, n.Name) {
			continue
		}
		for _, p := range n.Ports {
			if match(port, p.Name) {
				do(topo.PortRef{Node: n.Name, Port: p.Name})
			}
		}
	}
}

// strike adds what dir says of the link at p, and reports whether the link has a switch.
func (r *resolver) strike(p topo.PortRef, dir Direction) bool {
	i, ok := r.links[p]
	if !ok {
		return false
	}
	l := &r.t.Links[i]
	if r.roles[p.Node] != topo.Switch { // the switch is at the far end
		far := l.A
		if p == l.A {
			far = l.B
		}
		if r.roles[far.Node] != topo.Switch {
			return false
		}
		p, dir = far, flip(dir)
	}
	leaving, arriving := travel{i, p == l.B}, travel{i, p == l.A}
	if dir != Ingress && !r.hit[leaving] {
		r.hit[leaving] = true
		r.emit(p, Egress)
	}
	if dir != Egress && !r.hit[arriving] {
		r.hit[arriving] = true
		r.emit(p, Ingress)
	}
	return true
}

// emit adds a strike, or widens the one that the port has.
func (r *resolver) emit(p topo.PortRef, dir Direction) {
	if i, ok := r.at[p]; ok {
		r.out[i].Direction = Both
		return
	}
	r.at[p] = len(r.out)
	r.out = append(r.out, Strike{p, dir})
}

func flip(d Direction) Direction {
	switch d {
	case Egress:
		return Ingress
	case Ingress:
		return Egress
	}
	return d
}

// suggestPort lists what a selector with a colon may have meant.
func (r *resolver) suggestPort(node, sel string) string {
	var nodes, ports []string
	for i := range r.t.Nodes {
		n := &r.t.Nodes[i]
		nodes = append(nodes, n.Name)
		if match(node, n.Name) {
			for _, p := range n.Ports {
				ports = append(ports, n.Name+":"+p.Name)
			}
		}
	}
	if len(ports) == 0 {
		return strict.DidYouMean(node, nodes)
	}
	return strict.DidYouMean(sel, ports)
}

// names are the nodes, or for something that looks like a link, the links.
func (r *resolver) names(sel string) []string {
	var names []string
	if strings.Contains(sel, "-") {
		for _, l := range r.t.Links {
			names = append(names, l.A.Node+"-"+l.B.Node)
			if r.roles[l.B.Node] == topo.Switch {
				names = append(names, l.B.Node+"-"+l.A.Node)
			}
		}
		return names
	}
	for i := range r.t.Nodes {
		names = append(names, r.t.Nodes[i].Name)
	}
	return names
}

// matchLink tries every hyphen as the one between the two nodes: names may hold hyphens too.
func matchLink(sel, from, to string) bool {
	for i := range len(sel) {
		if sel[i] == '-' && match(sel[:i], from) && match(sel[i+1:], to) {
			return true
		}
	}
	return false
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func checkPattern(sel string) error {
	if sel == "" {
		return errors.New("an empty selector selects nothing")
	}
	if _, err := path.Match(sel, ""); err != nil {
		return fmt.Errorf("%q is no selector: %w", sel, err)
	}
	return nil
}
