package silicon

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Ten packets of the link's size a second of wall time: at a dilation of 1024, 4096 and 38 bytes of Ethernet make 339 Mb/s of fabric time.
func TestFlowsSendTenPacketsASecondOfWallTimeHoweverSlowDCQCNMakesThem(t *testing.T) {
	p, err := dcqcn.ProfileNamed("paper")
	if err != nil {
		t.Fatal(err)
	}
	link := &topo.Link{Rate: 10 * topo.Gbps, MTU: 4096}
	for _, c := range []struct {
		given    dcqcn.Rate
		dilation loop.Dilation
		want     dcqcn.Rate
		says     string
	}{
		{dcqcn.Mbps, 0, dcqcn.Mbps, ""},
		{dcqcn.Mbps, 1, dcqcn.Mbps, ""},
		{dcqcn.Mbps, 1024, (4096 + 38) * 8 * 10 * 1024, "is 339Mbps here"},
		{dcqcn.Gbps, 1024, dcqcn.Gbps, ""},
		{dcqcn.Mbps, 1 << 20, 10 * dcqcn.Gbps, "slows nothing down on a link of 10Gbps"},
	} {
		params := p.Params
		params.RPGMinRate = c.given
		out, warning := LeastRate(params, link, c.dilation)
		if out.RPGMinRate != c.want || (warning == "") != (c.says == "") || !strings.Contains(warning, c.says) {
			t.Errorf("%v at a dilation of %v: %v, %q", c.given, c.dilation, out.RPGMinRate, warning)
		}
	}
}

// NICs of every backend are made from models, and a model's NICs have the least rate of their own links.
func TestModelsHaveTheLeastRateOfTheirLinks(t *testing.T) {
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Rate: 10 * topo.Gbps}}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, pace := range []loop.Dilation{0, 1024} {
		var warned []string
		m := NewMaker(Config{
			Plan: plan, Settings: fabric.Settings{NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}},
			Dilation: 1, Pace: pace, Warn: func(text string) { warned = append(warned, text) },
		}, nil)
		h, err := m.Model(plan.Topology.Hosts()[0])
		if err != nil {
			t.Fatal(err)
		}
		want, warning := LeastRate(*h.Profile.DCQCN, &h.Ports[0].Link, pace)
		if *h.Ports[0].DCQCN != want || (warning == "") != (len(warned) == 0) || (pace == 0) != (want == *h.Profile.DCQCN) {
			t.Errorf("at %v the port has %v, and %q was said", pace, h.Ports[0].DCQCN.RPGMinRate, warned)
		}
	}
}
