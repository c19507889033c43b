//go:build linux

package soft

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// ownProcess gives some hosts a process of their own.
func ownProcess(hosts string) func(*Config) {
	return func(c *Config) {
		c.Settings.NICs.Override = []fabric.NICOverride{{Node: hosts, NICModel: fabric.NICModel{Process: true}}}
	}
}

func TestAHostModelIsTheSameInAnotherProcess(t *testing.T) {
	plan := starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps})
	for _, profile := range rnic.ProfileNames() {
		m := silicon.NewMaker(silicon.Config{
			Plan: plan, Seed: 7, Dilation: 16, Settings: fabric.Settings{NICs: fabric.NICSettings{NICModel: fabric.NICModel{Profile: profile, Priorities: fabric.PrioritySettings{"26": 4}}}},
		}, nil)
		model, err := m.Model(plan.Node("h1"))
		if err != nil {
			t.Fatal(err)
		}
		model.Known = m.Known()
		want := spec{Model: *model, Dilation: 16, Epoch: time.Second, CPU: -1, Ports: []specPort{{Index: 100, Room: 1 << 20}}}
		var b bytes.Buffer
		var got spec
		if err := errors.Join(gob.NewEncoder(&b).Encode(&want), gob.NewDecoder(&b).Decode(&got)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: sent\n%+v\ncame\n%+v", profile, want, got)
		}
	}
}

func TestHostsWithProcessesOfTheirOwnRunWorkloads(t *testing.T) {
	f := build(t, starPlan(t, 3, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 64, ownProcess("h[12]"))
	if f.Process("h1") == 0 || f.Process("h2") == 0 || f.Process("h3") != 0 || f.Process("h1") == f.Process("h2") {
		t.Fatalf("processes of h1, h2 and h3: %d, %d, %d", f.Process("h1"), f.Process("h2"), f.Process("h3"))
	}
	drive(t, f,
		workloads.Spec{Name: "all", Kind: workloads.AllPairs, Size: 64 << 10, Messages: 20, Depth: 2, QP: workloads.QPSpec{Timeout: &longTimeout}},
		workloads.Spec{Name: "read", Kind: workloads.Read, From: []string{"h1"}, To: []string{"h3"}, Size: 32 << 10, Messages: 20, Depth: 2, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if n := metric(t, f, "sent_pkts"); n < 6*20*16 {
		t.Errorf("the RNICs sent %v packets", n)
	}
	if n := metric(t, f, "out_of_seq_request"); n != 0 {
		t.Errorf("%v packets out of sequence", n)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !done(); {
		if time.Now().After(until) {
			t.Fatal("waited in vain for " + what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestAStoppedHostIsSilentAndGoesOn(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 64, ownProcess("h2"))
	pid := f.Process("h2")
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := f.KeepUp(); err == nil || !strings.Contains(err.Error(), "h2: its process") {
		t.Errorf("keeping up while h2 is stopped: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 4096, Messages: 50, QP: workloads.QPSpec{Timeout: &longTimeout}, StallTimeout: time.Minute})
	}()
	select {
	case <-done:
		t.Error("the workload is over though one of its hosts is stopped")
	case <-time.After(300 * time.Millisecond):
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestHowAHostKeptUpIsSaidOnceHoweverOftenItWasStopped(t *testing.T) {
	h := &away{name: "h2"}
	h.slain.Store(true) // so that it has nothing to add
	if slow, err := h.keepUp(); slow || err != nil {
		t.Errorf("a host that was never late: slow %v, %v", slow, err)
	}
	late, lost := errors.New("late"), errors.New("lost")
	for range 40 {
		h.keep(true, late)
	}
	if slow, err := h.keepUp(); !slow || err == nil || err.Error() != "late" {
		t.Errorf("a host that was late each time: slow %v, %q", slow, err)
	}
	for range 40 {
		h.keep(false, lost)
		h.keep(false, nil)
		h.keep(true, late)
	}
	if slow, err := h.keepUp(); slow || err == nil || err.Error() != "late\nlost" {
		t.Errorf("one that has lost something too: slow %v, %q", slow, err)
	}
}

func TestAKilledHostIsGoneAndTheFabricSaysSo(t *testing.T) {
	f := build(t, starPlan(t, 3, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 64, ownProcess("h2"))
	if err := unix.Kill(f.Process("h2"), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of h2", func() bool { return f.awayHost("h2").alive() != nil })
	if err := f.KeepUp(); err == nil || !strings.Contains(err.Error(), "h2: its process") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("keeping up after h2 was killed: %v", err)
	}
	// The others don't mind.
	drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h3"}, Size: 64 << 10, Messages: 20, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if _, err := f.Collect(context.Background()); err == nil {
		t.Error("reading every metric succeeds without h2")
	}
}

func TestAWorkloadOnAHostThatIsKilledEndsAndSaysWhy(t *testing.T) {
	for killed, other := range map[string]string{"h1": "h2", "h2": "h1"} { // the requester, and the responder
		f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 64, ownProcess("h[12]"))
		cfg := workloads.Config{Topology: f.Topology(), Seed: 1, ControlTimeout: f.Dilation().Fabric(time.Minute)}
		for _, h := range f.Hosts() {
			for _, n := range h.NICs() {
				cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
			}
		}
		// A flow that stood still for as long as this would outlast the test.
		e, err := workloads.NewEngine(cfg, []workloads.Spec{{
			Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 4096, Duration: time.Hour, StallTimeout: 24 * time.Hour, QP: workloads.QPSpec{Timeout: &longTimeout},
		}})
		if err != nil {
			t.Fatal(err)
		}
		reports := make(chan *workloads.Report, 1)
		e.Start(func(r *workloads.Report) { reports <- r })
		sent := func() (n float64) {
			samples, err := f.Collect(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range samples {
				if s.Name == "sent_pkts" {
					n += s.Value
				}
			}
			return n
		}
		await(t, "traffic", func() bool { return sent() > 50 })
		// Its peer is silent, so that it waits for something, and is not about to ask its process.
		if err := unix.Kill(f.Process(other), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := f.KeepUp(); err == nil || !strings.Contains(err.Error(), other+": its process") {
			t.Errorf("keeping up while %s is stopped: %v", other, err)
		}
		if err := errors.Join(unix.Kill(f.Process(killed), unix.SIGKILL), unix.Kill(f.Process(other), unix.SIGCONT)); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-reports:
			if w := r.Results[0]; w.Passed || !strings.Contains(w.Failure, "the host's process has ended") {
				t.Errorf("%s killed: passed %v, %q", killed, w.Passed, w.Failure)
			}
		case <-time.After(patience):
			t.Fatalf("%s killed: the workload is not over after %v", killed, patience)
		}
	}
}

func TestFaultsInNICsOfAnotherProcessComeIntoForceThereAreCountedAndHealed(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 256, ownProcess("h2"))
	in := f.Injector()
	wait := func(what string, call func(done func(error))) {
		t.Helper()
		got := make(chan error, 1)
		call(func(err error) { got <- err })
		select {
		case err := <-got:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: no answer", what)
		}
	}
	for _, text := range []string{
		"kind: ack-delay, delay: 20us", "kind: ack-coalesce, ack_every: 4, delay: 20us", "kind: pfc-storm, frequency: 10/ms, duty: 20%", "kind: slow-dma, rate: 50Gbps",
		"kind: pcie-downgrade, pcie: gen3 x8", "kind: mtt-thrash, entries: 1",
	} {
		var s faults.Spec
		if err := strict.Decode("test", []byte("{name: it, at: ['h2:eth0'], "+text+"}"), &s); err != nil {
			t.Fatal(err)
		}
		if err := in.Check(s); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var a fabric.Applied
		wait(text+": apply", func(done func(error)) { in.Apply(s, func(got fabric.Applied, err error) { a = got; done(err) }) })
		wait(text+": verify", a.Verify)
		drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 32 << 10, Messages: 20, Depth: 2, QP: workloads.QPSpec{Timeout: &longTimeout}})
		var hits, again uint64
		wait(text+": heal", a.Heal)
		wait(text+": hits", func(done func(error)) { a.Hits(func(n uint64, err error) { hits = n; done(err) }) })
		wait(text+": verify clean", a.VerifyClean)
		wait(text+": hits", func(done func(error)) { a.Hits(func(n uint64, err error) { again = n; done(err) }) })
		if hits == 0 || again != hits {
			t.Errorf("%s: %d hits, and %d later", text, hits, again)
		}
	}
	// One that is refused there leaves nothing.
	if err := in.Check(faults.Spec{Name: "x", Kind: faults.PFCStorm, At: []string{"h2:eth0"}, LinkKeys: faults.LinkKeys{Duty: 0.5}, NICKeys: faults.NICKeys{Frequency: 1}}); err == nil {
		t.Error("a storm that no frames can make was taken")
	}
}
