package testbed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rocebed/rocebed/topo"
)

// Describe says in a line what a scenario is.
func Describe(s *Scenario) string {
	t := s.Topology
	return fmt.Sprintf("%s: %s with %s, %s and %s; %s, %s; backend %s, dilation %s, seed %d",
		s.Path, s.Name, many(len(t.Hosts()), "host"), many(len(t.Switches()), "switch"), many(len(t.Links), "link"),
		traffics(s), many(len(s.Expect), "expectation"), s.Backend, s.Dilation, s.Seed)
}

// maxShown is how many switches Layout draws, and how many names on each.
const maxShown = 16

// Layout shows what a topology is, a line for each switch with what hangs on it, highest tier
// first, and its first link's rate, delay and MTU.
func Layout(p *topo.Plan) []string {
	t := p.Topology
	switches := t.Switches()
	slices.SortStableFunc(switches, func(a, b *topo.Node) int { return int(b.Tier) - int(a.Tier) })
	var lines []string
	for i, sw := range switches {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("… and %d more switches (rocebed graph draws them)", len(switches)-i))
			break
		}
		var below []string
		for _, port := range p.Ports(sw.Name) {
			if peer := p.Node(port.Peer.Node); peer.Tier < sw.Tier || peer.Tier == sw.Tier && peer.Role == topo.Switch {
				below = append(below, peer.Name)
			}
		}
		below = slices.Compact(below)
		if n := len(below); n > maxShown {
			below = append(below[:maxShown:maxShown], fmt.Sprintf("… and %d more", n-maxShown))
		}
		link := ""
		if ports := p.Ports(sw.Name); len(ports) > 0 {
			l := t.Links[ports[0].Link]
			link = fmt.Sprintf("   (%v, %v, MTU %d)", l.Rate, l.Delay, l.MTU)
		}
		lines = append(lines, fmt.Sprintf("%s ── %s%s", sw.Name, strings.Join(below, " "), link))
	}
	return lines
}

// traffics says what runs on the fabric.
func traffics(s *Scenario) string {
	one := func(names []string, what string) string {
		if len(names) == 1 {
			return what + " " + names[0]
		}
		return many(len(names), what)
	}
	text := one(workloadNames(s.Workloads), "workload")
	if len(s.Faults) > 0 {
		text += " and " + one(faultNames(s.Faults), "fault")
	}
	return text
}

func many(n int, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "ch"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
