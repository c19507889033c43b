package mixed

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// h1 (soft) ── leaf1 (soft) ── leaf2 (linux) ── h2 (rxe)
func TestFaultsInNodesGoToTheRoomThatMadeThem(t *testing.T) {
	testneed.Rxe(t)
	top, err := (&topo.Spec{Dumbbell: &topo.Dumbbell{Left: 1, Right: 1}}).Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range top.Nodes {
		n := &top.Nodes[i]
		n.Kind = map[string]topo.Kind{"h1": topo.SoftHost, "leaf1": topo.SoftSwitch}[n.Name]
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bed, err := linux.Acquire(ctx, fmt.Sprintf("x%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Build(ctx, Config{Plan: plan, Dilation: 1024, Testbed: bed})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	wait := func(what string, call func(done func(error))) {
		t.Helper()
		got := make(chan error, 1)
		call(func(err error) { got <- err })
		select {
		case err := <-got:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case <-ctx.Done():
			t.Fatalf("%s: no answer", what)
		}
	}
	for _, text := range []string{
		"kind: pfc-storm, at: ['h1:eth0']", "kind: ecn-thresholds, at: ['leaf1:*'], kmin: 1KB, kmax: 2KB, pmax: 1%", "kind: hash-seed, at: [leaf2], hash_seed: 7",
		"kind: buffer-shrink, at: [leaf2], buffer: 64KiB", "kind: reboot, at: [leaf1], down: 1s", "kind: reboot, at: [leaf2], down: 10us", "kind: route-late, at: [leaf1], delay: 1ms",
	} {
		var s faults.Spec
		if err := strict.Decode("test", []byte("{name: it, "+text+"}"), &s); err != nil {
			t.Fatal(err)
		}
		var a fabric.Applied
		wait(text+": apply", func(done func(error)) {
			f.Injector().Apply(s, func(got fabric.Applied, err error) { a = got; done(err) })
		})
		wait(text+": verify", a.Verify)
		wait(text+": heal", a.Heal)
		wait(text+": verify clean", a.VerifyClean)
		var hits uint64
		wait(text+": hits", func(done func(error)) { a.Hits(func(n uint64, err error) { hits = n; done(err) }) })
		if hits == 0 && (s.Kind == faults.PFCStorm || s.Kind == faults.Reboot) {
			t.Errorf("%s: no hits", text)
		}
	}
	both := faults.Spec{Name: "both", Kind: faults.HashSeed, At: []string{"leaf*"}}
	if err := f.Injector().Check(both); err == nil || !strings.Contains(err.Error(), "a fault of its own") {
		t.Errorf("one fault in nodes of both rooms: %v", err)
	}
}
