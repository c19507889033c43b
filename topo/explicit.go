package topo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rocebed/rocebed/topo/strict"
)

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
			node.GPUs = *n.GPUs
			if *n.GPUs < 0 { // which means that the default is still to come
				bad(path+".gpus", "%d GPUs: a host has 0 to 1024", *n.GPUs)
			}
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
			if err := CheckPortName(e.Port); err != nil {
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
