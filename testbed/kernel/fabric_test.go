//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// Exponents of local ACK timeouts, fabric time. patient is 67 ms, 4.3 s of wall time: where
// nothing is lost, an emulated machine that is busy elsewhere must not make a timeout. hasty is
// 4.2 ms, 268 ms of wall time: where the last packet of a message is lost, only the timer helps.
const (
	patient     = 14
	hasty       = 10
	testRetries = 6
)

const testDilation loop.Dilation = 64

var testbeds int

// build brings a topology up. Everything is gone again at the test's end.
func build(t testing.TB, spec topo.Spec, cfg Config) *Fabric {
	t.Helper()
	testneed.Rxe(t)
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Plan, err = top.Plan(spec.PlanOptions()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	testbeds++
	if cfg.Testbed, err = linux.Acquire(ctx, fmt.Sprintf("k%d-%d", os.Getpid(), testbeds)); err != nil {
		t.Fatal(err)
	}
	if cfg.Dilation == 0 {
		cfg.Dilation = testDilation
	}
	f, err := Build(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// star is hosts around one switch, links of a rate and a delay of fabric time.
//
//	host1 ── leaf1 ── host2 …
func star(hosts int, rate topo.Rate, delay time.Duration) topo.Spec {
	return topo.Spec{Star: &topo.Star{Hosts: hosts}, LinkSettings: topo.LinkSettings{Rate: rate, Delay: &delay}}
}

func (f *Fabric) hostNamed(t testing.TB, name string) *host {
	t.Helper()
	h, ok := f.Host(name).(*host)
	if !ok {
		t.Fatalf("no host %s", name)
	}
	return h
}

// write sends messages from one host to another and fails the test if they don't all arrive.
func write(t testing.TB, f *Fabric, from, to string, size, depth, count int, timeout uint8) (took time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x, err := newTransfer(ctx, f.hostNamed(t, from), f.hostNamed(t, to), size, depth, timeout, testRetries)
	if err != nil {
		t.Fatal(err)
	}
	n, took, err := x.run(ctx, count, 0)
	if err != nil || n != count {
		t.Fatalf("%d of %d messages arrived: %v", n, count, err)
	}
	if err := x.close(ctx); err != nil {
		t.Error(err)
	}
	return took
}

// readings are one collection, by series.
type readings map[string]float64

func collect(t testing.TB, f *Fabric) readings {
	t.Helper()
	samples, err := f.Collect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := metrics.Standard.Check(samples); err != nil {
		t.Fatal(err)
	}
	r := readings{}
	for _, s := range samples {
		r[metrics.Standard.Key(s)] = s.Value
	}
	return r
}

func (r readings) of(t testing.TB, name, node, port string, slot ...string) float64 {
	t.Helper()
	key := metrics.Standard.Key(metrics.Sample{Name: name, Labels: append([]string{node, port}, slot...)})
	v, ok := r[key]
	if !ok {
		t.Fatalf("no reading %s", key)
	}
	return v
}

func TestMessagesArriveAndNothingIsCountedAsWrong(t *testing.T) {
	f := build(t, star(2, 10*topo.Gbps, time.Microsecond), Config{})
	before := collect(t, f)
	const size, count = 1 << 16, 200
	write(t, f, "h1", "h2", size, 4, count, patient)
	after := collect(t, f)
	delta := func(name, node string) float64 {
		return after.of(t, name, node, "eth0") - before.of(t, name, node, "eth0")
	}
	if sent, got := delta("sent_pkts", "h1"), delta("rcvd_pkts", "h2"); sent != size/4096*count || got != sent {
		t.Errorf("%v packets sent and %v received of %d", sent, got, size/4096*count)
	}
	for _, name := range []string{"out_of_seq_request", "duplicate_request", "rcvd_seq_err", "completer_retry_err"} {
		for _, h := range []string{"h1", "h2"} {
			if n := delta(name, h); n != 0 {
				t.Errorf("%s: %s is %v with nothing wrong", h, name, n)
			}
		}
	}
	// Not KeepUp: how late loops and ports are is up to who else is on this machine.
	if err := errors.Join(linux.NoSoftnetDropsSince(f.base.softnet), f.localDrops()); err != nil {
		t.Error(err)
	}
	if w := f.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
}
