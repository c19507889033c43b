package graph

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

func plan(t *testing.T, s topo.Spec) *topo.Plan {
	t.Helper()
	top, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := top.Plan(s.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func specs() map[string]topo.Spec {
	return map[string]topo.Spec{
		"spine-leaf": {SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 2, LinksPerSpine: 2}},
		"many hosts": {SpineLeaf: &topo.SpineLeaf{Spines: 4, Leaves: 16, HostsPerLeaf: 16}},
		"rails":      {RailOptimised: &topo.RailOptimised{Groups: 2, HostsPerGroup: 2, Rails: 4, Spines: 2}},
		"many rails": {RailOptimised: &topo.RailOptimised{Groups: 4, HostsPerGroup: 16, Rails: 8, Spines: 2}},
		"fat-tree":   {FatTree: &topo.FatTree{K: 4}},
		"ring":       {Ring: &topo.Ring{Switches: 5}},
		"dumbbell":   {Dumbbell: &topo.Dumbbell{Left: 1, Right: 2}},
		"switches":   {Nodes: []topo.NodeSpec{{Switch: "a"}, {Switch: "b"}}, Links: []topo.LinkSpec{{Ends: "a -- b"}, {Ends: "a -- b"}}},
		"odd names":  {Nodes: []topo.NodeSpec{{Host: "end"}, {Host: "x-_."}, {Switch: "s"}}, Links: []topo.LinkSpec{{Ends: "end -- s"}, {Ends: "x-_. -- s"}, {Ends: "end -- x-_."}}},
	}
}

func draw(t *testing.T, f Format, p *topo.Plan) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f, p); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	return b.String()
}

func TestEveryFormatNamesEveryNodeAndIsTheSameEveryTime(t *testing.T) {
	for name, s := range specs() {
		p := plan(t, s)
		for _, f := range Formats {
			got := draw(t, f, p)
			if again := draw(t, f, plan(t, s)); again != got {
				t.Errorf("%s as %s differs from run to run", name, f)
			}
			for _, n := range p.Topology.Nodes {
				if !strings.Contains(got, n.Name) && f != SVG { // SVG groups many hosts
					t.Errorf("%s as %s: %s is missing", name, f, n.Name)
				}
			}
		}
	}
}

func TestTheSVGIsWellFormedAndHoldsEveryLink(t *testing.T) {
	for name, s := range specs() {
		p := plan(t, s)
		got := draw(t, SVG, p)
		d := xml.NewDecoder(strings.NewReader(got))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		l := newLayout(p)
		drawn := 0
		for _, ln := range l.lines {
			drawn += len(ln.links)
		}
		if drawn != len(p.Topology.Links) {
			t.Errorf("%s: %d of %d links are drawn", name, drawn, len(p.Topology.Links))
		}
		hosts := 0
		for _, row := range l.rows {
			for _, b := range row {
				hosts += len(b.nodes)
			}
		}
		if hosts != len(p.Topology.Nodes) {
			t.Errorf("%s: %d of %d nodes are drawn", name, hosts, len(p.Topology.Nodes))
		}
	}
}

func TestNoBoxCoversAnotherAndAllAreOnThePage(t *testing.T) {
	for name, s := range specs() {
		l := newLayout(plan(t, s))
		for _, row := range l.rows {
			for i, b := range row {
				if b.x-b.w/2 < 0 || b.x+b.w/2 > l.width || b.y < 60 || b.y+boxHeight > l.height {
					t.Errorf("%s: %s is off the page", name, b.title())
				}
				if i > 0 && row[i-1].x+row[i-1].w/2 >= b.x-b.w/2 {
					t.Errorf("%s: %s covers %s", name, b.title(), row[i-1].title())
				}
				for _, e := range append(b.up, b.down...) {
					if e.x < b.x-b.w/2 || e.x > b.x+b.w/2 {
						t.Errorf("%s: a line misses %s", name, b.title())
					}
				}
			}
		}
	}
}

func TestTheJSONCarriesThePlan(t *testing.T) {
	p := plan(t, specs()["spine-leaf"])
	var g jsonGraph
	if err := json.Unmarshal([]byte(draw(t, JSON, p)), &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != len(p.Topology.Nodes) || len(g.Links) != len(p.Topology.Links) {
		t.Fatalf("%d nodes, %d links", len(g.Nodes), len(g.Links))
	}
	for _, n := range g.Nodes {
		if len(n.Routes) != len(p.Routes(n.Name)) {
			t.Errorf("%s has %d routes", n.Name, len(n.Routes))
		}
		for _, port := range n.Ports {
			if pp, _ := p.Port(topo.PortRef{Node: n.Name, Port: port.Name}); pp.Addr != port.Addr || pp.Peer != port.Peer {
				t.Errorf("%s: %+v", n.Name, port)
			}
		}
	}
	if l := g.Links[0]; l.RateBPS != 100e9 || l.DelayNS != 1000 || l.MTU != 4200 {
		t.Errorf("%+v", l)
	}
}

func TestALinkThatDiffersIsLabelled(t *testing.T) {
	s := specs()["spine-leaf"]
	if svg := draw(t, SVG, plan(t, s)); strings.Contains(svg, odd) {
		t.Error("equal links are marked as odd")
	}
	s.Override = []topo.Override{{Link: "leaf1 -- spine2", LinkSettings: topo.LinkSettings{Rate: 25 * topo.Gbps}}}
	if svg := draw(t, SVG, plan(t, s)); strings.Count(svg, ">25Gbps, 1µs, MTU 4200</text>") != 2 {
		t.Error("the two slow links aren't labelled")
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	err := Write(io.Discard, "pdg", plan(t, specs()["ring"]))
	if err == nil || !strings.Contains(err.Error(), `no graph format "pdg"`) {
		t.Error(err)
	}
	if err := Write(io.Discard, "svgg", plan(t, specs()["ring"])); err == nil || !strings.Contains(err.Error(), `did you mean "svg"?`) {
		t.Error(err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAFailedWriteIsReported(t *testing.T) {
	for _, f := range Formats {
		if err := Write(brokenPipe{}, f, plan(t, specs()["ring"])); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", f, err)
		}
	}
}
