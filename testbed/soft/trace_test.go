//go:build linux

package soft

import (
	"context"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

func TestTracesComeFromHostsInAnyProcess(t *testing.T) {
	f := build(t, starPlan(t, 3, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 64, func(c *Config) {
		c.Settings.NICs.Override = []fabric.NICOverride{
			{Node: "h1", NICModel: fabric.NICModel{Trace: 3}},
			{Node: "h2", NICModel: fabric.NICModel{Trace: 3, Process: true}},
		}
	})
	drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 16 << 10, Messages: 10, QP: workloads.QPSpec{Timeout: &longTimeout}})
	all, err := f.Traces(context.Background())
	if err != nil || len(all) != 2 || all[0].Port.Node != "h1" || all[1].Port.Node != "h2" {
		t.Fatalf("%+v, %v", all, err)
	}
	if !strings.Contains(all[0].Text, "message 0 sent") || !strings.Contains(all[1].Text, "received") {
		t.Errorf("%s\n%s", all[0].Text, all[1].Text)
	}
}
