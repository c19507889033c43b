//go:build linux

package kernel

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func TestWhatTheKernelCannotDoIsRefusedByItsKeyAndSaysWhoCan(t *testing.T) {
	nics := fabric.NICSettings{NICModel: fabric.NICModel{Recovery: "go-back-0"},
		Override: []fabric.NICOverride{{Node: "h1", NICModel: fabric.NICModel{Ack: &fabric.AckSettings{}}}}}
	switches := fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{Routing: "spray"},
		Override: []fabric.SwitchOverride{{Node: "leaf1", SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{}, ECN: &fabric.ECNSettings{KMin: 1, KMax: 2, PMax: 1, Marker: fabric.MarkerRED}}}}}
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: 2}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = (&Config{Plan: plan, NICs: nics, Switches: switches}).CheckSettings()
	if err == nil {
		t.Fatal("all of it was taken")
	}
	for _, key := range []string{"nics.recovery", "nics.override[0].ack", "switches.routing", "switches.override[0].ecn.marker"} {
		if n := strings.Count(err.Error(), key+": "); n != 1 {
			t.Errorf("%s is refused %d times: %v", key, n, err)
		}
	}
	for _, say := range []string{"rxe-host h1 can't", "linux-switch leaf1 can't", "a soft-host, here and on the backends soft and sim, can"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("it doesn't say %q: %v", say, err)
		}
	}
	for i := range top.Nodes {
		if top.Nodes[i].Name == "h1" {
			top.Nodes[i].Kind = topo.SoftHost
		}
	}
	nics = fabric.NICSettings{Override: []fabric.NICOverride{{Node: "h1", NICModel: fabric.NICModel{Recovery: "go-back-0"}}}}
	if err := (&Config{Plan: plan, NICs: nics}).CheckSettings(); err != nil {
		t.Errorf("what is said of a soft-host is refused: %v", err)
	}
	nics = fabric.NICSettings{RDMA: fabric.RDMAShared, NICModel: fabric.NICModel{Profile: "rxe", Memory: fabric.MemoryReal, DCQCN: &fabric.DCQCNSettings{Profile: "mlx5"}}}
	switches = fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{Buffer: 1 << 20, Routing: "ecmp", PFC: &fabric.PFCSettings{}, ECN: &fabric.ECNSettings{KMin: 1, KMax: 2, PMax: 1}}}
	if err := (&Config{Plan: plan, NICs: nics, Switches: switches}).CheckSettings(); err != nil {
		t.Errorf("what it can do is refused: %v", err)
	}
}
