package topo

import (
	"errors"
	"fmt"
	"path"

	"github.com/rocebed/rocebed/topo/strict"
)

func (o *Override) apply(t *Topology) error {
	switch {
	case (o.Node == "") == (o.Link == ""):
		return errors.New("an override is of either a node or a link")
	case o.Node != "":
		return o.applyNodes(t)
	}
	return o.applyLinks(t)
}

func (o *Override) applyNodes(t *Topology) error {
	if !o.empty() {
		return errors.New("rate, delay and mtu are of links")
	}
	if o.Kind == "" && o.GPUs == nil && o.HashSeed == nil {
		return errors.New("the override changes nothing: give kind, gpus or hash_seed")
	}
	found := false
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !matches(o.Node, n.Name) {
			continue
		}
		found = true
		if err := o.Kind.check(n.Role); err != nil {
			return strict.At("kind", "node %q: %w", n.Name, err)
		}
		if o.Kind != "" {
			n.Kind = o.Kind
		}
		if o.GPUs != nil {
			if n.Role != Host || *o.GPUs < 0 || *o.GPUs > 1024 {
				return strict.At("gpus", "node %q: only hosts have GPUs, 0 to 1024 of them", n.Name)
			}
			n.GPUs = *o.GPUs
		}
		if o.HashSeed != nil {
			if n.Role != Switch {
				return strict.At("hash_seed", "node %q: only switches have a hash seed", n.Name)
			}
			n.HashSeed = *o.HashSeed
		}
	}
	if !found {
		return strict.At("node", "no node %q%s", o.Node, strict.DidYouMean(o.Node, t.NodeNames()))
	}
	return nil
}

func (o *Override) applyLinks(t *Topology) error {
	if o.Kind != "" || o.GPUs != nil || o.HashSeed != nil {
		return errors.New("kind, gpus and hash_seed are of nodes")
	}
	if o.empty() {
		return errors.New("the override changes nothing: give rate, delay or mtu")
	}
	if errs := o.check(""); len(errs) > 0 {
		return errors.Join(errs...)
	}
	links, err := t.MatchLinks(o.Link)
	if err != nil {
		return strict.At("link", "%w", err)
	}
	for _, i := range links {
		o.LinkSettings.apply(&t.Links[i])
	}
	return nil
}

// MatchLinks are the indices of the links that a selector means: "leaf1 -- spine2" all
// between the two, "leaf1:eth4 -- spine2" the one on a port; names and ports may be globs
// ("leaf*"). None at all is an error.
func (t *Topology) MatchLinks(selector string) ([]int, error) {
	ends, err := parseEnds(selector)
	if err != nil {
		return nil, err
	}
	for _, e := range ends {
		if !t.hasMatch(e.Node) {
			return nil, fmt.Errorf("link %q: no node %q%s", selector, e.Node, strict.DidYouMean(e.Node, t.NodeNames()))
		}
	}
	var out []int
	for i := range t.Links {
		l := &t.Links[i]
		if endMatches(ends[0], l.A) && endMatches(ends[1], l.B) || endMatches(ends[0], l.B) && endMatches(ends[1], l.A) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no link %q: its nodes are there, but nothing joins them so", selector)
	}
	return out, nil
}

func (t *Topology) hasMatch(pattern string) bool {
	for i := range t.Nodes {
		if matches(pattern, t.Nodes[i].Name) {
			return true
		}
	}
	return false
}

func endMatches(pattern, end PortRef) bool {
	return matches(pattern.Node, end.Node) && (pattern.Port == "" || matches(pattern.Port, end.Port))
}

// matches is shell globbing; a pattern that is no pattern matches nothing.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
