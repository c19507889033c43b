package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// fabric is two leaves with two spines and two hosts each, with two NICs on two rails:
//
//	  spine1   spine2
//	    │  ╲   ╱  │
//	  leaf1     leaf2
//	 ╱╱  ╲╲    ╱╱  ╲╲
//	h1    h2  h3    h4
func fabric(t testing.TB, flows ...Flow) Scope {
	t.Helper()
	var spec topo.Spec
	text := "spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}\nhosts: {nics: 2}\n"
	if err := strict.Decode("topology.yaml", []byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return Scope{Topology: top, Plan: plan, Seed: 1, Flows: flows}
}

func aimed(t testing.TB, scope Scope, text string) string {
	t.Helper()
	s := decode(t, text)
	if err := s.Validate(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	all, err := Aim(&s, scope)
	if err != nil {
		return "error: " + err.Error()
	}
	var names []string
	for _, target := range all {
		names = append(names, target.String())
	}
	return strings.Join(names, ", ")
}

func TestAKindIsAimedAtTargetsOfItsType(t *testing.T) {
	scope := fabric(t, Flow{"w", 0, topo.PortRef{Node: "h1", Port: "eth0"}, topo.PortRef{Node: "h3", Port: "eth0"}},
		Flow{"w", 1, topo.PortRef{Node: "h2", Port: "eth1"}, topo.PortRef{Node: "h1", Port: "eth1"}})
	leafPort := func(leaf, host string, nic int) string {
		for _, l := range scope.Topology.Links {
			for _, end := range [][2]topo.PortRef{{l.A, l.B}, {l.B, l.A}} {
				if end[0].Node == leaf && end[1] == (topo.PortRef{Node: host, Port: fmt.Sprintf("eth%d", nic)}) {
					return end[0].String()
				}
			}
		}
		t.Fatalf("no link from %s to %s", leaf, host)
		return ""
	}
	up := func(leaf, spine string) (from, to string) {
		l := scope.Topology.Links[scope.Topology.LinksBetween(leaf, spine)[0]]
		if l.A.Node == leaf {
			return l.A.String(), l.B.String()
		}
		return l.B.String(), l.A.String()
	}
	up11, down11 := up("leaf1", "spine1")
	up12, down12 := up("leaf1", "spine2")
	up21, down21 := up("leaf2", "spine1")
	up22, down22 := up("leaf2", "spine2")
	egress := func(ports ...string) string { return strings.Join(ports, " egress, ") + " egress" }
	for text, want := range map[string]string{
		"{name: x, kind: reboot, down: 1ms, at: [leaf1]}":                                                 "leaf1",
		"{name: x, kind: reboot, down: 1ms, at: ['*']}":                                                   "spine1, spine2, leaf1, leaf2",
		"{name: x, kind: reboot, down: 1ms, at: ['tier=spine']}":                                          "spine1, spine2",
		"{name: x, kind: reboot, down: 1ms, at: ['tier=1', leaf1]}":                                       "leaf1, leaf2",
		"{name: x, kind: process-pause, at: ['h[12]', 'h2']}":                                             "h1, h2",
		"{name: x, kind: cnp-off, at: [h1, 'h2:eth1']}":                                                   "h1:eth0, h1:eth1, h2:eth1",
		"{name: x, kind: cnp-off, at: ['rail=1 and h*']}":                                                 "h1:eth1, h2:eth1, h3:eth1, h4:eth1",
		"{name: x, kind: ecn-off, at: ['h1:eth1']}":                                                       leafPort("leaf1", "h1", 1),
		"{name: x, kind: ecn-off, at: ['leaf1-spine2']}":                                                  up12,
		"{name: x, kind: down, at: ['leaf1-spine*', 'spine1-leaf1']}":                                     up11 + ", " + up12,
		"{name: x, kind: down, at: ['rail=0 and tier=leaf']}":                                             strings.Join([]string{leafPort("leaf1", "h1", 0), leafPort("leaf1", "h2", 0), leafPort("leaf2", "h3", 0), leafPort("leaf2", "h4", 0)}, ", "),
		"{name: x, kind: loss, probability: 1%, at: ['leaf1-spine2'], one_way: true}":                     egress(up12),
		"{name: x, kind: loss, probability: 1%, at: ['spine2-leaf1'], one_way: true}":                     egress(down12),
		"{name: x, kind: loss, probability: 1%, at: ['leaf1-spine2', 'spine2-leaf1'], direction: egress}": egress(up12, down12),
		"{name: x, kind: loss, probability: 1%, at: ['h1:eth0'], direction: egress}":                      leafPort("leaf1", "h1", 0) + " ingress",
		"{name: x, kind: loss, probability: 1%, at: ['path=h1:eth0>h3:eth0']}":                            leafPort("leaf1", "h1", 0) + " ingress, " + egress(up11, down21, leafPort("leaf2", "h3", 0), up12, down22),
		"{name: x, kind: loss, probability: 1%, at: ['flow=w#0 and leaf*']}":                              egress(up11, leafPort("leaf2", "h3", 0), up12),
		"{name: x, kind: loss, probability: 1%, at: ['flow=w#1']}":                                        leafPort("leaf1", "h2", 1) + " ingress, " + egress(leafPort("leaf1", "h1", 1)),
		"{name: x, kind: reboot, down: 1ms, at: ['flow=w#1']}":                                            "leaf1",
		"{name: x, kind: loss, probability: 1%, at: ['path=h3:eth0>h1:eth0 and tier=spine']}":             egress(down11, down12),
	} {
		if got := aimed(t, scope, text); got != want {
			t.Errorf("%s\nstrikes %s\nwant    %s", text, got, want)
		}
	}
	_, _ = up21, up22
}

func TestASelectorThatNamesTheWrongThingSaysWhatTheKindStrikes(t *testing.T) {
	scope := fabric(t, Flow{Workload: "bulk"})
	for text, want := range map[string]string{
		"{name: x, kind: reboot, down: 1ms, at: [h1]}":                                   `at: "h1" selects no switch, which is what a reboot strikes (there is: leaf1, leaf2, spine1, spine2)`,
		"{name: x, kind: reboot, down: 1ms, at: ['leaf1:eth0']}":                         `"leaf1:eth0" is a port, and a reboot strikes a whole switch`,
		"{name: x, kind: cnp-off, at: [leaf1]}":                                          `"leaf1" selects no nic, which is what a cnp-off strikes`,
		"{name: x, kind: ecn-off, at: ['tier=lefa']}":                                    `"tier=lefa" selects nothing (did you mean "leaf"?)`,
		"{name: x, kind: down, at: ['rail=77']}":                                         `"rail=77" selects nothing (there is: 0, 1)`,
		"{name: x, kind: down, at: ['kind=soft-switch']}":                                `"kind=soft-switch" selects nothing`,
		"{name: x, kind: down, at: ['tier=leaf and spine1']}":                            "no port is all of that",
		"{name: x, kind: down, at: ['path=h1>leaf1']}":                                   `"leaf1" is no host's NIC`,
		"{name: x, kind: down, at: ['flow=bluk']}":                                       `there is no workload "bluk" (did you mean "bulk"?)`,
		"{name: x, kind: down, at: ['flow=bulk#4']}":                                     "workload bulk has 1 flows, from 0 on",
		"{name: x, kind: down, at: ['flow=bulk#x']}":                                     `"x" is no number of a flow`,
		"{name: x, kind: loss, probability: 1%, at: ['path=h1>h3'], direction: ingress}": "leads one way",
		"{name: x, kind: down, at: ['leaf1'], random: 9}":                                "random: there are 6 targets, too few to take 9 of them",
	} {
		if got := aimed(t, scope, text); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want an error with %q", text, got, want)
		}
	}
}

// A fault that is pinned strikes the same as it did before, with nothing but a topology to resolve it in.
func TestAPinnedFaultStrikesTheSame(t *testing.T) {
	scope := fabric(t, Flow{"w", 0, topo.PortRef{Node: "h1", Port: "eth0"}, topo.PortRef{Node: "h3", Port: "eth0"}})
	selectors := []string{"path=h1>h4", "flow=w", "flow=w and tier=leaf", "leaf1", "leaf*:*", "tier=spine", "leaf1-spine2", "h1", "rail=1", "*"}
	for _, base := range []string{
		"{name: x, kind: loss, probability: 1%}", "{name: x, kind: loss, probability: 1%, direction: egress}", "{name: x, kind: loss, probability: 1%, one_way: true}",
		"{name: x, kind: loss, probability: 1%, direction: ingress}", "{name: x, kind: down}", "{name: x, kind: ecn-off}", "{name: x, kind: watchdog-off}", "{name: x, kind: cnp-off}", "{name: x, kind: process-pause}",
	} {
		for _, sel := range selectors {
			for random := range 3 {
				s := decode(t, base)
				s.At, s.Random = []string{sel}, random
				want, err := Aim(&s, scope)
				if err != nil {
					continue
				}
				p, err := Pin(&s, scope)
				if err != nil {
					t.Fatalf("%s at %s: %v", base, sel, err)
				}
				if err := p.Validate(); err != nil {
					t.Fatalf("%s at %s is pinned to %v: %v", base, sel, p.At, err)
				}
				got, err := Aim(&p, Scope{Topology: scope.Topology})
				if err != nil || !sameTargets(scope.Topology, got, want) {
					t.Errorf("%s at %s, random %d: pinned to %v %s, which strikes %v (%v), want %v", base, sel, random, p.At, p.Direction, got, err, want)
				}
			}
		}
	}
}

// sameTargets compares what is struck, each direction of a link by its sender.
func sameTargets(top *topo.Topology, a, b []Target) bool {
	flat := func(all []Target) (out []string) {
		for _, t := range all {
			if t.Type != TargetDirection {
				out = append(out, fmt.Sprintf("%v %v", t.Type, t))
				continue
			}
			peer := top.Links[t.Link].A
			if peer == t.Port {
				peer = top.Links[t.Link].B
			}
			if t.Direction != Ingress {
				out = append(out, "from "+t.Port.String())
			}
			if t.Direction != Egress {
				out = append(out, "from "+peer.String())
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(flat(a), flat(b))
}

func TestARandomChoiceIsTheSeedsAndTheNames(t *testing.T) {
	scope := fabric(t)
	s := decode(t, "{name: x, kind: loss, probability: 1%, at: ['*'], random: 2}")
	draw := func(seed uint64, name string) string {
		scope.Seed, s.Name = seed, name
		all, err := Aim(&s, scope)
		if err != nil || len(all) != 2 || all[0] == all[1] {
			t.Fatalf("%v, %v", all, err)
		}
		return fmt.Sprint(all)
	}
	if first := draw(1, "a"); draw(1, "a") != first {
		t.Error("the same seed and name drew two choices")
	}
	seen := map[string]bool{}
	for seed := range uint64(40) {
		seen[draw(seed, "a")] = true
		seen[draw(seed, "b")] = true
	}
	if len(seen) < 30 {
		t.Errorf("80 draws gave %d choices of %d", len(seen), 12*11/2)
	}
}

func TestAChoiceIsFair(t *testing.T) {
	const n, k, draws = 7, 3, 7000
	var count [n]int
	d := &dice{seed: 5}
	for range draws {
		for _, i := range d.choose(k, n) {
			count[i]++
		}
	}
	for i, c := range count { // 3000 each, standard deviation 41: five of them
		if c < 2790 || c > 3210 {
			t.Errorf("%d was taken %d times of %d, want about %d", i, c, draws, draws*k/n)
		}
	}
}
