//go:build linux

package kernel

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/bareloop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// BenchmarkBringUp compares a fabric of 76 namespaces and 96 links (addresses, routes, the tree
// of every port, cables with their programs and delay lines, everything but RDMA) with a bare
// netlink loop that makes 76 namespaces and 96 veths and nothing else. Each round does both; the
// medians count. The project's bound is a factor of 2 up, and as much again down.
//
// Where the kernel has no netem, links have no delay and cables no delay lines.
//
//	go test -run '^$' -bench BringUp -benchtime 10x ./testbed/kernel
func BenchmarkBringUp(b *testing.B) {
	testneed.Root(b)
	delay := time.Duration(0)
	spec := topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 4, Leaves: 8, HostsPerLeaf: 8}, LinkSettings: topo.LinkSettings{Delay: &delay}}
	top, err := spec.Build()
	if err != nil {
		b.Fatal(err)
	}
	p, err := top.Plan(spec.PlanOptions())
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	var bare, up, down []time.Duration
	for i := range b.N {
		bare = append(bare, bareloop.Run(b, p))
		bareloop.Quiesce()
		start := time.Now()
		bed, err := linux.Acquire(ctx, fmt.Sprintf("bench%d-%d", os.Getpid(), i))
		if err != nil {
			b.Fatal(err)
		}
		f := &Fabric{cfg: Config{Testbed: bed, Plan: p, Dilation: 1024, Progress: func(string, int, int) {}}, nodes: map[string]*node{}}
		err = f.lay(ctx)
		up = append(up, time.Since(start))
		start = time.Now()
		if cerr := f.Close(ctx); cerr != nil || err != nil {
			b.Fatal(err, cerr)
		}
		down = append(down, time.Since(start))
	}
	m := bareloop.Median(bare)
	b.ReportMetric(m.Seconds()*1e3, "bare-ms")
	b.ReportMetric(bareloop.Median(up).Seconds()*1e3, "up-ms")
	b.ReportMetric(bareloop.Median(down).Seconds()*1e3, "down-ms")
	b.ReportMetric(bareloop.Median(up).Seconds()/m.Seconds(), "up/bare")
	b.ReportMetric(bareloop.Median(down).Seconds()/m.Seconds(), "down/bare")
	b.ReportMetric(0, "ns/op")
}
