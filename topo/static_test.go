package topo

import (
	"strings"
	"testing"
)

func nodesOf(t *testing.T, p *Plan, src, dst string) string {
	t.Helper()
	paths, err := p.Paths(PortRef{src, "eth0"}, PortRef{dst, "eth0"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, path := range paths {
		all = append(all, path.String())
	}
	return strings.Join(all, ", ")
}

func TestAClockwiseRingDeadlocksFromThreeSwitchesOn(t *testing.T) {
	for n := 3; n < 7; n++ {
		p := planOf(t, Spec{Ring: &Ring{Switches: n, Clockwise: true}})
		if c := p.BufferCycle(); len(c) != n {
			t.Errorf("ring of %d: circle %v", n, c)
		}
	}
	p := planOf(t, Spec{Ring: &Ring{Switches: 4, Clockwise: true}})
	if got := nodesOf(t, p, "h1", "h4"); got != "h1 > leaf1 > leaf2 > leaf3 > leaf4 > h4" {
		t.Error(got)
	}
	if got := nodesOf(t, p, "h4", "h1"); got != "h4 > leaf4 > leaf1 > h1" {
		t.Error(got)
	}
}

const twoByTwo = `
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
  routes:
`

func TestARouteByHandMovesWhatItNamesAndNothingElse(t *testing.T) {
	top := mustLoad(t, twoByTwo+`
    - {at: leaf1, to: h3, via: [spine2]}
    - {at: leaf2, to: leaf1, via: [eth2]}
`)
	p, err := top.Plan(PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ src, dst, want string }{
		{"h1", "h3", "h1 > leaf1 > spine2 > leaf2 > h3"},
		{"h1", "h4", "h1 > leaf1 > spine1 > leaf2 > h4, h1 > leaf1 > spine2 > leaf2 > h4"},
		{"h3", "h1", "h3 > leaf2 > spine1 > leaf1 > h1"},
		{"h4", "h2", "h4 > leaf2 > spine1 > leaf1 > h2"},
	} {
		if got := nodesOf(t, p, c.src, c.dst); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	h3, _ := p.Port(PortRef{"h3", "eth0"})
	if hops := p.Lookup("leaf1", h3.Addr.Addr()); len(hops) != 1 || hops[0].Port != "eth3" {
		t.Errorf("leaf1 sends to h3 by %v", hops)
	}
	// Only the switch with the route has one more.
	if a, b := len(p.Routes("leaf1")), len(p.Routes("spine1")); a != 2 || b != 2 {
		t.Errorf("leaf1 has %d routes, spine1 %d", a, b)
	}
}

func TestWrongRoutesByHandAreReportedAtTheirPlace(t *testing.T) {
	for line, want := range map[string]string{
		"- {at: leaf9, to: h3, via: [spine1]}":       `s.yaml:4:8: no node "leaf9" (did you mean "leaf1"?)`,
		"- {at: leaf1, to: h33, via: [spine1]}":      `s.yaml:4:7: route at leaf1 to h33: no node "h33" (did you mean "h3"?)`,
		"- {at: leaf1, to: h3, via: [spine3]}":       `neither a port "spine3" nor a link`,
		"- {at: leaf1, to: h3, via: [eth0]}":         "port eth0 leads to a host",
		"- {at: leaf1, to: h3, via: [eth2, spine1]}": "port eth2 twice",
		"- {at: leaf1, to: h1, via: [spine1]}":       "h1 hangs on leaf1 itself",
		"- {at: leaf1, to: spine1, via: [spine2]}":   "spine1 has no hosts",
		"- {at: h1, to: h2, via: [leaf1]}":           "h1 is a host; only switches",
		"- {at: leaf1, to: h3, via: []}":             "no port",
		"- {at: spine1, to: h3, via: [leaf1]}":       "s.yaml:3:3: routes by hand make a loop",
	} {
		if _, err := load(strings.TrimPrefix(twoByTwo, "\n") + "    " + line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", line, err, want)
		}
	}
}

func TestRoutesThatOnlyTogetherAreLoopFreePass(t *testing.T) {
	// In a ring of four each of these alone would send packets back where they came from.
	top := mustLoad(t, `
topology:
  ring: {switches: 4}
  routes:
    - {at: leaf2, to: leaf1, via: [leaf3]}
    - {at: leaf3, to: leaf1, via: [leaf4]}
`)
	p, err := top.Plan(PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := nodesOf(t, p, "h2", "h1"); got != "h2 > leaf2 > leaf3 > leaf4 > leaf1 > h1" {
		t.Error(got)
	}
}
