//go:build linux

package kernel

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/bareloop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
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
	exclusive(b)
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

// exclusive puts the RDMA subsystem into exclusive mode for the benchmark: shared mode costs
// devices times namespaces. The kernel refuses while any namespace of before is still on its way out.
func exclusive(b *testing.B) {
	c, err := nldev.Open()
	if err != nil {
		b.Fatal(err)
	}
	set := func(shared bool) {
		var err error
		for until := time.Now().Add(time.Minute); time.Now().Before(until); <-time.After(50 * time.Millisecond) {
			if err = c.SetShared(shared); err == nil {
				return
			}
		}
		b.Fatalf("set the RDMA namespace mode: %v", err)
	}
	was, err := c.Shared()
	if err != nil {
		b.Fatal(err)
	}
	if was {
		set(false)
		b.Cleanup(func() { set(true); c.Close() })
	}
}

// stopwatch is a log that keeps how long the testbed took to remove things, by kind.
type stopwatch map[string]time.Duration

func (s stopwatch) Handle(_ context.Context, r slog.Record) error {
	kind, took := "", time.Duration(0)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "kind":
			kind = a.Value.String()
		case "took":
			took = a.Value.Duration()
		}
		return true
	})
	s[kind] += took
	return nil
}

func (s stopwatch) Enabled(context.Context, slog.Level) bool { return true }
func (s stopwatch) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s stopwatch) WithGroup(string) slog.Handler            { return s }

type times struct{ up, add, del, down time.Duration }

func round(b *testing.B, p *topo.Plan, i int) (r times) {
	ctx := context.Background()
	bareloop.Quiesce()
	start := time.Now()
	bed, err := linux.Acquire(ctx, fmt.Sprintf("b%d-%d", os.Getpid(), i))
	if err != nil {
		b.Fatal(err)
	}
	removed := stopwatch{}
	bed.SetLog(slog.New(removed))
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
	if err := f.Close(ctx); err != nil {
		b.Fatal(err)
	}
	r.del = removed[kindRxe]
	r.down = time.Since(start) - r.del
	return r
}
