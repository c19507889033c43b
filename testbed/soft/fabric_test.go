//go:build linux

package soft

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
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
		if a, ok := h.(*away); ok && a.alive() != nil {
			continue
		}
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

// metric is the sum of a metric over all labels.
func metric(t *testing.T, f *Fabric, name string) (sum float64) {
	t.Helper()
	samples, err := f.Collect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range samples {
		if s.Name == name {
			sum += s.Value
			found = true
		}
	}
	if !found {
		t.Fatalf("there is no metric %s", name)
	}
	return sum
}

func TestMetricsAreThoseOfTheRegistry(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps}), 1, nil)
	samples, err := f.Collect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if d, ok := metrics.Standard.Lookup(s.Name); !ok || len(d.Labels) != len(s.Labels) {
			t.Errorf("%s%v is not registered so: %+v", s.Name, s.Labels, d)
		}
	}
}

func TestAFabricReordersNothing(t *testing.T) {
	spec := topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 2}, LinkSettings: topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}}
	tp, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := tp.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := build(t, plan, 32, nil)
	drive(t, f, workloads.Spec{Name: "all", Kind: workloads.AllPairs, Size: 64 << 10, Messages: 200, Depth: 2, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if n := metric(t, f, "if_rx_packets"); n < 12*200*16 {
		t.Errorf("only %v packets came in anywhere", n)
	}
	for _, name := range []string{"out_of_seq_request", "retransmitted_packets", "socket_dropped", "socket_refused", "rx_icrc_encapsulated"} {
		if n := metric(t, f, name); n != 0 {
			t.Errorf("%s is %v, though nothing went wrong", name, n)
		}
	}
}

func TestVerifiedWritesGoThroughASoftSwitch(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps}), 16, nil)
	r := drive(t, f, workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 64 << 10, Messages: 500, QP: workloads.QPSpec{Timeout: &longTimeout}})
	if w := r.Results[0]; w.VerifiedBytes != 500*64<<10 {
		t.Errorf("%d bytes of %d were verified", w.VerifiedBytes, 500*64<<10)
	}
	if n := metric(t, f, "rcvd_pkts"); n < 500*16 {
		t.Errorf("the RNICs received %v packets", n)
	}
}

func TestPausesThatAreObeyedAreNoDrops(t *testing.T) {
	xoff := topo.Bytes(20_000)
	f := build(t, starPlan(t, 3, topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps}), 256, func(c *Config) {
		c.Settings.Switches.PFC = &fabric.PFCSettings{XOFF: xoff}
	})
	before := metric(t, f, "if_rx_dropped") // what a stack says of itself as it comes up
	incast := workloads.Spec{Name: "w", Kind: workloads.Write, From: []string{"h1", "h2"}, To: []string{"h3"}, Size: 64 << 10, Messages: 8, QP: workloads.QPSpec{Timeout: &longTimeout}}
	drive(t, f, incast)
	if n := metric(t, f, "rx_prio_pause"); n == 0 {
		t.Error("nobody was paused")
	}
	if n := metric(t, f, "if_rx_dropped") - before; n != 0 {
		t.Errorf("interfaces dropped %v frames", n)
	}
}

func TestALeastRateThatWallTimeCannotPaceIsRaisedAndWarnedOf(t *testing.T) {
	plan := starPlan(t, 2, topo.LinkSettings{Rate: 10 * topo.Gbps})
	f := build(t, plan, 1024, func(c *Config) { c.Settings.NICs.DCQCN = &fabric.DCQCNSettings{Profile: "paper"} })
	if w := f.Warnings(); len(w) != 1 || !strings.Contains(w[0], "rpg_min_rate of 1Mbps is") {
		t.Errorf("%q", w)
	}
}
