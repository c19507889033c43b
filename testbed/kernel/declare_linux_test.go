package kernel

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

func TestGivenHeadroomIsEnoughForTheReactionThatWouldHaveAskedForIt(t *testing.T) {
	l := &topo.Link{Rate: 10 * topo.Gbps, Delay: 3 * time.Microsecond, MTU: 4200}
	for _, want := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond} {
		given := topo.Bytes(asic.Headroom(uint64(l.Rate), l.Delay, want, l.MTU))
		if got := headroomFor(&given, l); (got - want).Abs() > time.Nanosecond*2 {
			t.Errorf("%v of headroom is for %v, not %v", given, got, want)
		}
	}
	if less := topo.Bytes(1000); headroomFor(&less, l) != 0 || headroomFor(nil, l) != 0 {
		t.Errorf("too little headroom is for %v, none for %v", headroomFor(&less, l), headroomFor(nil, l))
	}
}

func TestADilationOfOurOwnChoiceLeavesPausesTime(t *testing.T) {
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: 4}, LinkSettings: topo.LinkSettings{Rate: 10 * topo.Gbps}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pfc := &fabric.PFCSettings{}
	for _, c := range []struct {
		model fabric.SwitchModel
		want  loop.Dilation
	}{
		{fabric.SwitchModel{}, 1},
		{fabric.SwitchModel{PFC: pfc}, 1024},
		{fabric.SwitchModel{PFC: pfc, Memory: 16 << 20}, 1024},
		{fabric.SwitchModel{PFC: pfc, Memory: 1 << 20}, 2048},
		{fabric.SwitchModel{PFC: pfc, Memory: 700 << 10}, 1},
	} {
		if got := (Config{Plan: plan, Switches: fabric.SwitchSettings{SwitchModel: c.model}}).LeastDilation(); got != c.want {
			t.Errorf("memory %v, PFC %v: %v", c.model.Memory, c.model.PFC != nil, got)
		}
	}
}
