package topo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo/strict"
)

// scenario is a file with nothing but a topology.
type scenario struct {
	Topology Spec `yaml:"topology,required"`
}

// load does what a scenario's loader does with its topology.
func load(file string) (*Topology, error) {
	var s scenario
	doc, err := strict.Read("s.yaml", []byte(file), &s)
	if err != nil {
		return nil, err
	}
	t, err := s.Topology.Build()
	if err != nil {
		return nil, doc.Locate("topology", err)
	}
	return t, nil
}

func mustLoad(t *testing.T, file string) *Topology {
	t.Helper()
	top, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestShapesHaveTheNodesAndLinksTheyPromise(t *testing.T) {
	cases := []struct {
		file                   string
		hosts, switches, links int
	}{
		{"spine-leaf: {spines: 2, leaves: 3, hosts_per_leaf: 4}", 12, 5, 12 + 6},
		{"spine-leaf: {spines: 2, leaves: 3, hosts_per_leaf: 4, links_per_spine: 2}", 12, 5, 12 + 12},
		{"{spine-leaf: {spines: 2, leaves: 3, hosts_per_leaf: 4}, hosts: {nics: 2}}", 12, 5, 24 + 6},
		{"rail-optimised: {groups: 2, hosts_per_group: 4, rails: 8, spines: 4}", 8, 16 + 4, 64 + 64},
		{"rail-optimised: {hosts_per_group: 4, rails: 2}", 4, 2, 8},
		{"fat-tree: {k: 4}", 16, 20, 16 + 16 + 16},
		{"fat-tree: {k: 8, hosts_per_leaf: 1}", 32, 80, 32 + 128 + 128},
		{"star: {hosts: 7}", 7, 1, 7},
		{"dumbbell: {left: 2, right: 3}", 5, 2, 6},
		{"parking-lot: {switches: 5, hosts_per_switch: 2}", 10, 5, 14},
		{"ring: {switches: 4}", 4, 4, 8},
	}
	for _, c := range cases {
		top := mustLoad(t, "topology: \n  "+c.file)
		if h, s, l := len(top.Hosts()), len(top.Switches()), len(top.Links); h != c.hosts || s != c.switches || l != c.links {
			t.Errorf("%s: %d hosts, %d switches, %d links, want %d, %d, %d", c.file, h, s, l, c.hosts, c.switches, c.links)
		}
	}
}

func TestSizeSaysBeforehandWhatAShapeMakes(t *testing.T) {
	for name, s := range fabrics() {
		_, sh := s.shape()
		if sh == nil {
			continue
		}
		s.Hosts.NICs = 0
		top, err := s.Build()
		if err != nil {
			t.Fatal(err)
		}
		if nodes, links := sh.size(); nodes != float64(len(top.Nodes)) || links != float64(len(top.Links)) {
			t.Errorf("%s: announced %v nodes and %v links, made %d and %d", name, nodes, links, len(top.Nodes), len(top.Links))
		}
	}
}

func TestPathsAreTheProductOfTheWidthsOnTheWay(t *testing.T) {
	for _, c := range []struct {
		file     string
		src, dst string
		want     uint64
	}{
		{"spine-leaf: {spines: 3, leaves: 2, hosts_per_leaf: 2}", "h1", "h2", 1},
		{"spine-leaf: {spines: 3, leaves: 2, hosts_per_leaf: 2}", "h1", "h3", 3},
		{"spine-leaf: {spines: 3, leaves: 2, hosts_per_leaf: 2, links_per_spine: 2}", "h1", "h3", 3 * 2 * 2},
		{"fat-tree: {k: 8}", "h1", "h5", 4},       // same pod: k/2 aggregation switches
		{"fat-tree: {k: 8}", "h1", "h128", 4 * 4}, // (k/2)² cores
		{"ring: {switches: 6}", "h1", "h4", 2},
		{"ring: {switches: 6}", "h1", "h3", 1},
	} {
		top := mustLoad(t, "topology: {"+c.file+"}")
		p, err := top.Plan(PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.PathCount(PortRef{c.src, "eth0"}, PortRef{c.dst, "eth0"})
		if err != nil || n != c.want {
			t.Errorf("%s, %s to %s: %d paths, want %d (%v)", c.file, c.src, c.dst, n, c.want, err)
		}
	}
}

func TestSettingsGoFromWideToNarrow(t *testing.T) {
	top := mustLoad(t, `
topology:
  name: lab
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}
  rate: 50Gbps
  delay: 2us
  mtu: 1500
  tiers:
    leaf: {rate: 200Gbps, delay: 0}
  hosts: {gpus: 8, kind: rxe-host}
  switches: {kind: linux-switch}
  override:
    - {link: "leaf1 -- spine*", rate: 25Gbps}
    - {link: "leaf1 -- spine2", mtu: 9000}
    - {node: "h*", gpus: 4}
    - {node: h3, kind: soft-host}
    - {node: "spine*", hash_seed: 7}
`)
	if top.Name != "lab" {
		t.Errorf("name %q", top.Name)
	}
	want := map[string]Link{
		"h1-leaf1": {Rate: 50 * Gbps, Delay: 2 * time.Microsecond, MTU: 1500}, "leaf2-spine1": {Rate: 200 * Gbps, MTU: 1500},
		"leaf1-spine1": {Rate: 25 * Gbps, MTU: 1500}, "leaf1-spine2": {Rate: 25 * Gbps, MTU: 9000},
	}
	for _, l := range top.Links {
		if w, ok := want[l.Name()]; ok && (l.Rate != w.Rate || l.Delay != w.Delay || l.MTU != w.MTU) {
			t.Errorf("%s: %+v", l.Name(), l)
		}
	}
	if n := top.Node("h3"); n.Kind != SoftHost || n.GPUs != 4 {
		t.Errorf("%+v", n)
	}
	if n := top.Node("h1"); n.Kind != RxeHost || n.GPUs != 4 {
		t.Errorf("%+v", n)
	}
	a, b, c := top.Node("leaf1"), top.Node("leaf2"), top.Node("spine1")
	if a.Kind != LinuxSwitch || a.HashSeed == b.HashSeed || c.HashSeed != 7 {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
}

func TestOversubscriptionSetsTheUplinks(t *testing.T) {
	top := mustLoad(t, "topology: {spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 8, oversubscription: '2:1'}, rate: 100Gbps}")
	if l := top.Links[top.LinksBetween("leaf1", "spine2")[0]]; l.Rate != 200*Gbps { // 8 × 100 / 2 uplinks / 2
		t.Errorf("uplink %s", l.Rate)
	}
	if l := top.Links[top.LinksBetween("h1", "leaf1")[0]]; l.Rate != 100*Gbps {
		t.Errorf("host link %s", l.Rate)
	}
}

func TestExplicitNodesAndLinks(t *testing.T) {
	top := mustLoad(t, `
topology:
  nodes:
    - {host: gpu-a, gpus: 8}
    - {host: gpu-b}
    - {switch: tor, hash_seed: 3}
    - {switch: core, tier: 3, kind: soft-switch}
  links:
    - "gpu-a:eth1 -- tor:eth5"
    - gpu-a -- tor
    - {ends: "gpu-b -- tor", rate: 25Gbps, delay: 5us, mtu: 9000}
    - tor -- core
`)
	a, tor := top.Node("gpu-a"), top.Node("tor")
	if len(a.Ports) != 2 || a.Ports[0] != (Port{"eth0", 0}) || a.Ports[1] != (Port{"eth1", 1}) || a.GPUs != 8 {
		t.Errorf("%+v", a)
	}
	if b := top.Node("gpu-b"); b.GPUs != 1 {
		t.Errorf("%+v", b)
	}
	if got := fmt.Sprint(tor.portNames()); got != "[eth0 eth1 eth2 eth5]" || tor.Tier != 1 || tor.HashSeed != 3 || top.Node("core").Tier != 3 {
		t.Errorf("%s %+v", got, tor)
	}
	if l := top.Links[2]; l.Rate != 25*Gbps || l.Delay != 5*time.Microsecond || l.MTU != 9000 {
		t.Errorf("%+v", l)
	}
	if l := top.Links[3]; l.Rate != 100*Gbps || l.Delay != time.Microsecond || l.MTU != 4200 {
		t.Errorf("%+v", l)
	}
}

func TestMistakesAreReportedAtTheirPlace(t *testing.T) {
	nodes := "topology:\n  nodes:\n    - {host: h1}\n    - {host: h2}\n    - {switch: leaf1}\n  links:\n    - h1 -- leaf1\n    - "
	cases := []struct{ file, want string }{
		{"topology: {}", "s.yaml:1:1: no shape: give one of spine-leaf"},
		{"topology:\n  star: {hosts: 2}\n  ring: {switches: 4}", "s.yaml:3:3: two shapes, star and ring"},
		{"topology:\n  star: {hosts: 2}\n  links: [a -- b]", "s.yaml:3:3: links beside the shape star"},
		{"topology: {spine-leaf: {spines: 0, leaves: 2, hosts_per_leaf: 1}}", "s.yaml:1:25: spines: 0 is less than 1"},
		{"topology: {spine-leaf: {spines: 1, leaves: 70000, hosts_per_leaf: 1}}", "leaves: 70000 is more than 65536"},
		{"topology: {spine-leaf: {spines: 1000, leaves: 60000, hosts_per_leaf: 60000}}", "at most 65536"},
		{"topology: {spine-leaf: {leaves: 2, hosts_per_leaf: 1}}", `key "spines" is missing`},
		{"topology: {spine-leaf: {spine: 2}}", `unknown key "spine" in topology.spine-leaf (did you mean "spines"?)`},
		{"topology: {fat-tree: {k: 3}}", "s.yaml:1:23: k: 3 is odd"},
		{"topology: {star: {hosts: 2}, rate: 5}", `needs a number and a unit`},
		{"topology: {star: {hosts: 2}, mtu: 70000}", "s.yaml:1:30: mtu: an MTU of 70000"},
		{"topology: {star: {hosts: 2}, tiers: {host: {delay: 2m}}}", "s.yaml:1:45: delay: a delay of 2m0s"},
		{"topology: {star: {hosts: 2}, hosts: {kind: linux-switch}}", `a host can't be of kind "linux-switch"`},
		{"topology: {star: {hosts: 2}, hosts: {kind: rxehost}}", `unknown kind "rxehost" (did you mean "rxe-host"?)`},
		{"topology: {star: {hosts: 2}, hosts: {nics: -1}}", "hosts.nics: -1 is not"},
		{"topology: {star: {hosts: 2}, hosts: {gpus: 5000}}", "hosts.gpus: 5000 is not"},
		{"topology: {rail-optimised: {hosts_per_group: 2, rails: 2}, hosts: {nics: 2}}", "have a NIC a rail"},
		{"topology: {spine-leaf: {spines: 1, leaves: 1, hosts_per_leaf: 1, oversubscription: 2}, tiers: {leaf: {rate: 1Gbps}}}", "give one"},
		{"topology: {spine-leaf: {spines: 1, leaves: 1, hosts_per_leaf: 1, oversubscription: 0}}", `"0" is not a ratio`},
		{"topology: {star: {hosts: 2}, addresses: ipv5}", `"ipv5" is neither`},
		{"topology: {star: {hosts: 2}, name: a/b}", `the character '/' can't be in a name`},
		{"topology: {star: {hosts: 2}, override: [{node: h9, gpus: 1}]}", `no node "h9" (did you mean "h1"?)`},
		{"topology: {star: {hosts: 2}, override: [{node: h1, rate: 1Gbps}]}", "s.yaml:1:41: rate, delay and mtu are of links"},
		{"topology: {star: {hosts: 2}, override: [{node: h1}]}", "changes nothing"},
		{"topology: {star: {hosts: 2}, override: [{link: h1 -- h2, mtu: 1500}]}", `nothing joins them so`},
		{"topology: {star: {hosts: 2}, override: [{link: h1 -- leaf9, mtu: 1500}]}", `no node "leaf9" (did you mean "leaf1"?)`},
		{"topology: {star: {hosts: 2}, override: [{mtu: 1500}]}", "either a node or a link"},
		{"topology: {star: {hosts: 2}, override: [{node: leaf1, gpus: 1}]}", "only hosts have GPUs"},
		{nodes + "h2 -- leef1", `s.yaml:8:7: link "h2 -- leef1": no node "leef1" (did you mean "leaf1"?)`},
		{nodes + "h2:lo -- leaf1", `a node has its own lo`},
		{nodes + "h2 -- leaf1:all", `the kernel takes "all" for every interface`},
		{"topology: {nodes: [{host: a, gpus: -1}, {host: b}], links: [a -- b]}", "s.yaml:1:30: -1 GPUs: a host has 0 to 1024"},
		{nodes + "h2 leaf1", `s.yaml:8:7: "h2 leaf1" is not a link`},
		{nodes + "h2 --", `an end is missing`},
		{nodes + "h2:eth0 -- leaf1:eth0\n    - h1 -- leaf1:eth0", "s.yaml:9:7: link \"h1 -- leaf1:eth0\": port leaf1:eth0 has a link already"},
		{nodes + "h2 -- h2", `both ends are on node "h2"`},
		{nodes + "h1 -- leaf1", `node "h2": a host needs at least one link`},
		{nodes + "{ends: h2 -- leaf1, mtu: 3}", "s.yaml:8:27: mtu: an MTU of 3"},
		{"topology:\n  nodes: [{host: a}, {host: a}]", `s.yaml:2:22: two nodes are called "a"`},
		{"topology: {nodes: [{host: a, switch: b}]}", "either {host: NAME} or {switch: NAME}"},
		{"topology: {nodes: [{host: ../etc}]}", "a name begins with a letter"},
		{"topology: {nodes: [{host: 'a b'}]}", "can't be in a name"},
		{"topology: {nodes: [{host: a, tier: 2}]}", "tier and hash_seed are for switches"},
		{"topology: {nodes: [{switch: a, gpus: 2}]}", "gpus are for hosts"},
	}
	for _, c := range cases {
		_, err := load(c.file)
		if err == nil {
			t.Errorf("accepted:\n%s", c.file)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.file, err, c.want)
		}
	}
}

func TestHandMadeTopologiesAreValidated(t *testing.T) {
	good := func() *Topology {
		return &Topology{
			Nodes: []Node{{Name: "a", Role: Host, Ports: []Port{{Name: "eth0"}}}, {Name: "s", Role: Switch, Tier: 1, Ports: []Port{{Name: "eth0"}}}},
			Links: []Link{{A: PortRef{"a", "eth0"}, B: PortRef{"s", "eth0"}, Rate: Gbps, MTU: 1500}},
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Topology){
		"at least one node":                     func(t *Topology) { *t = Topology{} },
		`two nodes are called "a"`:              func(t *Topology) { t.Nodes[1].Name = "a" },
		"role":                                  func(t *Topology) { t.Nodes[1].Role = "router" },
		"tier 0":                                func(t *Topology) { t.Nodes[1].Tier = 0 },
		"two ports of this name":                func(t *Topology) { t.Nodes[1].Ports = append(t.Nodes[1].Ports, Port{Name: "eth0"}) },
		"has no link":                           func(t *Topology) { t.Nodes[1].Ports = append(t.Nodes[1].Ports, Port{Name: "eth1"}) },
		`no port s:eth9 (did you mean "eth0"?)`: func(t *Topology) { t.Links[0].B.Port = "eth9" },
		"has a link already":                    func(t *Topology) { t.Links = append(t.Links, t.Links[0]) },
		"the rate is 0":                         func(t *Topology) { t.Links[0].Rate = 0 },
		"a delay of -1ns":                       func(t *Topology) { t.Links[0].Delay = -1 },
		"longer than 32":                        func(t *Topology) { t.Nodes[0].Name = strings.Repeat("a", 33) },
	} {
		top := good()
		spoil(top)
		if err := top.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := top.Plan(PlanOptions{}); err == nil {
			t.Errorf("%s: planned all the same", want)
		}
	}
}

func FuzzSpec(f *testing.F) {
	for _, s := range []string{
		"spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 2}", "fat-tree: {k: 4}", "ring: {switches: 4}", "rail-optimised: {hosts_per_group: 2, rails: 2, spines: 1}",
		"nodes: [{host: a}, {switch: s}]\n  links: [a -- s]\n  override: [{link: 'a -- s', rate: 1Gbps}]", "dumbbell: {left: 1, right: 0}\n  addresses: ipv6",
	} {
		f.Add("topology:\n  " + s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		var s scenario
		if err := strict.Decode("s.yaml", []byte(file), &s); err != nil {
			return
		}
		if _, sh := s.Topology.shape(); sh != nil {
			if nodes, links := sh.size(); nodes > 500 || links > 5000 {
				return
			}
		}
		top, err := s.Topology.Build()
		if err != nil {
			return
		}
		p, err := top.Plan(s.Topology.PlanOptions())
		if err != nil {
			t.Fatalf("built, but not planned: %v", err)
		}
		if nics := top.NICs(); len(nics) > 1 {
			if _, err := p.PathCount(nics[0], nics[len(nics)-1]); err != nil {
				t.Error(err)
			}
		}
		p.DeadlockStatement()
	})
}

func TestOnlyTheTopologyOfAScenarioIsLookedAt(t *testing.T) {
	p, err := FromScenario("s.yaml", []byte("name: mine\nseed: [what]\nworkloads: unfinished\ntopology: {star: {hosts: 2}, addresses: ipv6}"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Topology.Name != "mine" || p.Options.Family != IPv6 {
		t.Errorf("%q %v", p.Topology.Name, p.Options)
	}
	for file, want := range map[string]string{
		"name: x":                               `key "topology" is missing`,
		"topology: {star: {hosts: 0}}":          "s.yaml:1:19: hosts: 0 is less than 1",
		"topolgy: {star: {hosts: 1}}":           `unknown key "topolgy" (did you mean "topology"?)`,
		"topology: {star: {hosts: 4194304000}}": "is more than 65536",
	} {
		if _, err := FromScenario("s.yaml", []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", file, err, want)
		}
	}
}
