//go:build linux

package soft

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func TestMemoryWithoutBytesIsRefusedByKey(t *testing.T) {
	top := topo.Topology{Name: "two", Nodes: []topo.Node{
		{Name: "h1", Role: topo.Host, Ports: []topo.Port{{Name: "eth0"}}},
		{Name: "h2", Role: topo.Host, Ports: []topo.Port{{Name: "eth0"}}},
	}, Links: []topo.Link{{A: topo.PortRef{Node: "h1", Port: "eth0"}, B: topo.PortRef{Node: "h2", Port: "eth0"}, Rate: topo.Gbps, MTU: 4200}}}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Plan: plan, Dilation: loop.Dilation(1)}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	c.Settings.NICs.Memory = fabric.MemoryPhantom
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "nics.memory") || !strings.Contains(err.Error(), "sim") {
		t.Errorf("phantom memory: %v", err)
	}
}
