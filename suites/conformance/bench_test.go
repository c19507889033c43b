//go:build linux

package conformance_test

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/kernel"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// What the provider costs: the same traffic by it and by perftest, on the same devices, in
// turns, and the medians, so that a machine which others use as well says something. In a guest:
//
//	TEST_FLAGS='-test.run=^$ -test.bench=. -test.benchtime=2500x' scripts/suites.sh kernel ./suites/conformance

// turns is how often the two take turns.
const turns = 5

// inTurns measures ours and theirs by turns and returns the medians.
func inTurns(b *testing.B, ours, theirs func(n int) float64) (o, t float64) {
	b.Helper()
	b.ReportAllocs()
	var os, ts []float64
	n := max(b.N/turns, 1)
	b.ResetTimer()
	for range turns {
		os = append(os, ours(n))
		b.StopTimer()
		ts = append(ts, theirs(max(n, 100)))
		b.StartTimer()
	}
	b.StopTimer()
	slices.Sort(os)
	slices.Sort(ts)
	return os[turns/2], ts[turns/2]
}

// BenchmarkWriteGoodput sends WRITEs of 64 KiB, 64 outstanding. perftest:ratio is the
// provider's goodput over ib_write_bw's.
func BenchmarkWriteGoodput(b *testing.B) {
	f := benchFabric(b)
	const size, depth = 64 << 10, 64
	from, to := newEnd(b, f, 0, size), newEnd(b, f, 1, size)
	join(b, from, to)
	wr := verbs.SendWR{Op: verbs.OpRDMAWrite, RemoteAddr: to.mr.Addr(), RKey: to.mr.RKey(),
		SGL: []verbs.SGE{{Addr: from.mr.Addr(), Length: size, LKey: from.mr.LKey()}}}
	ours, theirs := inTurns(b,
		func(n int) float64 { return float64(n) * size / from.stream(b, wr, n, depth).Seconds() / 1e6 },
		func(n int) float64 {
			return perftest(b, f, "ib_write_bw", 3, "-s", strconv.Itoa(size), "-n", strconv.Itoa(n), "-t", strconv.Itoa(depth)) * 1.048576 // it counts in MiB
		})
	b.ReportMetric(ours, "MB/s")
	b.ReportMetric(theirs, "perftest-MB/s")
	b.ReportMetric(ours/theirs, "perftest:ratio")
}

// BenchmarkSendLatency sends 8 bytes to and fro, each side woken by its CQ's event, and reports
// half of the round trip. perftest:ratio is over ib_write_lat's, which spins on memory on both
// sides and so wakes nobody.
func BenchmarkSendLatency(b *testing.B) {
	f := benchFabric(b)
	from, to := newEnd(b, f, 0, 4096), newEnd(b, f, 1, 4096)
	join(b, from, to)
	callErr(b, to.loop, func(done func(error)) { done(to.qp.PostRecv(to.recv()...)) })
	callErr(b, from.loop, func(done func(error)) { done(from.qp.PostRecv(from.recv()...)) })
	ours, theirs := inTurns(b,
		func(n int) float64 { return pingPong(b, from, to, n).Seconds() * 1e6 / float64(n) / 2 },
		func(n int) float64 { return perftest(b, f, "ib_write_lat", 5, "-s", "8", "-n", strconv.Itoa(n)) })
	b.ReportMetric(ours, "µs")
	b.ReportMetric(theirs, "perftest-µs")
	b.ReportMetric(ours/theirs, "perftest:ratio")
}

func benchFabric(b *testing.B) *kernel.Fabric {
	testneed.Rxe(b)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	f, err := newFabric(ctx, 1, topo.IPv4)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return f
}

// perftest runs a program of that suite between the two devices and returns a column of its
// result line, counted from 0.
func perftest(b *testing.B, f *kernel.Fabric, program string, column int, args ...string) float64 {
	b.Helper()
	device := func(i int) []string {
		nic := f.Hosts()[i].NICs()[0]
		return append([]string{"-d", f.DeviceName(nic.Port), "-x", strconv.Itoa(nic.GIDIndex), "-F", "-u", "20"}, args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	server := exec.CommandContext(ctx, program, device(1)...)
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	var out []byte
	var err error
	for range 50 { // the server takes a moment to listen
		if out, err = exec.CommandContext(ctx, program, append(device(0), "127.0.0.1")...).CombinedOutput(); err == nil {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if err != nil {
		_ = server.Process.Kill()
	}
	if werr := server.Wait(); err != nil || werr != nil {
		b.Fatalf("%s: client %v, server %v\n%s\n%s", program, err, werr, out, said.String())
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > column && fields[0] == args[1] {
			v, err := strconv.ParseFloat(fields[column], 64)
			if err != nil {
				b.Fatalf("%s: %v in %q", program, err, line)
			}
			return v
		}
	}
	b.Fatalf("%s: no result line for %s bytes in\n%s", program, args[1], out)
	return 0
}
