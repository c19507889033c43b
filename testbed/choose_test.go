package testbed

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/topo"
)

// only makes some backends the ones that there are while a test runs; nil errors are of one that this machine can.
func only(t *testing.T, all map[Backend]error) {
	t.Helper()
	before := builders
	t.Cleanup(func() { builders = before })
	builders = map[Backend]*Builder{}
	for name, err := range all {
		Register(&Builder{Backend: name, Virtual: name == Sim, Built: func() error { return nil }, Capable: func(context.Context) error { return err }})
	}
}

func TestABinaryThatCannotBuildTheBackendBootsNoGuestToFindOut(t *testing.T) {
	missing := errors.New("no libibverbs")
	only(t, map[Backend]error{Kernel: errors.New("an old kernel")})
	builders[Kernel].Built = func() error { return missing }
	for _, guest := range []bool{false, true} {
		if c, err := Choose(t.Context(), &Scenario{Backend: Auto}, "", guest); !errors.Is(err, ErrIncapable) || !errors.Is(err, missing) {
			t.Errorf("guest %v: chose %+v, %v", guest, c, err)
		}
	}
	builders[Kernel].Built = func() error { return nil }
	for _, guest := range []bool{false, true} {
		if c, err := Choose(t.Context(), &Scenario{Backend: Auto}, "", guest); err != nil || !c.Guest || guest == strings.Contains(c.Why, "old kernel") {
			t.Errorf("guest %v: chose %+v, %v", guest, c, err)
		}
	}
}

func TestAutoTakesTheRealestBackendThatThisMachineCanAndSaysWhy(t *testing.T) {
	old, bare := errors.New("an old kernel"), errors.New("no namespaces")
	for _, c := range []struct {
		have  map[Backend]error
		want  Backend
		guest bool
		says  []string
	}{
		{map[Backend]error{Kernel: nil, Soft: nil, Sim: nil}, Kernel, false, []string{"this machine's kernel", "--backend sim"}},
		{map[Backend]error{Kernel: old, Soft: nil, Sim: nil}, Soft, false, []string{"an old kernel", "--backend kernel", "--backend sim"}},
		{map[Backend]error{Kernel: old, Soft: bare, Sim: nil}, Kernel, true, []string{"in the guest", "an old kernel"}},
	} {
		only(t, c.have)
		got, err := Choose(t.Context(), &Scenario{Backend: Auto}, "", false)
		if err != nil || got.Backend != c.want || got.Guest != c.guest {
			t.Errorf("%v: chose %+v, %v", c.have, got, err)
		}
		for _, text := range c.says {
			if !strings.Contains(got.Why, text) {
				t.Errorf("%v: it says %q, not %q", c.have, got.Why, text)
			}
		}
	}
}

func TestAutoGoesWhereTheKindsOfTheNodesCanBeHad(t *testing.T) {
	only(t, map[Backend]error{Kernel: errors.New("an old kernel"), Soft: nil, Sim: nil})
	s := &Scenario{Backend: Auto, Topology: &topo.Topology{Nodes: []topo.Node{{Name: "h1", Kind: topo.SoftHost}, {Name: "leaf1"}}}}
	if c, err := Choose(t.Context(), s, "", false); err != nil || c.Backend != Soft {
		t.Errorf("chose %+v, %v", c, err)
	}
	s.Topology.Nodes[1].Kind = topo.LinuxSwitch
	if c, err := Choose(t.Context(), s, "", false); err != nil || c.Backend != Kernel || !c.Guest || !strings.Contains(c.Why, "has a linux-switch") {
		t.Errorf("chose %+v, %v", c, err)
	}
}

func TestABackendThatIsAskedForIsTakenOrTheErrorSaysWhatThereIs(t *testing.T) {
	only(t, map[Backend]error{Kernel: nil, Sim: nil})
	if c, err := Choose(t.Context(), &Scenario{Backend: Kernel}, Sim, false); err != nil || c.Backend != Sim || c.Guest || !strings.Contains(c.Why, "nothing waits for the clock") {
		t.Errorf("chose %+v, %v", c, err)
	}
	if _, err := Choose(t.Context(), &Scenario{Backend: Soft}, "", false); !errors.Is(err, ErrIncapable) || !strings.Contains(err.Error(), "kernel, sim") {
		t.Errorf("%v", err)
	}
	if _, err := Choose(t.Context(), &Scenario{Backend: Sim}, "", true); !errors.Is(err, ErrIncapable) || !strings.Contains(err.Error(), "leave --guest out") {
		t.Errorf("%v", err)
	}
}

func TestWhereThisKernelLacksWhatAScenarioAsksForTheGuestHasIt(t *testing.T) {
	only(t, map[Backend]error{Kernel: nil, Soft: errors.New("no namespaces"), Sim: nil})
	builders[Kernel].Lacks = func(s *Scenario) error {
		if s.Name == "lossless" {
			return errors.New("no BPF qdiscs")
		}
		return nil
	}
	for _, want := range []Backend{Auto, Kernel} {
		if c, err := Choose(t.Context(), &Scenario{Name: "plain"}, want, false); err != nil || c.Guest {
			t.Errorf("%s: chose %+v, %v", want, c, err)
		}
		if c, err := Choose(t.Context(), &Scenario{Name: "lossless"}, want, false); err != nil || c.Backend != Kernel || !c.Guest || !strings.Contains(c.Why, "no BPF qdiscs") {
			t.Errorf("%s: chose %+v, %v", want, c, err)
		}
	}
}
