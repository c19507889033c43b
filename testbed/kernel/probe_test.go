//go:build linux

package kernel

import (
	"context"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
)

func TestEveryFeatureSaysWhatItIsForAndHowToGetIt(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Probe(context.Background()) {
		if f.For == "" || f.Cost == "" || f.Get == "" || f.Name == "" || seen[f.Name] {
			t.Errorf("%+v says too little, or comes twice", f)
		}
		if !f.Present && f.Why == "" {
			t.Errorf("%s is missing for no reason", f.Name)
		}
		seen[f.Name] = true
		t.Logf("%-16s %-6s %v %s", f.Name, f.Level, f.Present, f.Why)
	}
}

// What every Linux that we support has must be found, or the probe itself is broken.
func TestTheProbeFindsWhatIsThere(t *testing.T) {
	testneed.Root(t)
	for _, f := range Probe(context.Background()) {
		switch f.Name {
		case "root", "veth", "htb", "ebpf-tcx", "ecmp", "rps-default":
			if !f.Present {
				t.Errorf("%s was not found: %s", f.Name, f.Why)
			}
		}
	}
}

func TestAQdiscThatNoKernelHasIsMissing(t *testing.T) {
	testneed.Root(t)
	err := linux.Scratch(func() error {
		s, err := newScratch()
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		return tryQdisc("nosuchqdisc")(s)
	})
	if err == nil {
		t.Error("a qdisc of an invented kind was found")
	}
}

func TestAKernelThatRunsFabricsIsFoundCapable(t *testing.T) {
	testneed.Rxe(t)
	if err := Capable(context.Background()); err != nil {
		t.Error(err)
	}
	for _, f := range Probe(context.Background()) {
		if !f.Present && f.Name != "btf" && f.Name != "bpf-qdisc" {
			t.Errorf("%s is missing in the guest: %s", f.Name, f.Why)
		}
	}
}
