//go:build linux

package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// BenchmarkVerifiedWrites is verified goodput of RC WRITEs of one pair through a switch at MTU 4096 and dilation 1, on rxe with
// a linux-switch and on the software RNIC with a soft-switch, which take turns: with as many messages of 256 KiB outstanding as fill
// the way, and with the two that a workload has by default, where the way is empty at times. soft:rxe is the median of the turns' ratios.
func BenchmarkVerifiedWrites(b *testing.B) {
	testneed.Rxe(b)
	const turns, turn = 7, 500 * time.Millisecond
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Rate: 100 * topo.Gbps, MTU: 4200}}
	top, err := spec.Build()
	if err != nil {
		b.Fatal(err)
	}
	plan, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		b.Fatal(err)
	}
	acquire := func(name string) *linux.Testbed {
		bed, err := linux.Acquire(context.Background(), name)
		if err != nil {
			b.Fatal(err)
		}
		return bed
	}
	rxe, err := kernel.Build(context.Background(), kernel.Config{Testbed: acquire("goodput-rxe"), Plan: plan, Dilation: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer rxe.Close(context.Background())
	ours, err := soft.Build(context.Background(), soft.Config{Testbed: acquire("goodput-soft"), Plan: plan, Dilation: 1, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer ours.Close(context.Background())
	goodput := func(b *testing.B, f fabric.Fabric, depth int) float64 {
		timeout := 20
		cfg := workloads.Config{Topology: top, Seed: 1, ControlTimeout: time.Minute}
		for _, h := range f.Hosts() {
			for _, n := range h.NICs() {
				cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
			}
		}
		e, err := workloads.NewEngine(cfg, []workloads.Spec{{
			Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 256 << 10, Depth: depth, Duration: turn, QP: workloads.QPSpec{Timeout: &timeout},
		}})
		if err != nil {
			b.Fatal(err)
		}
		reports := make(chan *workloads.Report, 1)
		e.Start(func(r *workloads.Report) { reports <- r })
		select {
		case r := <-reports:
			if w := r.Results[0]; r.Passed() && w.VerifiedBytes == w.Bytes {
				return w.GoodputBps
			}
			b.Fatalf("%v %+v", r.Err, *r.Results[0])
		case <-time.After(time.Minute):
			b.Fatal("the workload is not over")
		}
		return 0
	}
	for _, depth := range []int{16, 2} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			for b.Loop() {
				var s, k, ratio []float64
				for range turns {
					a, c := goodput(b, ours, depth), goodput(b, rxe, depth)
					s, k, ratio = append(s, a), append(k, c), append(ratio, a/c)
				}
				for _, v := range [][]float64{s, k, ratio} {
					slices.Sort(v)
				}
				b.ReportMetric(s[turns/2]/1e6, "soft-Mb/s")
				b.ReportMetric(k[turns/2]/1e6, "rxe-Mb/s")
				b.ReportMetric(ratio[turns/2], "soft:rxe")
			}
		})
	}
}
