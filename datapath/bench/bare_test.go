package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// The bare fabric is what no emulation can be faster than: hosts that send a packet whenever the
// line is free and count an ACK for every fourth, switches that forward by destination and flow.
// There are no queues, counters, pauses or transport; the frames, wires, lines and events are real.

type bareSwitch struct {
	lines  []link.Line
	wires  []wire
	routes [][]uint16
	seed   uint32
	node   *loop.Node
}

func (s *bareSwitch) Receive(f *link.Frame) {
	ways := s.routes[f.Dst]
	out := ways[0]
	if n := uint32(len(ways)); n > 1 {
		h := (f.Flow ^ s.seed) * 0x9e3779b1
		out = ways[uint64(h)*uint64(n)>>32]
	}
	at := s.lines[out].Send(s.node.Now(), f.Len)
	s.wires[out].Send(f, at)
}

type bareHost struct {
	node     *loop.Node
	line     link.Line
	wire     wire
	pool     *link.Pool
	self     uint32
	peer     uint32
	flow     uint32
	tick     loop.Timer
	sent     uint64
	received uint64
	acked    uint64
}

const (
	dataLen = 4096 + 58 + 16
	ackLen  = 62
)

func (h *bareHost) emit(dst uint32, n int32, tag uint8) loop.Time {
	f := h.pool.Get()
	f.Len, f.Dst, f.Flow, f.Tag = n, dst, h.flow+uint32(h.sent)*0x85ebca6b, tag // sprayed, so that no queue grows
	at := h.line.Send(h.node.Now(), n)
	h.wire.Send(f, at)
	return at
}

func (h *bareHost) next() {
	h.sent++
	h.node.Arm(&h.tick, h.emit(h.peer, dataLen, 0)+20)
}

func (h *bareHost) Receive(f *link.Frame) {
	if f.Tag == 1 {
		h.acked++
	} else if h.received++; h.received%4 == 0 {
		h.emit(h.flow>>8, ackLen, 1)
	}
	h.pool.Put(f)
}

type bareFabric struct {
	v     *loop.Virtual
	hosts []*bareHost
	pools []*link.Pool
}

func newBareFabric(plan *topo.Plan, opts ...loop.Option) *bareFabric {
	b := &bareFabric{v: loop.NewVirtual(time.Microsecond, opts...)}
	t := plan.Topology
	index := map[string]int{}
	nodes := make([]*loop.Node, len(t.Nodes))
	for i := range t.Nodes {
		index[t.Nodes[i].Name] = i
		nodes[i] = b.v.Node(uint32(i))
		for len(b.pools) <= nodes[i].Partition() {
			b.pools = append(b.pools, &link.Pool{})
		}
	}
	receivers := make([]link.Receiver, len(t.Nodes))
	switches := make([]*bareSwitch, len(t.Nodes))
	hosts := make([]*bareHost, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Role == topo.Switch {
			switches[i] = &bareSwitch{node: nodes[i], routes: plan.RoutesByPort(n.Name, nil), seed: n.HashSeed}
			receivers[i] = switches[i]
			continue
		}
		h := &bareHost{node: nodes[i], pool: b.pools[nodes[i].Partition()], self: uint32(plan.FirstPort(n.Name))}
		h.tick.Fire = h.next
		hosts[i], receivers[i] = h, h
		b.hosts = append(b.hosts, h)
	}
	for i := range t.Nodes {
		first := plan.FirstPort(t.Nodes[i].Name)
		for j := range t.Nodes[i].Ports {
			l := t.Links[plan.PortAt(first+j).Link]
			far := plan.PortAt(plan.PeerNumber(first + j))
			to := index[far.Ref.Node]
			w := wire{from: nodes[i], to: nodes[to], delay: l.Delay, port: uint16(plan.PeerNumber(first+j) - plan.FirstPort(far.Ref.Node)), far: receivers[to]}
			line := link.NewLine(uint64(l.Rate))
			if s := switches[i]; s != nil {
				s.lines, s.wires = append(s.lines, line), append(s.wires, w)
				continue
			}
			hosts[i].line, hosts[i].wire = line, w
		}
	}
	n := len(b.hosts)
	for i, h := range b.hosts {
		to := b.hosts[(i+n/2+i%3)%n]
		h.peer = to.self
		h.flow = h.self<<8 | 1
		to.flow = to.self<<8 | 1
		h.node.Arm(&h.tick, loop.Time(i*37%330))
	}
	for i, h := range b.hosts {
		b.hosts[(i+n/2+i%3)%n].flow = h.self<<8 | 1
	}
	b.v.Between(func() { link.Balance(b.pools) })
	return b
}

func (b *bareFabric) received() (n uint64) {
	for _, h := range b.hosts {
		n += h.received
	}
	return n
}

func BenchmarkBare(b *testing.B) {
	for _, k := range []int{6, 16} {
		plan := fatTree(b, k)
		for _, mode := range []struct {
			name string
			opts []loop.Option
		}{
			{"event-by-event", nil},
			{"1-worker", []loop.Option{loop.Workers(1)}},
			{"2-workers", []loop.Option{loop.Workers(2), loop.Partition(pods(k, 2))}},
		} {
			b.Run(fmt.Sprintf("hosts=%d/%s", k*k*k/4, mode.name), func(b *testing.B) {
				f := newBareFabric(plan, mode.opts...)
				f.v.RunUntil(100_000)
				runtime.GC()
				before, events := f.received(), f.v.Handled()
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					f.v.RunUntil(f.v.Now() + 1000)
				}
				b.StopTimer()
				n, e := float64(f.received()-before), float64(f.v.Handled()-events)
				b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/e, "ns/event")
				b.ReportMetric(e/n, "events/packet")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
