//go:build linux

package kernel

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/nldev"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// devices lists the rxe devices that the calling namespace sees.
func devices(t testing.TB) []nldev.Device {
	t.Helper()
	c, err := nldev.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInExclusiveModeEachHostHasItsDevicesAlone(t *testing.T) {
	f := build(t, star(3, 2*topo.Gbps, 10*time.Microsecond), Config{NICs: fabric.NICSettings{RDMA: fabric.RDMAExclusive}})
	if all := devices(t); len(all) > 0 {
		t.Errorf("the initial namespace sees %v", all)
	}
	for _, h := range f.hosts {
		all, err := h.rdma.Devices()
		if err != nil || len(all) != 1 || all[0].Name != f.DeviceName(h.nics[0].Port) {
			t.Errorf("%s sees %v, %v", h.name, all, err)
		}
	}
	before := collect(t, f)
	write(t, f, "h1", "h3", 1<<16, 2, 20, patient)
	if n := delta(t, before, collect(t, f), "rcvd_pkts", "h3"); n != 20*16 {
		t.Errorf("h3 received %v packets", n)
	}
}

func TestTheKernelSaysWhoTalksToWhom(t *testing.T) {
	f := build(t, star(2, 2*topo.Gbps, 10*time.Microsecond), Config{})
	ctx := context.Background()
	x, err := newTransfer(ctx, f.hostNamed(t, "h1"), f.hostNamed(t, "h2"), 4096, 1, patient, testRetries)
	if err != nil {
		t.Fatal(err)
	}
	h1 := f.hostNamed(t, "h1")
	qps, err := h1.rdma.QPs(h1.devs[0].device)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, q := range qps {
		if q.Num == x.src.qp.Num() {
			found = true
			const rc, rts = 2, 3
			if q.Remote != x.dst.qp.Num() || q.Type != rc || q.State != rts {
				t.Errorf("the kernel says %+v of a QP to %d", q, x.dst.qp.Num())
			}
			// It names the thread that made it.
			if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", q.PID)); err != nil {
				t.Errorf("the kernel says that %d made it: %v", q.PID, err)
			}
		}
	}
	if !found {
		t.Errorf("QP %d is not among %+v", x.src.qp.Num(), qps)
	}
	if err := x.close(ctx); err != nil {
		t.Error(err)
	}
}

// A keeper that died leaves devices behind; the next one of the name takes them away.
func TestDevicesOfADeadKeeperAreRemoved(t *testing.T) {
	testneed.Rxe(t)
	ctx := context.Background()
	p := planned(t, star(2, topo.Gbps, 0))
	name := fmt.Sprintf("dead%d", os.Getpid())
	bed, err := linux.Acquire(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	before := len(devices(t))
	w, err := bed.Wire(ctx, p, linux.WireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"h1", "h2"} {
		if _, err := addDevice(bed, w.Node(h), w.Node(h).Links()[0], false); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(devices(t)); n != before+2 {
		t.Fatalf("%d devices, expected 2 more than %d", n, before)
	}
	bed.Abandon()
	if bed, err = linux.Acquire(ctx, name); err != nil {
		t.Fatal(err)
	}
	if n := len(devices(t)); n != before {
		t.Errorf("%d devices are left of a dead keeper", n-before)
	}
	if err := bed.Close(ctx); err != nil {
		t.Error(err)
	}
}

// The cost of a device must not grow with the number of devices: namespaces are as many in every
// row. (In shared mode it grows with the number of namespaces, which is the kernel's doing.)
func BenchmarkDevices(b *testing.B) {
	testneed.Rxe(b)
	ctx := context.Background()
	const hosts = 8
	bed, err := linux.Acquire(ctx, fmt.Sprintf("bench%d", os.Getpid()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := bed.Close(ctx); err != nil {
			b.Error(err)
		}
	}()
	top, err := (&topo.Spec{Star: &topo.Star{Hosts: hosts}}).Build()
	if err != nil {
		b.Fatal(err)
	}
	p, err := top.Plan(topo.PlanOptions{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := bed.Wire(ctx, p, linux.WireOptions{})
	if err != nil {
		b.Fatal(err)
	}
	perDevice := map[int]time.Duration{}
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			var add, del time.Duration
			for b.Loop() {
				start := time.Now()
				var ids [][]string
				for _, h := range p.Topology.Hosts()[:n] {
					name, err := addDevice(bed, w.Node(h.Name), w.Node(h.Name).Links()[0], false)
					if err != nil {
						b.Fatal(err)
					}
					ids = append(ids, []string{name, h.Name})
				}
				add += time.Since(start)
				start = time.Now()
				if err := removeDevices(ctx, nil, ids); err != nil {
					b.Fatal(err)
				}
				del += time.Since(start)
			}
			each := time.Duration(b.N * n)
			b.ReportMetric(float64((add / each).Microseconds()), "add-µs/device")
			b.ReportMetric(float64((del / each).Microseconds()), "delete-µs/device")
			perDevice[n] = (add + del) / each
		})
	}
	if perDevice[8] > 3*perDevice[1] {
		b.Errorf("a device costs %v among 8 and %v alone: not linear", perDevice[8], perDevice[1])
	}
}
