//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

//	spine1  spine2
//	  │ ╲  ╱ │
//
// leaf1 ─┴──╳───┴─ leaf2, a host on each
const softBed = `apiVersion: rocebed/v1
name: softbed
backend: soft
dilation: 1024
topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 1}
  rate: 10Gbps
`

// upOnSoft brings a testbed of software nodes up on this machine; it is gone after the test.
func upOnSoft(t *testing.T, name string) (st keeper.Status) {
	t.Helper()
	testneed.Root(t)
	path := filepath.Join(t.TempDir(), "softbed.yaml")
	if err := os.WriteFile(path, []byte(softBed), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := linux.Clean(context.Background(), linux.CleanOptions{Names: []string{name}, All: true}); err != nil {
			t.Error(err)
		}
		_, _ = unix.Wait4(st.Keeper, nil, 0, nil) // in a command it would be init's child
	})
	code, out, errs := invoke(t, "up", "--json", "--name", name, path)
	if code != 0 {
		t.Fatalf("up: exit code %d, stderr:\n%s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatalf("up printed %q: %v", out, err)
	}
	return st
}

// faultsIn runs a fault command with --json.
func faultsIn(t *testing.T, args ...string) []fabric.FaultState {
	t.Helper()
	code, out, errs := invoke(t, append([]string{"fault", args[0], "--json"}, args[1:]...)...)
	var states keeper.FaultStates
	if err := json.Unmarshal([]byte(out), &states); code != 0 || err != nil {
		t.Fatalf("fault %q: exit code %d, %v, stderr:\n%s", args, code, err, errs)
	}
	return states.Faults
}

// awaitFault waits until a fault is as wanted.
func awaitFault(t *testing.T, bed, name string, as func(fabric.FaultState) bool) fabric.FaultState {
	t.Helper()
	var last []fabric.FaultState
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); <-time.After(20 * time.Millisecond) {
		last = faultsIn(t, "list", bed)
		if i := slices.IndexFunc(last, func(f fabric.FaultState) bool { return f.Name == name }); i >= 0 && as(last[i]) {
			return last[i]
		}
	}
	t.Fatalf("fault %s isn't as wanted; last seen: %+v", name, last)
	return fabric.FaultState{}
}

func inState(state string) func(fabric.FaultState) bool {
	return func(f fabric.FaultState) bool { return f.State == state }
}

func TestFaultsComeAndGoOnATestbedThatIsUp(t *testing.T) {
	name := fmt.Sprintf("f%d", os.Getpid())
	st := upOnSoft(t, name)
	if code, out, _ := invoke(t, "fault", "list", name); code != 0 || !strings.Contains(out, "no faults") {
		t.Errorf("list: exit code %d, %q", code, out)
	}
	added := faultsIn(t, "add", name, "--kind", "loss", "--fault", "gone", "--at", "leaf1-spine*", "--direction", "egress", "--set", "probability=100%")
	if len(added) != 1 || added[0].State != fabric.FaultInForce || !added[0].Verified || added[0].Since == nil {
		t.Fatalf("added: %+v", added)
	}
	file := filepath.Join(t.TempDir(), "more.yaml")
	if err := os.WriteFile(file, []byte(`# a list
- {name: cut, kind: down, at: [leaf1-spine2], schedule: {for: 100us}}
- {kind: delay, delay: 20us, at: [tier=spine], schedule: {when: fault cut healed}}
- {name: sent, kind: duplicate, probability: 100%, at: [leaf1-spine1], schedule: {when: first ip at h1}}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	if added := faultsIn(t, "add", name, file); len(added) != 3 || added[2].Name != "sent" || added[2].State != fabric.FaultWaiting {
		t.Fatalf("added: %+v", added)
	}
	awaitFault(t, name, "delay", inState(fabric.FaultInForce))
	if code, out, errs := invoke(t, "status", name); code != 0 || !strings.Contains(out, "\ngone ") || !strings.Contains(out, "\ndelay ") || strings.Contains(out, "\ncut ") {
		t.Errorf("status: exit code %d, %q, %q; want the faults that are there", code, out, errs)
	}

	i := slices.IndexFunc(st.Nodes, func(n keeper.NodeStatus) bool { return n.Name == "h2" })
	addr, _, _ := strings.Cut(st.Nodes[i].Ports[0].Addr, "/")
	if b, err := on(name, "h1", "bash", "-c", "for i in 1 2 3; do echo x >/dev/udp/"+addr+"/9; done").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	awaitFault(t, name, "sent", inState(fabric.FaultInForce))
	awaitFault(t, name, "gone", func(f fabric.FaultState) bool { return f.Hits > 0 })

	healed := faultsIn(t, "heal", "--name", name, "gone")
	if len(healed) != 1 || healed[0].State != fabric.FaultHealed || healed[0].Hits == 0 {
		t.Errorf("healed: %+v", healed)
	}
	for _, f := range faultsIn(t, "heal", "--name", name, "--all") {
		if f.State != fabric.FaultHealed || !f.Verified {
			t.Errorf("after all were healed: %+v", f)
		}
	}
	faultsIn(t, "add", name, "--kind", "loss", "--fault", "gone", "--at", "h1:eth0", "--set", "probability=1%") // its name is free again
	if code, _, errs := invoke(t, "down", name); code != 0 {
		t.Errorf("down with a fault in force: exit code %d, %q", code, errs)
	}
}

func TestAFaultThatATestbedCannotHaveIsRefusedWithItsPlace(t *testing.T) {
	name := fmt.Sprintf("f%d-no", os.Getpid())
	upOnSoft(t, name)
	faultsIn(t, "add", name, "--kind", "down", "--at", "leaf1-spine1")
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[string][]string{
		`f.yaml:2:4: "los" is no kind of fault`:                  {"add", name, write("- {name: a, kind: down, at: [leaf2]}\n- {kind: los, at: [leaf1]}\n")},
		`unknown key "probabilty" (did you mean "probability"?)`: {"add", name, "--kind", "loss", "--at", "leaf1", "--set", "probabilty=1%"},
		`"h9" selects no port and no link`:                       {"add", name, "--kind", "down", "--at", "h9"},
		`down and flap both set the link's carrier`:              {"add", name, "--kind", "flap", "--at", "leaf1", "--set", "period=1ms", "--set", "down=100us"},
		`there is a fault called "down", which is not over`:      {"add", name, "--kind", "down", "--at", "leaf2", "--fault", "down"},
		`there is no workload "w"`:                               {"add", name, "--kind", "down", "--at", "leaf2", "--when", "workload w started"},
		`there is no fault "dwn" (did you mean "down"?)`:         {"heal", "--name", name, "dwn"},
		`a file or --kind, not both`:                             {"add", name, "x.yaml", "--kind", "loss"},
		`name faults, or give --all`:                             {"heal", "--name", name},
		`which fault? Name a file, or give --kind`:               {"add", "--name", name},
		`--set "probability": write KEY=VALUE`:                   {"add", name, "--kind", "loss", "--set", "probability"},
		`there is no such testbed`:                               {"list", "no-such-testbed"},
		`metric sent_pkts has no label "nod"; it has node`:       {"add", name, "--kind", "down", "--at", "leaf2", "--when", "metric sent_pkts{nod=h1} > 3"},
	} {
		if code, _, errs := invoke(t, append([]string{"fault"}, args...)...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, stderr %q; want %q", args, code, errs, want)
		}
	}
	if all := faultsIn(t, "list", name); len(all) != 1 || all[0].State != fabric.FaultInForce {
		t.Errorf("what was refused has left its mark: %+v", all)
	}
	if code, _, errs := invoke(t, "down", name); code != 0 {
		t.Errorf("down: exit code %d, %q", code, errs)
	}
}

func TestFaultsOfAKeeperThatWasKilledAreGoneOnceCleaned(t *testing.T) {
	name := fmt.Sprintf("f%d-killed", os.Getpid())
	st := upOnSoft(t, name)
	before := testleak.LookAtMachine()
	faultsIn(t, "add", name, "--kind", "loss", "--at", "leaf1", "--set", "probability=10%")
	faultsIn(t, "add", name, "--kind", "flap", "--at", "leaf1-spine1", "--set", "period=200us", "--set", "down=100us")
	faultsIn(t, "add", name, "--kind", "udp-traffic", "--at", "h1:eth0", "--set", "to=['h2:eth0']", "--set", "rate=100Mbps")
	faultsIn(t, "add", name, "--kind", "delay", "--at", "leaf2", "--set", "delay=10us", "--when", "first cnp at h2")
	if err := unix.Kill(st.Keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Wait4(st.Keeper, nil, 0, nil) // until then it is living
	if code, _, errs := invoke(t, "clean", name); code != 0 {
		t.Errorf("clean: exit code %d, %s", code, errs)
	}
	if _, err := os.Stat(linux.StateDir(name)); err == nil {
		t.Error("the testbed's folder is still there")
	}
	if left := before.Left(testleak.LookAtMachine(), "NO_SUCH=mark"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
