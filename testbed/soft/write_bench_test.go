//go:build linux

package soft

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// BenchmarkWrite is verified goodput of RC WRITEs of one pair through a soft-switch at MTU 4096 and dilation 1, beside what the
// pipe carries over links of the same shape. The two take turns, so that what else the machine does bears on both; of-pipe is
// the median of the turns' ratios. cpu-us is processor time a packet, both ends, switch and kernel.
func BenchmarkWrite(b *testing.B) {
	const turns, turn = 10, 300 * time.Millisecond
	plan := starPlan(b, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps})
	w := wiredBare(b, plan)
	f := build(b, plan, 1, nil)
	for b.Loop() {
		var pipe, write, ratio []float64
		var pipeCPU, writeCPU []float64
		for range turns {
			cpu := processorTime(b)
			p := pipeRate(b, w, turn)
			pipe, pipeCPU = append(pipe, p), append(pipeCPU, (processorTime(b)-cpu)/(p*turn.Seconds()/8/4096))
			cpu = processorTime(b)
			r := drive(b, f, workloads.Spec{
				Name: "w", Kind: workloads.Write, From: []string{"h1"}, To: []string{"h2"}, Size: 1 << 20, Duration: turn,
				QP: workloads.QPSpec{Timeout: &longTimeout},
			}).Results[0]
			if r.VerifiedBytes != r.Bytes || r.Bytes == 0 {
				b.Fatalf("%d of %d bytes were verified", r.VerifiedBytes, r.Bytes)
			}
			write, writeCPU = append(write, r.GoodputBps), append(writeCPU, (processorTime(b)-cpu)/(float64(r.Bytes)/4096))
			ratio = append(ratio, r.GoodputBps/p)
		}
		b.ReportMetric(median(write)/1e9, "Gb/s")
		b.ReportMetric(median(pipe)/1e9, "pipe-Gb/s")
		b.ReportMetric(median(ratio), "of-pipe")
		b.ReportMetric(median(writeCPU), "cpu-us")
		b.ReportMetric(median(pipeCPU), "pipe-cpu-us")
	}
}

// longTimeout is 4.096 µs × 2^20: at dilation 1 what a busy machine makes wait isn't lost.
var longTimeout = 20

// processorTime is what this process has used so far, in µs.
func processorTime(tb testing.TB) float64 {
	tb.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
