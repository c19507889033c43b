package faults

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Strike is where a fault hits a link: a switch port and the direction seen from it.
type Strike struct {
	Port      topo.PortRef
	Direction Direction // Egress, Ingress or Both
}

// Senders are the ports whose sending a strike is about: for what arrives at a port, its peer.
func (s Strike) Senders(plan *topo.Plan) []topo.PortRef {
	p, _ := plan.Port(s.Port)
	switch s.Direction {
	case Egress:
		return []topo.PortRef{s.Port}
	case Ingress:
		return []topo.PortRef{p.Peer}
	}
	return []topo.PortRef{s.Port, p.Peer}
}

// Resolve is Aim for faults on links, by a topology alone: of Pin's faults that is enough. On a link that is struck as a whole
// the direction is Both. Each direction of a link is struck once however many selectors name it, so that "leaf*:*" and
// "spine*:*" together don't double the fault.
func Resolve(s *Spec, t *topo.Topology) ([]Strike, error) {
	if s.Random > 0 {
		return nil, strict.At("random", "the fault is not bound to its targets yet (Pin)")
	}
	as := *s
	if d := DefOf(s.Kind); d == nil || d.Target != TargetDirection {
		if d != nil && d.Target != TargetLink {
			return nil, strict.At("kind", "a %s strikes no link", s.Kind)
		}
		as.Kind = Loss // and the directions are the link's
	}
	targets, err := Aim(&as, Scope{Topology: t})
	var out []Strike
	for _, t := range targets {
		out = append(out, Strike{t.Port, t.Direction})
	}
	return out, err
}

// travel is one direction of a link.
type travel struct {
	link int
	back bool // from B to A
}

// place is a port that a selector names, and whether the selector sees the link from there one way alone.
type place struct {
	port topo.PortRef
	only bool // a path: what leaves the port, and nothing else
}

type resolver struct {
	def   *Def
	dir   Direction
	scope Scope
	t     *topo.Topology
	links map[topo.PortRef]int
	nodes map[string]*topo.Node
	hit   map[travel]bool
	at    map[Target]int // place in out, by target without a direction
	out   []Target
}

func newResolver(d *Def, s *Spec, scope Scope) *resolver {
	t := scope.Topology
	r := &resolver{def: d, dir: s.Direction, scope: scope, t: t,
		links: map[topo.PortRef]int{}, nodes: map[string]*topo.Node{}, hit: map[travel]bool{}, at: map[Target]int{}}
	if s.OneWay {
		r.dir = Egress
	}
	if r.dir == "" {
		r.dir = Both
	}
	for i, l := range t.Links {
		r.links[l.A], r.links[l.B] = i, i
	}
	for i := range t.Nodes {
		r.nodes[t.Nodes[i].Name] = &t.Nodes[i]
	}
	return r
}

// add takes what a selector selects.
func (r *resolver) add(sel string) error {
	if err := checkSelector(sel); err != nil {
		return err
	}
	var all []place
	parts := terms(sel)
	for i, term := range parts {
		some, err := r.places(strings.TrimSpace(term))
		if err != nil {
			return err
		}
		if i == 0 {
			all = some
			continue
		}
		all = slices.DeleteFunc(all, func(p place) bool {
			return !slices.ContainsFunc(some, func(q place) bool { return q.port == p.port })
		})
	}
	if len(all) == 0 {
		return fmt.Errorf("%q selects nothing: no port is all of that", sel)
	}
	if _, port, named := strings.Cut(parts[0], ":"); named && port != "*" && len(parts) == 1 && !strings.Contains(sel, "=") &&
		(r.def.Target == TargetSwitch || r.def.Target == TargetHost) {
		return fmt.Errorf("%q is a port, and a %s strikes a whole %s: leave out the port", sel, r.def.Kind, r.def.Target)
	}
	found := false
	for _, p := range all {
		found = r.take(p) || found
	}
	if !found {
		return r.nothing(sel)
	}
	return nil
}

// take makes a target of a place, and reports whether there is one of the kind's type.
func (r *resolver) take(p place) bool {
	n := r.nodes[p.port.Node]
	switch r.def.Target {
	case TargetDirection:
		return r.strike(p)
	case TargetLink:
		q, i, ok := r.switchEnd(p.port)
		if ok && !r.hit[travel{link: i}] {
			r.hit[travel{link: i}] = true
			r.emit(Target{Type: TargetLink, Port: q, Link: i})
		}
		return ok
	case TargetPort:
		q, _, ok := r.switchEnd(p.port)
		if ok {
			r.emit(Target{Type: TargetPort, Port: q, Link: -1})
		}
		return ok
	case TargetNIC:
		if n.Role != topo.Host {
			return false
		}
		r.emit(Target{Type: TargetNIC, Port: p.port, Link: -1})
	case TargetSwitch, TargetHost:
		if (r.def.Target == TargetHost) != (n.Role == topo.Host) {
			return false
		}
		r.emit(Target{Type: r.def.Target, Port: topo.PortRef{Node: n.Name}, Link: -1})
	}
	return true
}

// switchEnd is the switch's end of a port's link: of one between switches, the port itself.
func (r *resolver) switchEnd(p topo.PortRef) (topo.PortRef, int, bool) {
	i, ok := r.links[p]
	if !ok {
		return p, 0, false
	}
	if r.nodes[p.Node].Role == topo.Switch {
		return p, i, true
	}
	far := r.t.Links[i].A
	if p == far {
		far = r.t.Links[i].B
	}
	return far, i, r.nodes[far.Node].Role == topo.Switch
}

// strike adds what the direction says of the link at a port, and reports whether the link has a switch.
func (r *resolver) strike(p place) bool {
	q, i, ok := r.switchEnd(p.port)
	if !ok {
		return false
	}
	dir := r.dir
	if p.only {
		if dir == Ingress { // along a path nothing comes back
			return false
		}
		dir = Egress
	}
	if q != p.port {
		dir = flip(dir)
	}
	l := &r.t.Links[i]
	leaving, arriving := travel{i, q == l.B}, travel{i, q == l.A}
	if dir != Ingress && !r.hit[leaving] {
		r.hit[leaving] = true
		r.emitDirection(q, i, Egress)
	}
	if dir != Egress && !r.hit[arriving] {
		r.hit[arriving] = true
		r.emitDirection(q, i, Ingress)
	}
	return true
}

// emitDirection adds a direction of a link, or widens what the port has.
func (r *resolver) emitDirection(p topo.PortRef, link int, dir Direction) {
	key := Target{Type: TargetDirection, Port: p, Link: link}
	if i, ok := r.at[key]; ok {
		r.out[i].Direction = Both
		return
	}
	r.at[key] = len(r.out)
	key.Direction = dir
	r.out = append(r.out, key)
}

func (r *resolver) emit(t Target) {
	if _, ok := r.at[t]; !ok {
		r.at[t] = len(r.out)
		r.out = append(r.out, t)
	}
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

// places are the ports that a term of a selector names.
func (r *resolver) places(term string) (out []place, err error) {
	if key, value, ok := attribute(term); ok {
		return r.attribute(term, key, value)
	}
	add := func(p topo.PortRef) { out = append(out, place{port: p}) }
	if node, port, ok := strings.Cut(term, ":"); ok {
		r.eachPort(node, port, add)
		if len(out) == 0 {
			return nil, fmt.Errorf("%q selects no linked port%s", term, r.suggestPort(node, term))
		}
		return out, nil
	}
	if r.eachPort(term, "*", add); len(out) > 0 {
		return out, nil
	}
	for i := range r.t.Links {
		l := &r.t.Links[i]
		switch {
		case matchLink(term, l.A.Node, l.B.Node):
			add(l.A)
		case matchLink(term, l.B.Node, l.A.Node):
			add(l.B)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q selects no port and no link%s", term, strict.DidYouMean(term, r.names(term)))
	}
	return out, nil
}

// eachPort visits the linked ports that two globs match.
func (r *resolver) eachPort(node, port string, do func(topo.PortRef)) {
	for i := range r.t.Nodes {
		n := &r.t.Nodes[i]
		if !match(node, n.Name) {
			continue
		}
		for _, p := range n.Ports {
			ref := topo.PortRef{Node: n.Name, Port: p.Name}
			if _, linked := r.links[ref]; linked && match(port, p.Name) {
				do(ref)
			}
		}
	}
}

// attribute are the ports that a term such as tier=leaf selects.
func (r *resolver) attribute(term, key, value string) ([]place, error) {
	switch key {
	case "path":
		from, to, _ := strings.Cut(value, ">")
		return r.paths(term, strings.TrimSpace(from), strings.TrimSpace(to))
	case "flow":
		return r.flows(term, value)
	}
	var out []place
	seen := map[string]bool{}
	for i := range r.t.Nodes {
		n := &r.t.Nodes[i]
		for _, p := range n.Ports {
			ref := topo.PortRef{Node: n.Name, Port: p.Name}
			if link, ok := r.links[ref]; ok {
				has := r.attributeOf(key, n, ref, link)
				if seen[has] = true; has == value || key == "tier" && strconv.Itoa(int(n.Tier)) == value {
					out = append(out, place{port: ref})
				}
			}
		}
	}
	if len(out) == 0 {
		delete(seen, "")
		var all []string
		for s := range seen {
			all = append(all, s)
		}
		slices.Sort(all)
		return nil, fmt.Errorf("%q selects nothing%s", term, strict.DidYouMean(value, all))
	}
	return out, nil
}

// tierNames are the tiers' names, by number.
var tierNames = []string{"host", "leaf", "spine", "core"}

func (r *resolver) attributeOf(key string, n *topo.Node, p topo.PortRef, link int) string {
	switch key {
	case "tier":
		if int(n.Tier) < len(tierNames) {
			return tierNames[n.Tier]
		}
		return strconv.Itoa(int(n.Tier))
	case "kind":
		return string(n.Kind)
	}
	l := &r.t.Links[link] // rail: the NIC's, seen from both ends
	for _, end := range []topo.PortRef{p, l.A, l.B} {
		if host := r.nodes[end.Node]; host.Role == topo.Host {
			i := slices.IndexFunc(host.Ports, func(q topo.Port) bool { return q.Name == end.Port })
			return strconv.Itoa(host.Ports[i].Rail)
		}
	}
	return ""
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
