//go:build linux

package soft

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

const patience = 30 * time.Second

var beds int

// build brings a plan up for a test.
func build(tb testing.TB, plan *topo.Plan, d loop.Dilation, change func(*Config)) *Fabric {
	tb.Helper()
	testneed.Root(tb)
	beds++
	bed, err := linux.Acquire(context.Background(), fmt.Sprintf("t%d-soft%d", os.Getpid(), beds))
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Config{Testbed: bed, Plan: plan, Dilation: d, Seed: 1}
	if change != nil {
		change(&cfg)
	}
	f, err := Build(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// drive runs workloads on a fabric and returns their results.
func drive(tb testing.TB, f *Fabric, specs ...workloads.Spec) *workloads.Report {
	tb.Helper()
	cfg := workloads.Config{Topology: f.Topology(), Seed: 1, ControlTimeout: f.Dilation().Fabric(time.Minute)}
	for _, h := range f.Hosts() {
		for _, n := range h.NICs() {
			cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
		}
	}
	e, err := workloads.NewEngine(cfg, specs)
	if err != nil {
		tb.Fatal(err)
	}
	reports := make(chan *workloads.Report, 1)
	e.Start(func(r *workloads.Report) { reports <- r })
	select {
	case r := <-reports:
		if r.Err != nil {
			tb.Error(r.Err)
		}
		for _, w := range r.Results {
			if !w.Passed {
				tb.Errorf("%+v", *w)
			}
		}
		return r
	case <-time.After(patience):
		tb.Fatalf("the workloads are not over after %v", patience)
	}
	return nil
}

func TestPingAndTCPGoThroughASoftSwitch(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps}), 1, nil)
	p, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	err := f.Wiring().Node("h1").Do(func() error {
		out, err := exec.Command("ping", "-c", "3", "-i", "0.05", "-W", "5", p.Addr.Addr().String()).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "ttl=63") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestVerifiedWritesGoThroughASoftSwitch(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 16, nil)
	r := drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 64 << 10, Messages: 500})
	for _, w := range r.Results {
		t.Logf("%.1f Gb/s of fabric time", w.GoodputBps/1e9)
	}
	if err := f.KeepUp(); err != nil {
		t.Log(err)
	}
}
