package faults

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

func TestSelectorsNameSwitchPorts(t *testing.T) {
	s := func(node, port string, dir Direction) Strike {
		return Strike{topo.PortRef{Node: node, Port: port}, dir}
	}
	for _, c := range []struct {
		name string
		dir  Direction
		at   []string
		want []Strike
	}{
		{"a port, both ways by default", "", []string{"leaf-1:eth1"}, []Strike{s("leaf-1", "eth1", Both)}},
		{"a port, one way", Ingress, []string{"leaf-1:eth1"}, []Strike{s("leaf-1", "eth1", Ingress)}},
		{"a glob over ports", Egress, []string{"leaf-*:eth0"}, []Strike{s("leaf-1", "eth0", Egress), s("leaf-2", "eth0", Egress)}},
		{"a node is all its ports", Egress, []string{"leaf-2"}, []Strike{s("leaf-2", "eth0", Egress), s("leaf-2", "eth1", Egress)}},
		{"a link is all links between the two, seen from the first", Egress, []string{"leaf-1-spine1"},
			[]Strike{s("leaf-1", "eth1", Egress), s("leaf-1", "eth2", Egress)}},
		{"a link named backwards is seen from the other end", Egress, []string{"spine1-leaf-2"}, []Strike{s("spine1", "eth1", Egress)}},
		{"a host's port is the switch's end, so leaving is arriving", Egress, []string{"h1:eth0"}, []Strike{s("leaf-1", "eth0", Ingress)}},
		{"a host's link from the host", Egress, []string{"h1-leaf-1"}, []Strike{s("leaf-1", "eth0", Ingress)}},
		{"a host is its links", "", []string{"h2"}, []Strike{s("leaf-2", "eth0", Both)}},
		{"two ends of a link don't double", "", []string{"spine1:eth1", "leaf-2:eth1"}, []Strike{s("spine1", "eth1", Both)}},
		{"what is left of a link goes to the second", "", []string{"h2", "leaf-2"}, []Strike{s("leaf-2", "eth0", Both), s("leaf-2", "eth1", Both)}},
	} {
		if got := strikes(t, c.dir, c.at...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q %s is %v, want %v", c.name, c.at, c.dir, got, c.want)
		}
	}
}

// Whatever selectors name a set of links, and in whatever order, each direction of each link
// is struck exactly once.
func TestEachDirectionOfALinkIsStruckOnce(t *testing.T) {
	selectors := []string{"leaf-1:eth1", "spine1:eth0", "spine1:*", "leaf-*:*", "leaf-1-spine1", "spine1-leaf-1", "h1", "h*:eth0", "leaf-2", "*:*"}
	net := net()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var at []string
		for range 1 + rng.IntN(4) {
			at = append(at, selectors[rng.IntN(len(selectors))])
		}
		got := struck(t, net, strikes(t, Both, at...))
		rng.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
		if again := struck(t, net, strikes(t, Both, at...)); !reflect.DeepEqual(got, again) {
			t.Fatalf("%q strikes %v, in another order %v", at, got, again)
		}
		for link, n := range got {
			if n != [2]int{1, 1} {
				t.Fatalf("%q strikes link %d %v times, want once each way", at, link, n)
			}
		}
	}
}

// struck counts, for each link, the strikes on A→B and on B→A.
func struck(t *testing.T, net *topo.Topology, all []Strike) map[int][2]int {
	t.Helper()
	out := map[int][2]int{}
	for _, s := range all {
		for i, l := range net.Links {
			if s.Port != l.A && s.Port != l.B {
				continue
			}
			n := out[i]
			if fromA := s.Port == l.A; s.Direction == Both {
				n[0]++
				n[1]++
			} else if (s.Direction == Egress) == fromA {
				n[0]++
			} else {
				n[1]++
			}
			out[i] = n
		}
	}
	return out
}

func TestASelectorThatSelectsNothingIsAnErrorWithASuggestion(t *testing.T) {
	for sel, want := range map[string]string{
		"leef-1:eth0":  `did you mean "leaf-1"`,
		"leaf-1:eth9":  `did you mean "leaf-1:eth`,
		"spine2":       `did you mean "spine1"`,
		"leaf-1-spin1": `did you mean "leaf-1-spine1"`,
		"leaf-[":       "syntax error in pattern",
	} {
		_, err := Resolve(&Spec{At: []string{sel}}, net())
		if err == nil || !strings.HasPrefix(err.Error(), "at: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("resolve %q: got %v, want an error of the key at with %q", sel, err, want)
		}
	}
}
