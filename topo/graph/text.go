package graph

import (
	"encoding/json"
	"io"
	"net/netip"
	"strings"

	"github.com/rocebed/rocebed/topo"
)

func writeDOT(w io.Writer, p *topo.Plan) error {
	t, out := p.Topology, &printer{w: w}
	out.f("graph %q {\n  rankdir=TB; ranksep=1.2; nodesep=0.4;\n  node [fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\", fontsize=9];\n", t.Name)
	for _, row := range tiers(t) {
		out.f("  { rank=same;\n")
		for _, name := range row {
			n, shape := p.Node(name), "box"
			if n.Role == topo.Host {
				shape = "ellipse"
			}
			label := name
			if c := caption(n); c != "" {
				label += "\\n" + c
			}
			out.f("    \"%s\" [shape=%s, label=\"%s\"];\n", name, shape, label)
		}
		out.f("  }\n")
	}
	for i := range t.Links {
		l := &t.Links[i]
		up, low := ends(p, l)
		out.f("  \"%s\" -- \"%s\" [label=\"%s\", taillabel=\"%s\", headlabel=\"%s\"];\n", up.Node, low.Node, l.Rate, up.Port, low.Port)
	}
	out.f("}\n")
	return out.err
}

// ends are a link's ends, the one of the higher tier first.
func ends(p *topo.Plan, l *topo.Link) (up, low topo.PortRef) {
	if p.Node(l.A.Node).Tier < p.Node(l.B.Node).Tier {
		return l.B, l.A
	}
	return l.A, l.B
}

func writeMermaid(w io.Writer, p *topo.Plan) error {
	t, out := p.Topology, &printer{w: w}
	out.f("graph TD\n")
	for _, row := range tiers(t) {
		for _, name := range row {
			n, label := p.Node(name), name
			if c := caption(n); c != "" {
				label += "<br/>" + c
			}
			if n.Role == topo.Host {
				out.f("  %s([\"%s\"])\n", mermaidID(name), label)
			} else {
				out.f("  %s[\"%s\"]\n", mermaidID(name), label)
			}
		}
	}
	for i := range t.Links {
		l := &t.Links[i]
		up, low := ends(p, l)
		out.f("  %s ---|\"%s %s %s\"| %s\n", mermaidID(up.Node), up.Port, l.Rate, low.Port, mermaidID(low.Node))
	}
	return out.err
}

// mermaidID makes a name safe for Mermaid, whose keywords ("end") and marks ("-", "o", "x"
// after a dash) would be misread: a prefix, and underscores spelt out so that names stay apart.
func mermaidID(name string) string {
	return "n_" + strings.NewReplacer("_", "_u", "-", "_d", ".", "_p").Replace(name)
}

// The JSON form. Rates are bits per second, delays nanoseconds of fabric time.
type jsonGraph struct {
	Name      string     `json:"name"`
	Addresses string     `json:"addresses"`
	Deadlock  string     `json:"deadlock"`
	Nodes     []jsonNode `json:"nodes"`
	Links     []jsonLink `json:"links"`
}

type jsonNode struct {
	Name     string      `json:"name"`
	Role     topo.Role   `json:"role"`
	Kind     topo.Kind   `json:"kind,omitempty"`
	Tier     topo.Tier   `json:"tier"`
	GPUs     int         `json:"gpus,omitempty"`
	HashSeed uint32      `json:"hash_seed,omitempty"`
	Ports    []jsonPort  `json:"ports"`
	Routes   []jsonRoute `json:"routes,omitempty"`
}

type jsonPort struct {
	Name string       `json:"name"`
	Rail int          `json:"rail"`
	Addr netip.Prefix `json:"addr"`
	MAC  topo.MAC     `json:"mac"`
	Peer topo.PortRef `json:"peer"`
	Link int          `json:"link"`
}

type jsonRoute struct {
	Dst      netip.Prefix `json:"dst"`
	NextHops []jsonHop    `json:"next_hops"`
}

type jsonHop struct {
	Via  netip.Addr `json:"via"`
	Port string     `json:"port"`
}

type jsonLink struct {
	A       topo.PortRef `json:"a"`
	B       topo.PortRef `json:"b"`
	RateBPS uint64       `json:"rate_bps"`
	DelayNS int64        `json:"delay_ns"`
	MTU     int          `json:"mtu_bytes"`
}

func writeJSON(w io.Writer, p *topo.Plan) error {
	t := p.Topology
	g := jsonGraph{Name: t.Name, Addresses: string(p.Options.Family), Deadlock: p.DeadlockStatement(), Nodes: []jsonNode{}, Links: []jsonLink{}}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		jn := jsonNode{Name: n.Name, Role: n.Role, Kind: n.Kind, Tier: n.Tier, GPUs: n.GPUs, HashSeed: n.HashSeed, Ports: []jsonPort{}}
		for _, pp := range p.Ports(n.Name) {
			jn.Ports = append(jn.Ports, jsonPort{pp.Ref.Port, pp.Rail, pp.Addr, pp.MAC, pp.Peer, pp.Link})
		}
		for _, r := range p.Routes(n.Name) {
			jr := jsonRoute{Dst: r.Dst}
			for _, h := range r.NextHops {
				jr.NextHops = append(jr.NextHops, jsonHop(h))
			}
			jn.Routes = append(jn.Routes, jr)
		}
		g.Nodes = append(g.Nodes, jn)
	}
	for i := range t.Links {
		l := &t.Links[i]
		g.Links = append(g.Links, jsonLink{l.A, l.B, uint64(l.Rate), l.Delay.Nanoseconds(), l.MTU})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(g)
}
