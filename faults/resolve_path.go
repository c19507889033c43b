package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// maxPaths is how many paths between two NICs a selector follows.
const maxPaths = 10_000

// paths are the ports that packets from some NICs to others leave, on every path.
func (r *resolver) paths(term, from, to string) ([]place, error) {
	src, err := r.nics(term, from)
	if err != nil {
		return nil, err
	}
	dst, err := r.nics(term, to)
	if err != nil {
		return nil, err
	}
	var out []place
	seen := map[topo.PortRef]bool{}
	for _, a := range src {
		for _, b := range dst {
			if a.Node == b.Node {
				continue
			}
			if err := r.path(a, b, seen, &out); err != nil {
				return nil, fmt.Errorf("%q: %w", term, err)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q: no way leads from %s to %s", term, from, to)
	}
	return out, nil
}

// path adds the ports on the ways from one NIC to another.
func (r *resolver) path(a, b topo.PortRef, seen map[topo.PortRef]bool, out *[]place) error {
	if r.scope.Plan == nil {
		return fmt.Errorf("paths are known once the topology is planned")
	}
	n, err := r.scope.Plan.PathCount(a, b)
	if err == nil && n > maxPaths {
		err = fmt.Errorf("%d paths lead from %v to %v: more than %d", n, a, b, maxPaths)
	}
	if err != nil {
		return err
	}
	all, err := r.scope.Plan.Paths(a, b)
	if err != nil {
		return err
	}
	for _, p := range all {
		for _, h := range p {
			if !seen[h.Out] {
				seen[h.Out] = true
				*out = append(*out, place{port: h.Out, only: true})
			}
		}
	}
	return nil
}

// nics are hosts' ports by name or glob.
func (r *resolver) nics(term, sel string) (out []topo.PortRef, err error) {
	node, port, ok := strings.Cut(sel, ":")
	if !ok {
		port = "*"
	}
	r.eachPort(node, port, func(p topo.PortRef) {
		if r.nodes[p.Node].Role == topo.Host {
			out = append(out, p)
		}
	})
	if len(out) == 0 {
		return nil, fmt.Errorf("%q: %q is no host's NIC%s", term, sel, strict.DidYouMean(node, r.hosts()))
	}
	return out, nil
}

func (r *resolver) hosts() (names []string) {
	for _, h := range r.t.Hosts() {
		names = append(names, h.Name)
	}
	return names
}

// flows are the ports that a workload's flows leave, "w" or "w#3".
func (r *resolver) flows(term, value string) ([]place, error) {
	name, number, one := strings.Cut(value, "#")
	index := -1
	if one {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q: %q is no number of a flow", term, number)
		}
		index = n
	}
	var names []string
	var out []place
	there := 0
	seen := map[topo.PortRef]bool{}
	for _, f := range r.scope.Flows {
		if !slices.Contains(names, f.Workload) {
			names = append(names, f.Workload)
		}
		if !match(name, f.Workload) {
			continue
		}
		there++
		if index >= 0 && f.Index != index {
			continue
		}
		if err := r.path(f.Src, f.Dst, seen, &out); err != nil {
			return nil, fmt.Errorf("%q: %w", term, err)
		}
	}
	switch {
	case there == 0:
		return nil, fmt.Errorf("%q: there is no workload %q%s", term, name, strict.DidYouMean(name, names))
	case len(out) == 0:
		return nil, fmt.Errorf("%q: workload %s has %d flows, from 0 on", term, name, there)
	}
	return out, nil
}

// nothing says that a selector names nothing of the kind's type.
func (r *resolver) nothing(sel string) error {
	if r.def.Target == TargetDirection || r.def.Target == TargetLink {
		if r.dir == Ingress && needsScope(sel) {
			return fmt.Errorf("%q leads one way, and nothing is left of it with direction ingress", sel)
		}
		return fmt.Errorf("%q selects no link with a switch%s", sel, strict.DidYouMean(sel, r.names(sel)))
	}
	want := map[TargetType]topo.Role{TargetPort: topo.Switch, TargetSwitch: topo.Switch, TargetNIC: topo.Host, TargetHost: topo.Host}[r.def.Target]
	var names []string
	for i := range r.t.Nodes {
		if r.t.Nodes[i].Role == want {
			names = append(names, r.t.Nodes[i].Name)
		}
	}
	return fmt.Errorf("%q selects no %s, which is what a %s strikes%s", sel, r.def.Target, r.def.Kind, strict.DidYouMean(sel, names))
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
			if r.nodes[l.B.Node].Role == topo.Switch {
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
