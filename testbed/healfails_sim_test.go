package testbed

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/sim"
)

// stubborn is a fabric whose faults come and don't go.
type stubborn struct {
	*sim.Fabric
	wont string // "heal": they say so; "clean": they say that they do
}

func (s *stubborn) Injector() fabric.Injector { return &stubbornInjector{s.Fabric.Injector(), s.wont} }

type stubbornInjector struct {
	fabric.Injector
	wont string
}

func (i *stubbornInjector) Apply(spec faults.Spec, done func(fabric.Applied, error)) {
	i.Injector.Apply(spec, func(a fabric.Applied, err error) {
		if err == nil {
			a = &stubbornFault{a, i.wont}
		}
		done(a, err)
	})
}

type stubbornFault struct {
	fabric.Applied
	wont string
}

func (f *stubbornFault) Heal(done func(error)) {
	if f.wont == "heal" {
		done(errors.New("leaf1:eth2: set qdisc: no such device"))
		return
	}
	done(nil)
}

func TestAHealThatFailsFailsTheRunAndWhatIsLeftIsFound(t *testing.T) {
	for wont, want := range map[string]string{
		"heal":  "a: IT COULD NOT BE HEALED: leaf1:eth2: set qdisc: no such device",
		"clean": "a: SOMETHING OF IT IS LEFT after healing: fault a: ",
	} {
		buildSim(t, func(ctx context.Context, c sim.Config) (fabric.Fabric, error) {
			f, err := sim.Build(ctx, c)
			if err != nil {
				return nil, err
			}
			return &stubborn{f, wont}, nil
		})
		out, r := runInSim(t, t.Context(), triggered+"  - {name: a, kind: loss, probability: 2%, at: [leaf1-spine1], schedule: {for: 1ms}}\n", RunOptions{})
		got := strings.Join(out.Summary.Problems, "\n")
		if out.Passed() || !strings.Contains(got, want) || out.Summary.Faults[0].Healed {
			t.Errorf("verdict %v, problems\n%s\nwant %q", out.Summary.Verdict, got, want)
		}
		events := strings.Join(eventsOf(t, r), "\n")
		if !strings.Contains(events, "a: failed (") {
			t.Errorf("the events don't say it:\n%s", events)
		}
	}
}
