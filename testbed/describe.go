package testbed

import (
	"fmt"
	"strings"
)

// Describe says in a line what a scenario is.
func Describe(s *Scenario) string {
	t := s.Topology
	return fmt.Sprintf("%s: %s with %s, %s and %s; %s, %s; backend %s, dilation %s, seed %d",
		s.Path, s.Name, many(len(t.Hosts()), "host"), many(len(t.Switches()), "switch"), many(len(t.Links), "link"),
		traffics(s), many(len(s.Expect), "expectation"), s.Backend, s.Dilation, s.Seed)
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
