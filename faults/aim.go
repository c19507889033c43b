package faults

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Scope is what selectors are resolved in.
type Scope struct {
	Topology *topo.Topology
	Plan     *topo.Plan // for selectors by path and flow; may be nil
	Seed     uint64     // the run's, for random choices
	Flows    []Flow     // for selectors by flow
}

// Flow is a queue pair of a workload: data goes from Src to Dst.
type Flow struct {
	Workload string
	Index    int // in the workload, as in the record
	Src, Dst topo.PortRef
}

// Target is one thing that a fault strikes.
type Target struct {
	Type      TargetType
	Port      topo.PortRef // of a direction or a link: a switch port at its end; of a NIC: the host's port; else without a port
	Direction Direction    // of TargetDirection, as the port sees it
	Link      int          // of a direction or a link: its number in the topology; else -1
}

// String names the target as a selector does.
func (t Target) String() string {
	switch t.Type {
	case TargetFabric:
		return "fabric"
	case TargetSwitch, TargetHost:
		return t.Port.Node
	case TargetDirection:
		if t.Direction != Both {
			return t.Port.String() + " " + string(t.Direction)
		}
	}
	return t.Port.String()
}

// Aim turns a fault's selectors into targets of its kind's type, in the order of the selectors, then of the topology, each once.
// Of several targets Random takes some. A selector is
//
//	leaf1:eth0  leaf*:*       ports; a host's port of a kind that strikes links is the switch's end of its link, seen from the host
//	leaf1  leaf*              nodes: all their ports
//	leaf1-spine2              all links between the two, seen from the first
//	tier=leaf                 nodes of a tier: host, leaf, spine, core, or its number
//	kind=soft-switch          nodes of a kind, where the topology says
//	rail=0                    ports at a host's NIC of that rail, on both ends of the link
//	path=h1>h4                every link on every path from a NIC to another, in that direction
//	flow=w  flow=w#3          the same for a workload's flows, or one of them
//
// and several of them with " and " between, which select what all of them do. The errors are of the key "at", or "random".
func Aim(s *Spec, scope Scope) ([]Target, error) {
	d := DefOf(s.Kind)
	if d == nil {
		return nil, s.Kind.unknown()
	}
	if d.Target == TargetFabric {
		return []Target{{Type: TargetFabric, Link: -1}}, nil
	}
	r := newResolver(d, s, scope)
	var errs []error
	for _, sel := range s.At {
		if err := r.add(sel); err != nil {
			errs = append(errs, strict.At("at", "%w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if s.Random > 0 {
		if s.Random > len(r.out) {
			return nil, strict.At("random", "there are %d targets, too few to take %d of them", len(r.out), s.Random)
		}
		dice := &dice{seed: Seed(scope.Seed, "aim", s.Name)}
		var some []Target
		for _, i := range dice.choose(s.Random, len(r.out)) {
			some = append(some, r.out[i])
		}
		return some, nil
	}
	return r.out, nil
}

// Pin is the fault bound to its targets: what needs more than a topology to be resolved (random choices, paths, flows) is
// replaced by the names of what it selects, and shorthands by what they stand for. A fault without any of that stays as it is.
func Pin(s *Spec, scope Scope) (Spec, error) {
	targets, err := Aim(s, scope)
	if err != nil {
		return Spec{}, err
	}
	out := *s
	if s.Kind == LinkFlap && s.Duty > 0 {
		out.Down, out.Duty = s.DownTime(), 0
	}
	if s.Random == 0 && !slices.ContainsFunc(s.At, needsScope) {
		if out.OneWay {
			out.OneWay, out.Direction = false, Egress
		}
		return out, nil
	}
	at, way := []string{}, Both
	for _, t := range targets {
		if t.Type == TargetDirection && t.Direction != Both {
			way = Egress
		}
	}
	for _, t := range targets {
		if t.Type != TargetDirection || way == Both {
			at = append(at, t.String())
			continue
		}
		peer := scope.Topology.Links[t.Link].A
		if peer == t.Port {
			peer = scope.Topology.Links[t.Link].B
		}
		if t.Direction != Ingress {
			at = append(at, t.Port.String())
		}
		if t.Direction != Egress {
			at = append(at, peer.String())
		}
	}
	out.At, out.Random, out.OneWay, out.Direction = at, 0, false, ""
	if targets[0].Type == TargetDirection {
		out.Direction = way
	}
	return out, nil
}

// Spec makes a fault that strikes the target alone of one that says all the rest.
func (t Target) Spec(s Spec) Spec {
	s.At, s.Random, s.OneWay, s.Direction = nil, 0, false, ""
	if t.Type != TargetFabric {
		at := t
		at.Direction = Both
		s.At = []string{at.String()}
	}
	if t.Type == TargetDirection {
		s.Direction = t.Direction
	}
	return s
}

// aim judges what a spec says about where it strikes, without a topology.
func (v *validator) aim(d *Def) {
	s := v.spec
	switch {
	case d != nil && d.Target == TargetFabric:
		if len(s.At) > 0 {
			v.wrong("at", "a %s strikes the whole fabric", d.Kind)
		}
	default:
		v.selectors(s.At)
	}
	if s.Random < 0 {
		v.wrong("random", "must be at least 1")
	}
	switch s.Direction {
	case "", Egress, Ingress, Both:
	default:
		v.wrong("direction", "%q is no direction%s", s.Direction, strict.DidYouMean(string(s.Direction), []string{string(Egress), string(Ingress), string(Both)}))
		return
	}
	if s.OneWay && s.Direction != "" {
		v.wrong("one_way", "is a direction already: egress, from the first node of a link or along a path")
	}
	if oneWay := s.Direction == Egress || s.Direction == Ingress || s.OneWay; d == nil || !oneWay {
		return
	}
	key := "direction"
	if s.OneWay {
		key = "one_way"
	}
	switch d.Target {
	case TargetDirection:
	case TargetLink:
		v.wrong(key, "a link goes down in both directions (for one direction there is unidirectional)")
	default:
		v.wrong(key, "a %s strikes no direction of a link", d.Kind)
	}
}

func (v *validator) selectors(at []string) {
	if len(at) == 0 {
		v.wrong("at", "a fault needs it: where it strikes, such as ports (\"leaf1:eth0\", \"leaf*:*\"), links (\"leaf1-spine2\") or nodes")
	}
	for _, sel := range at {
		if err := checkSelector(sel); err != nil {
			v.wrong("at", "%w", err)
		}
	}
}

// terms are what a selector's parts select together.
func terms(sel string) []string { return strings.Split(sel, " and ") }

// attributes are the terms that are no names.
var attributes = []string{"tier", "kind", "rail", "path", "flow"}

// attribute takes a term apart; false: it is a name.
func attribute(term string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(term, "=")
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// needsScope says that a topology alone can't resolve a selector.
func needsScope(sel string) bool {
	return slices.ContainsFunc(terms(sel), func(term string) bool {
		key, _, ok := attribute(term)
		return ok && (key == "path" || key == "flow")
	})
}

// ByFlow says that the fault, or one of those that it makes, is aimed by workloads' flows.
func (s *Spec) ByFlow() bool {
	return slices.ContainsFunc(s.At, func(sel string) bool { return strings.Contains(sel, "flow=") }) ||
		slices.ContainsFunc(slices.Concat(s.Sequence, s.Parallel), func(m Spec) bool { return m.ByFlow() })
}

func checkSelector(sel string) error {
	for _, term := range terms(sel) {
		if strings.TrimSpace(term) == "" {
			return errors.New("an empty selector selects nothing")
		}
		if key, value, ok := attribute(term); ok {
			if !slices.Contains(attributes, key) {
				return fmt.Errorf("%q: nothing is selected by %q%s", sel, key, strict.DidYouMean(key, attributes))
			}
			if value == "" {
				return fmt.Errorf("%q: %s needs a value", sel, key)
			}
			if key == "path" && strings.Count(value, ">") != 1 {
				return fmt.Errorf("%q: write \"path=h1>h4\" or \"path=h1:eth0>h4:eth1\"", sel)
			}
			continue
		}
		if _, err := path.Match(term, ""); err != nil {
			return fmt.Errorf("%q is no selector: %w", sel, err)
		}
	}
	return nil
}
