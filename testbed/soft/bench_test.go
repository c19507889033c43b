//go:build linux

package soft

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/topo"
)

func starPlan(tb testing.TB, hosts int, set topo.LinkSettings) *topo.Plan {
	tb.Helper()
	spec := topo.Spec{Star: &topo.Star{Hosts: hosts}, LinkSettings: set}
	t, err := spec.Build()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := t.Plan(topo.PlanOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// wiredBare makes the plan's links and nothing else.
func wiredBare(tb testing.TB, p *topo.Plan) *linux.Wiring {
	tb.Helper()
	testneed.Root(tb)
	bed, err := linux.Acquire(context.Background(), fmt.Sprintf("t%d-soft", os.Getpid()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := bed.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	all := func(*topo.Node) bool { return true }
	w, err := bed.Wire(context.Background(), p, linux.WireOptions{Bare: all, Unsteered: all})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// relay sends what comes in at one port out of the other.
type relay struct{ n *node }

func (r relay) Receive(f *link.Frame) { r.n.ports[1-f.Port].Send(f, r.n.loop.Now()) }

type counted struct {
	n    *node
	each func()
}

func (c counted) Receive(f *link.Frame) {
	if f.Kind == roce.KindRoCE && !f.View.ICRCOK() {
		panic("bad ICRC")
	}
	c.n.frames.Put(f)
	c.each()
}

// BenchmarkNodes counts frames through a node that relays, with their bytes made and checked at the ends, beside the pipe.
func BenchmarkNodes(b *testing.B) {
	plan := starPlan(b, 2, topo.LinkSettings{MTU: 4200, Rate: 100 * topo.Gbps})
	w := wiredBare(b, plan)
	yard := pipeRate(b, w, time.Second)
	epoch := time.Now()
	var nodes []*node
	for i, name := range []string{"h1", "leaf1", "h2"} {
		var ports []portConfig
		for _, p := range plan.Ports(name) {
			c := portConfig{plan: p, link: &plan.Topology.Links[p.Link], room: 4 << 20, open: func(o packet.Options) (*packet.Socket, error) { return packet.Open(w.Node(name), p.Ref.Port, o) }}
			if name == "leaf1" {
				c.number = func(a roce.Addr) uint32 { return uint32(a[15]) }
			}
			ports = append(ports, c)
		}
		n, err := newNode(name, topo.SoftHost, []int{0, 1, 0}[i], 1, epoch, ports)
		if err != nil {
			b.Fatal(err)
		}
		defer n.close()
		nodes = append(nodes, n)
	}
	h1, s1, h2 := nodes[0], nodes[1], nodes[2]
	for _, p := range s1.ports {
		p.to = relay{s1}
	}
	got, sent := 0, 0
	payload := make([]byte, 4096)
	done := make(chan struct{})
	send := func() {
		for sent < b.N && sent < got+pipeWindow {
			f := h1.frames.Get()
			f.Kind, f.TTL = roce.KindRoCE, 64
			f.Packet = roce.Packet{Src: roce.Addr4([4]byte{10, 0, 0, 1}), Dst: roce.Addr4([4]byte{10, 0, 0, 2}), Payload: payload, PayloadLen: 4096}
			f.Packet.BTH.Opcode = roce.RCRDMAWriteMiddle
			f.Len = int32(f.Packet.Len())
			h1.ports[0].Send(f, h1.loop.Now())
			sent++
		}
	}
	arrived := 0
	h2.ports[0].to = counted{h2, func() {
		if arrived++; arrived%16 == 0 || arrived == b.N { // an ACK
			f := h2.frames.Get()
			f.Kind, f.TTL = roce.KindRoCE, 64
			f.Packet = roce.Packet{Src: roce.Addr4([4]byte{10, 0, 0, 1}), Dst: roce.Addr4([4]byte{10, 0, 0, 2})}
			f.Packet.BTH.Opcode = roce.RCAcknowledge
			h2.ports[0].Send(f, h2.loop.Now())
		}
	}}
	h1.ports[0].to = counted{h1, func() {
		if got = min(got+16, b.N); got == b.N {
			close(done)
		}
		send()
	}}
	for _, n := range nodes {
		n.start()
	}
	b.SetBytes(4096)
	b.ResetTimer()
	h1.loop.Post(send)
	select {
	case <-done:
	case <-time.After(time.Minute):
		b.Fatalf("%d of %d came", got, b.N)
	}
	rate := float64(b.N) * 4096 * 8 / b.Elapsed().Seconds()
	b.ReportMetric(rate/1e9, "Gb/s")
	b.ReportMetric(yard/1e9, "pipe-Gb/s")
	b.ReportMetric(rate/yard, "of-pipe")
}
