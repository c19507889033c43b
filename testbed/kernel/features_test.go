//go:build linux

package kernel

import (
	"strings"
	"testing"

	"github.com/rocebed/rocebed/faults"
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

// What is said before there is a fabric, on any machine, is what its ports will be like.
func TestFaultsOfPortsAreRefusedWherePortsHaveOneQueueAndTakenWhereTheyHaveMore(t *testing.T) {
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: 2}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ecn := &fabric.ECNSettings{KMin: 1000, KMax: 2000, PMax: 1}
	red := *ecn
	red.Marker = fabric.MarkerRED
	plain, marks, chosen := fabric.SwitchModel{}, fabric.SwitchModel{ECN: ecn}, fabric.SwitchModel{ECN: &red}
	full := fabric.SwitchModel{Memory: 32e6, PFC: &fabric.PFCSettings{}, ECN: ecn, Watchdog: &fabric.WatchdogSettings{Detect: 1e6}}
	three := faults.SwitchKeys{Priorities: faults.Priorities{3}}
	for _, c := range []struct {
		spec    faults.Spec
		on      fabric.SwitchModel
		refused string // empty: nothing is
	}{
		{faults.Spec{Kind: faults.StuckQueue, SwitchKeys: three}, plain, ""},
		{faults.Spec{Kind: faults.DSCPMap, SwitchKeys: faults.SwitchKeys{DSCPMap: map[string]uint8{"26": 0}}}, plain, ""},
		{faults.Spec{Kind: faults.CNPStarved}, plain, ""},
		{faults.Spec{Kind: faults.ECNThresholds, SwitchKeys: faults.SwitchKeys{KMin: 1, KMax: 2, PMax: 1}}, plain, ""},
		{faults.Spec{Kind: faults.ECNOff}, plain, "marks nothing"},
		{faults.Spec{Kind: faults.ECNOff}, marks, ""},
		{faults.Spec{Kind: faults.ECNOff}, chosen, ""},
		{faults.Spec{Kind: faults.ECNOff, SwitchKeys: three}, marks, ""},
		{faults.Spec{Kind: faults.ECNOff, SwitchKeys: three}, chosen, "one queue each"},
		{faults.Spec{Kind: faults.PFCOff}, plain, "give switches.pfc"},
		{faults.Spec{Kind: faults.PFCOff}, marks, "would change nothing"},
		{faults.Spec{Kind: faults.PFCOff}, full, ""},
		{faults.Spec{Kind: faults.WatchdogOff, At: []string{"leaf1"}}, plain, "give switches.watchdog"},
		{faults.Spec{Kind: faults.WatchdogOff, At: []string{"leaf1"}}, full, ""},
		{faults.Spec{Kind: faults.BufferAlpha, At: []string{"leaf1"}, SwitchKeys: faults.SwitchKeys{Alpha: 0.1}}, plain, "give switches.memory"},
		{faults.Spec{Kind: faults.BufferAlpha, At: []string{"leaf1"}, SwitchKeys: faults.SwitchKeys{Alpha: 0.1}}, full, ""},
		{faults.Spec{Kind: faults.PFCStorm, At: []string{"h1:eth0"}}, plain, "nobody obeys a pause"},
		{faults.Spec{Kind: faults.PFCStorm, At: []string{"h1:eth0"}}, full, ""},
		{faults.Spec{Kind: faults.CNPOff, At: []string{"h1:eth0"}}, full, "give nics.dcqcn"},
	} {
		c.spec.Name = "x"
		if c.spec.At == nil {
			c.spec.At = []string{"leaf1:eth0"}
		}
		cfg := Config{Plan: plan, Dilation: 1024, Switches: fabric.SwitchSettings{SwitchModel: c.on}, Faults: []faults.Spec{c.spec}}
		err := cfg.CheckFault(c.spec)
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s on %+v: %v, want %q", c.spec.Kind, c.on, err, c.refused)
		}
	}
}
