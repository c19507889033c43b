//go:build linux

package kernel

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// another is an endpoint with a queue pair of its own and everything else in common.
func (e *endpoint) another(ctx context.Context) (*endpoint, error) {
	n := &endpoint{loop: e.loop, nic: e.nic}
	var err error
	n.qp, err = await(ctx, e.loop, func(done func(verbs.QP, error)) {
		e.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, SignalAll: true}, done)
	})
	return n, err
}

// sendCNP sends h1 a CNP from h2's port.
func sendCNP(t *testing.T, f *Fabric, qpn uint32) {
	t.Helper()
	from, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	to, _ := f.Plan().Port(topo.PortRef{Node: "h1", Port: "eth0"})
	p := roce.NewCNP(qpn)
	p.Src, p.Dst, p.SrcMAC, p.DstMAC = roce.AddrFrom(from.Addr.Addr()), roce.AddrFrom(to.Addr.Addr()), roce.MAC(from.MAC), roce.MAC(from.PeerMAC)
	p.TrafficClass, p.TTL, p.SrcPort = 48<<2, 64, 0xc000
	frame, err := p.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := packetSocket(f.wiring.Node("h2"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, _ := f.wiring.Node("h2").Link("eth0")
	if err := unix.Sendto(int(file.Fd()), frame, 0, &unix.SockaddrLinklayer{Ifindex: l.Index, Protocol: 0x0008, Halen: 6}); err != nil {
		t.Fatal(err)
	}
}

// untilNIC waits until h1's DCQCN is as wanted.
func untilNIC(t *testing.T, f *Fabric, what string, is func(*agent.NICReading) bool) {
	t.Helper()
	var last *agent.NICReading
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		r, err := f.agent.Read()
		if err != nil {
			t.Fatal(err)
		}
		if last = r.Ports[f.numbers[topo.PortRef{Node: "h1", Port: "eth0"}]].NIC; is(last) {
			return
		}
	}
	t.Fatalf("%s: never; last seen: %+v", what, last)
}

// Queue pairs cost nothing before they are marked: of two thousand, the agent knows of those that had a CNP, and forgets them with their
// queue pairs. A CNP for a queue pair that isn't there is counted.
func TestQueuePairsCostNothingUntilACNPComesForThem(t *testing.T) {
	const pairs = 1000 // on each side: two thousand queue pairs
	f := build(t, star(2, 10*topo.Gbps, time.Microsecond), Config{
		Dilation: 1024, Log: slog.New(slog.DiscardHandler), // which hears a warning of each queue pair
		NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}},
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h1, h2 := f.hostNamed(t, "h1"), f.hostNamed(t, "h2")
	x, err := newTransfer(ctx, h1, h2, 4096, 1, patient, testRetries)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var near, far []*endpoint
	for range pairs - 1 {
		a, err := x.src.another(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b, err := x.dst.another(ctx)
		if err == nil {
			err = errors.Join(a.connect(ctx, b, patient, testRetries), b.connect(ctx, a, patient, testRetries))
		}
		if err != nil {
			t.Fatal(err)
		}
		near, far = append(near, a), append(far, b)
	}
	made := time.Since(began)
	untilNIC(t, f, "no queue pair is known", func(r *agent.NICReading) bool { return r.Known == 0 && r.Limited == 0 })
	began = time.Now()
	for i := range 6 { // two each: from a quarter of the line's rate it takes seconds to recover
		sendCNP(t, f, near[100*(i%3)].qp.Num())
	}
	untilNIC(t, f, "three queue pairs are slowed down", func(r *agent.NICReading) bool { return r.Limited == 3 && r.CNPHandled == 6 })
	t.Logf("%d queue pairs made in %v; three slowed down in %v", 2*pairs, made, time.Since(began))
	const lookups = 200
	began = time.Now()
	for i := range lookups {
		if _, ok, err := h1.rdma.QP(h1.devs[0].device, near[i].qp.Num()); err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
	}
	each := time.Since(began) / lookups
	began = time.Now()
	if all, err := h1.rdma.QPs(h1.devs[0].device); err != nil || len(all) < pairs {
		t.Fatalf("%d of %d queue pairs are listed: %v", len(all), pairs, err)
	}
	t.Logf("a look-up took %v, the whole list %v", each, time.Since(began))
	sendCNP(t, f, 0xfffff)
	untilNIC(t, f, "a CNP for nobody is counted", func(r *agent.NICReading) bool { return r.Unmapped == 1 && r.CNPIgnored == 1 && r.Known == 3 })
	for _, e := range append(near, far...) {
		if err := e.close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	untilNIC(t, f, "nothing is known of queue pairs that are gone", func(r *agent.NICReading) bool { return r.Known == 0 && r.Limited == 0 })
	if err := x.close(ctx); err != nil {
		t.Error(err)
	}
}

// A fabric that can pace no more queue pairs says so in its record, as it does of a least rate that is not the profile's.
func TestWhatDCQCNCannotDoHereIsWarnedOf(t *testing.T) {
	f := build(t, star(2, 10*topo.Gbps, time.Microsecond), Config{
		Dilation: 1024, flows: 1,
		NICs: fabric.NICSettings{NICModel: fabric.NICModel{DCQCN: &fabric.DCQCNSettings{Profile: "paper"}}},
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if w := strings.Join(f.Warnings(), "\n"); !strings.Contains(w, "rpg_min_rate of 1Mbps is") || strings.Contains(w, "line rate") {
		t.Errorf("before any CNP: %s", w)
	}
	for range 2 {
		x, err := newTransfer(ctx, f.hostNamed(t, "h1"), f.hostNamed(t, "h2"), 4096, 1, patient, testRetries)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 { // it takes seconds to recover
			sendCNP(t, f, x.src.qp.Num())
		}
		defer func() {
			if err := x.close(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	untilNIC(t, f, "two queue pairs are slowed down, and one has no flow", func(r *agent.NICReading) bool { return r.CNPHandled == 8 && r.NoFlow == 1 })
	collect(t, f)
	if w := strings.Join(f.Warnings(), "\n"); !strings.Contains(w, "h1:eth0: more than 1 queue pairs were below line rate at once") {
		t.Errorf("with a queue pair that can't be paced: %s", w)
	}
}
