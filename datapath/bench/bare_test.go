package bench

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// The bare fabric is what no emulation can be faster than: hosts that send a packet whenever the
// line is free and an ACK for every fourth, switches that forward by destination and spread over
// equal ways. There are no queues, counters, pauses or transport; frames, wires, lines and events are real.

type bareSwitch struct {
	lines []link.Line
	wires []wire
	way   []uint16 // by destination: index into sets
	sets  [][]uint16
	seed  uint32
	node  *loop.Node
}

func (s *bareSwitch) Receive(f *link.Frame) {
	ways := s.sets[s.way[f.Dst]]
	h := (f.Flow ^ s.seed) * 0x9e3779b1
	out := ways[uint64(h)*uint64(len(ways))>>32]
	s.wires[out].Send(f, s.lines[out].Send(s.node.Now(), f.Len))
}

type bareHost struct {
	node     *loop.Node
	line     link.Line
	wire     *wire
	pool     *link.Pool
	to, from uint32 // the fabric's numbers of the ports that it sends data to and gets them from
	tick     loop.Timer
	flow     uint32
	received uint64
}

// The lengths of a WRITE's middle packet and of an ACK in IPv4, without frame check sequence.
const (
	dataLen = 4096 + 58
	ackLen  = 62
	isAck   = 1
	slack   = 20 // ns that the line rests after each packet, so that no queue grows
)

func (h *bareHost) emit(dst uint32, n int32, tag uint8) loop.Time {
	f := h.pool.Get()
	h.flow += 0x85ebca6b // sprayed, so that no queue grows
	f.Len, f.Dst, f.Flow, f.Tag = n, dst, h.flow, tag
	at := h.line.Send(h.node.Now(), n)
	h.wire.Send(f, at)
	return at
}

func (h *bareHost) next() { h.node.Arm(&h.tick, h.emit(h.to, dataLen, 0)+slack) }

func (h *bareHost) Receive(f *link.Frame) {
	if f.Tag != isAck {
		if h.received++; h.received%4 == 0 {
			h.emit(h.from, ackLen, isAck)
		}
	}
	h.pool.Put(f)
}

type bareFabric struct {
	*fabric
	at []*bareHost
}

func newBareFabric(plan *topo.Plan, opts ...loop.Option) *bareFabric {
	b := &bareFabric{fabric: newFabric(plan, opts...)}
	at := make([]link.Receiver, len(b.nodes))
	for i := range b.nodes {
		n := b.node(i)
		if n.Role == topo.Host {
			h := &bareHost{node: b.nodes[i], pool: b.pool(i), wire: &b.wires[i][0], line: link.NewLine(b.rate(i, 0))}
			h.tick.Fire = h.next
			at[i] = h
			b.at = append(b.at, h)
			continue
		}
		s := &bareSwitch{node: b.nodes[i], wires: b.wires[i], seed: n.HashSeed}
		known := map[string]uint16{}
		for _, ports := range b.plan.RoutesByPort(n.Name, nil) {
			key := string(keyOf(ports))
			if _, ok := known[key]; !ok {
				known[key] = uint16(len(s.sets))
				s.sets = append(s.sets, ports)
			}
			s.way = append(s.way, known[key])
		}
		for j := range b.wires[i] {
			s.lines = append(s.lines, link.NewLine(b.rate(i, j)))
		}
		at[i] = s
	}
	b.connect(at)
	peers := permutation(len(b.at), 1)
	for i, h := range b.at {
		to := peers[i]
		h.to = uint32(b.first(b.hosts[to]))
		b.at[to].from = uint32(b.first(b.hosts[i]))
		h.node.Arm(&h.tick, loop.Time(i*37%330))
	}
	return b
}

func keyOf(ports []uint16) (b []byte) {
	for _, p := range ports {
		b = append(b, byte(p), byte(p>>8))
	}
	return b
}

func (b *bareFabric) data() (n uint64) {
	for _, h := range b.at {
		n += h.received
	}
	return n
}

func BenchmarkBare(b *testing.B) {
	sizes(b, func(b *testing.B, k int, opts ...loop.Option) { measure(b, newBareFabric(fatTree(b, k), opts...)) })
}

// bareSpeed is the packets a second of processor time of the bare fabric at the same moment on the same machine:
// the best of a few slices.
func bareSpeed(tb testing.TB, k int, opts ...loop.Option) (best float64) {
	f := newBareFabric(fatTree(tb, k), opts...)
	f.v.RunUntil(loop.Time(warm) / 3)
	for range 15 {
		n, cpu := f.data(), cpuTime()
		f.v.RunUntil(f.v.Now().Add(slice))
		best = max(best, float64(f.data()-n)/(cpuTime()-cpu).Seconds())
	}
	return best
}
