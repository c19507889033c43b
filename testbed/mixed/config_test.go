//go:build linux

package mixed

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// config is two hosts on a switch; kinds are the hosts' and the switch's.
func config(t *testing.T, h1, h2, sw topo.Kind) *Config {
	t.Helper()
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: 2}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]topo.Kind{"h1": h1, "h2": h2, "leaf1": sw}
	for i := range top.Nodes {
		top.Nodes[i].Kind = kinds[top.Nodes[i].Name]
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &Config{Plan: plan, Dilation: 1024}
}

func recovery(node, how string) []fabric.NICOverride {
	return []fabric.NICOverride{{Node: node, NICModel: fabric.NICModel{Recovery: how}}}
}

func TestEveryKindIsMadeByItsOwnRoom(t *testing.T) {
	for _, kinds := range [][3]topo.Kind{
		{topo.SoftHost, "", ""}, {topo.SoftHost, topo.RxeHost, topo.SoftSwitch}, {topo.SoftHost, topo.SoftHost, topo.LinuxSwitch}, {"", "", topo.SoftSwitch},
	} {
		c := config(t, kinds[0], kinds[1], kinds[2])
		if err := c.Check(); err != nil {
			t.Errorf("%v: %v", kinds, err)
		}
		if !Wanted(c.Plan.Topology) {
			t.Errorf("%v: no soft node was seen", kinds)
		}
	}
	if Wanted(config(t, "", topo.RxeHost, topo.LinuxSwitch).Plan.Topology) {
		t.Error("a soft node was seen where there is none")
	}
}

func TestSettingsAreJudgedByTheKindOfTheNodeThatTheyAreFor(t *testing.T) {
	for _, c := range []struct {
		what     string
		settings fabric.Settings
		refused  string // empty: nothing is
	}{
		{"DCQCN of the soft-host", fabric.Settings{NICs: fabric.NICSettings{Override: []fabric.NICOverride{{Node: "h1", NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}}}}, ""},
		{"DCQCN of all hosts", fabric.Settings{NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}}}, ""},
		{"go-back-0 of the soft-host", fabric.Settings{NICs: fabric.NICSettings{Override: recovery("h1", "go-back-0")}}, ""},
		{"selective repeat beside rxe", fabric.Settings{NICs: fabric.NICSettings{Override: recovery("h1", "selective-repeat")}}, "nics.override[0].recovery: h1 would repeat selectively, which an rxe-host (h2) doesn't understand"},
		{"PFC of a linux-switch", fabric.Settings{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{PFC: &fabric.PFCSettings{}}}}, ""},
		{"spraying by a linux-switch", fabric.Settings{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{Routing: "spray"}}}, "switches.routing: linux-switch leaf1 can't"},
		{"memory without bytes", fabric.Settings{NICs: fabric.NICSettings{Override: []fabric.NICOverride{{Node: "h1", NICModel: fabric.NICModel{Memory: fabric.MemoryPhantom}}}}}, "nics.override[0].memory"},
	} {
		cfg := config(t, topo.SoftHost, topo.RxeHost, topo.LinuxSwitch)
		cfg.Settings = c.settings
		err := cfg.Check()
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", c.what, err, c.refused)
		}
	}
	cfg := config(t, topo.SoftHost, topo.SoftHost, topo.SoftSwitch)
	cfg.Settings.NICs.Recovery = "selective-repeat"
	cfg.Settings.Switches.PFC = &fabric.PFCSettings{}
	if err := cfg.Check(); err != nil {
		t.Errorf("soft nodes alone: %v", err)
	}
}

func TestFaultsAreTheCablesWhateverStandsAtTheirEnds(t *testing.T) {
	cfg := config(t, topo.SoftHost, topo.RxeHost, topo.LinuxSwitch)
	for _, s := range []faults.Spec{
		{Name: "loss", Kind: faults.Loss, Probability: 0.01}, {Name: "cut", Kind: faults.LinkDown},
		{Name: "slow", Kind: faults.RateLimit, Rate: topo.Gbps}, {Name: "flap", Kind: faults.LinkFlap, Period: time.Millisecond, Down: 100 * time.Microsecond},
	} {
		s.At = []string{"h1:eth0"}
		if err := cfg.CheckFault(s); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	fast := faults.Spec{Name: "fast", Kind: faults.RateLimit, At: []string{"h1:eth0"}, Rate: 1000 * topo.Gbps}
	if err := cfg.CheckFault(fast); err == nil || !strings.Contains(err.Error(), "no more than the fault leaves") {
		t.Errorf("a limit above the rate: %v", err)
	}
}

func TestAFabricIsOnlySlowWhereNeitherPartIsWorse(t *testing.T) {
	slow, lost := fabric.OnlySlow(errors.New("late")), errors.New("lost")
	for _, c := range []struct {
		parts [2]error
		slow  bool
		says  string
	}{
		{[2]error{nil, nil}, false, ""}, {[2]error{nil, slow}, true, "late"}, {[2]error{slow, slow}, true, "late\nlate"},
		{[2]error{lost, nil}, false, "lost"}, {[2]error{slow, lost}, false, "lost\nlate"},
	} {
		err := both(c.parts[:]...)
		says := ""
		if err != nil {
			says = err.Error()
		}
		if errors.Is(err, fabric.ErrSlow) != c.slow || says != c.says {
			t.Errorf("%v: %q, only slow: %v", c.parts, says, errors.Is(err, fabric.ErrSlow))
		}
	}
}
