//go:build linux

package kernel

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/fabric"
)

func TestWhatTheKernelCannotDoIsRefusedByItsKeyAndSaysWhoCan(t *testing.T) {
	nics := fabric.NICSettings{NICModel: fabric.NICModel{Recovery: "go-back-0"},
		Override: []fabric.NICOverride{{Node: "h1", NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}}}
	switches := fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{}, Routing: "spray"},
		Override: []fabric.SwitchOverride{{Node: "leaf1", SwitchModel: fabric.SwitchModel{ECN: &fabric.ECNSettings{Priorities: fabric.Priorities{3}}}}}}
	err := CheckSettings(&nics, &switches)
	if err == nil {
		t.Fatal("all of it was taken")
	}
	for _, key := range []string{"nics.recovery", "nics.override[0].dcqcn", "switches.pfc", "switches.routing", "switches.override[0].ecn.priorities"} {
		if !strings.Contains(err.Error(), key+": the kernel backend can't") {
			t.Errorf("%s is not refused: %v", key, err)
		}
	}
	if !strings.Contains(err.Error(), "sim and soft can") {
		t.Errorf("it doesn't say who can: %v", err)
	}
	nics = fabric.NICSettings{RDMA: fabric.RDMAShared, NICModel: fabric.NICModel{Profile: "rxe", Memory: fabric.MemoryReal, DCQCN: &fabric.DCQCNSettings{Profile: "off"}}}
	switches = fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{Buffer: 1 << 20, Routing: "ecmp", ECN: &fabric.ECNSettings{KMin: 1, KMax: 2, PMax: 1}}}
	if err := CheckSettings(&nics, &switches); err != nil {
		t.Errorf("what it can do is refused: %v", err)
	}
}
