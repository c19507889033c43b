package bench

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// sizes runs a benchmark on fat trees of 54 and 1,024 hosts: in exact order, by windows on one core,
// and on two.
func sizes(b *testing.B, bench func(b *testing.B, k int, opts ...loop.Option)) {
	for _, k := range []int{6, 16} {
		for _, mode := range []struct {
			name string
			opts []loop.Option
		}{
			{"workers=1", []loop.Option{loop.Workers(1)}},
			{"workers=2", []loop.Option{loop.Workers(2), loop.Partition(pods(k, 2))}},
			{"event-by-event", nil},
		} {
			b.Run(fmt.Sprintf("hosts=%d/%s", k*k*k/4, mode.name), func(b *testing.B) { bench(b, k, mode.opts...) })
		}
	}
}

// running is a fabric under load.
type running interface {
	data() uint64 // packets that arrived so far
	virtual() *loop.Virtual
	frames() uint64
}

func (f *fabric) virtual() *loop.Virtual { return f.v }

// warm is for how long a fabric runs before it is measured, slice how long each measurement is. The
// figure is the fastest of the slices: on a machine with others on it, the others make the rest. Per
// second of processor time they disturb it less; what they do to the caches stays.
const (
	warm  = 300 * time.Microsecond
	slice = 20 * time.Microsecond
)

// measure counts data packets a second of wall time. One operation is a slice.
func measure(b *testing.B, f running) (perCPU float64) {
	v := f.virtual()
	v.RunUntil(loop.Time(warm))
	runtime.GC()
	var best, bestCPU float64
	packets, events, frames := f.data(), v.Handled(), f.frames()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		n, start, cpu := f.data(), time.Now(), cpuTime()
		v.RunUntil(v.Now().Add(slice))
		n = f.data() - n
		best = max(best, float64(n)/time.Since(start).Seconds())
		bestCPU = max(bestCPU, float64(n)/(cpuTime()-cpu).Seconds())
	}
	b.StopTimer()
	packets, events = f.data()-packets, v.Handled()-events
	b.ReportMetric(bestCPU, "packets/cpu-s")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(best, "packets/s")
	b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "mean-packets/s")
	b.ReportMetric(float64(events)/float64(packets), "events/packet")
	b.ReportMetric(1e9/bestCPU/float64(events)*float64(packets), "cpu-ns/event")
	b.ReportMetric(float64(f.frames()-frames), "new-frames")
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
	return bestCPU
}

// cpuTime is what the process has had of all processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
