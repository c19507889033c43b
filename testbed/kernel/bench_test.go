//go:build linux

package kernel

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/bareloop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// BenchmarkBringUp compares a whole fabric of 76 namespaces and 96 links (addresses, routes,
// tc trees, cables with their delay) with a bare netlink loop that makes 76 namespaces and 96
// veths and nothing else. Each round does both; medians count. RDMA devices are counted apart:
// their cost is the kernel's own, and grows with their number alone, which the smaller fabric
// shows.
//
//	go test -run '^$' -bench BringUp -benchtime 3x ./testbed/kernel
func BenchmarkBringUp(b *testing.B) {
	testneed.Rxe(b)
	for _, size := range [][3]int{{2, 2, 8}, {4, 8, 8}} {
		spec := topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: size[0], Leaves: size[1], HostsPerLeaf: size[2]}}
		t, err := spec.Build()
		if err != nil {
			b.Fatal(err)
		}
		p, err := t.Plan(topo.PlanOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("nodes=%d,links=%d", len(t.Nodes), len(t.Links)), func(b *testing.B) {
			var bare, up, down, add, del []time.Duration
			for i := range b.N {
				bare = append(bare, bareloop.Run(b, p))
				r := round(b, p, i)
				up, down, add, del = append(up, r.up), append(down, r.down), append(add, r.add), append(del, r.del)
			}
			loop, devices := bareloop.Median(bare), float64(len(t.NICs()))
			ms := func(d []time.Duration) float64 { return bareloop.Median(d).Seconds() * 1e3 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(loop.Seconds()*1e3, "bare-ms")
			b.ReportMetric(ms(up), "up-ms")
			b.ReportMetric(ms(down), "down-ms")
			b.ReportMetric(ms(up)/(loop.Seconds()*1e3), "up/bare")
			b.ReportMetric(ms(down)/(loop.Seconds()*1e3), "down/bare")
			b.ReportMetric(ms(add)/devices, "rxe-add-ms/device")
			b.ReportMetric(ms(del)/devices, "rxe-del-ms/device")
		})
	}
}

type times struct{ up, add, del, down time.Duration }

func round(b *testing.B, p *topo.Plan, i int) (r times) {
	ctx := context.Background()
	bareloop.Quiesce()
	start := time.Now()
	bed, err := linux.Acquire(ctx, fmt.Sprintf("b%d-%d", os.Getpid(), i))
	if err != nil {
		b.Fatal(err)
	}
	wired := start
	f, err := Build(ctx, Config{
		Testbed: bed, Plan: p, Dilation: 1024, NICs: fabric.NICSettings{RDMA: fabric.RDMAExclusive}, Log: slog.New(slog.DiscardHandler),
		Progress: func(stage string, done, _ int) {
			if stage == "rdma devices" && done == 0 {
				wired = time.Now()
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	r.up, r.add = wired.Sub(start), time.Since(wired)
	start = time.Now()
	for _, h := range slices.Backward(f.hosts) {
		if err := h.Close(ctx); err != nil {
			b.Fatal(err)
		}
	}
	f.hosts = nil
	r.del = time.Since(start)
	start = time.Now()
	if err := f.Close(ctx); err != nil {
		b.Fatal(err)
	}
	r.down = time.Since(start)
	return r
}
