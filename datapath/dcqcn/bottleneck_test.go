package dcqcn

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// bottleneck is the smallest fabric that closes the loop: long flows, each paced by its RP,
// meet in one output queue that a CP marks; an NP behind it answers.
//
//	RP 1 ──paced packets──┐
//	RP 2 ─────────────────┼─▶ queue, CP ──line──▶ NP
//	RP N ─────────────────┘                       │
//	  ◀──────────────── CNP, after delay ─────────┘
//
// A packet marked as it leaves tells of the queue as it is; one marked as it joins brings the
// news only once it has waited. Departures are worked out when the next packet arrives.
type bottleneck struct {
	clock     *loop.Virtual
	node      *loop.Node
	line      Rate
	packet    Bytes
	delay     loop.Time // from the far end of the line to the sender
	onArrival bool      // mark packets as they join the queue, not as they leave it
	cp        CP
	np        *NP[int]
	flows     []*sender

	fifo   []waiting // the packets from head on wait or are being sent
	head   int
	onLine float64 // ns, what a packet takes
	free   float64 // ns, when the line has sent the oldest packet

	measured  bool
	arrivals  int
	queueSum  float64 // over arrivals
	marks     int
	highWater Bytes
}

type waiting struct {
	from   *sender
	marked bool
}

type sender struct {
	b      *bottleneck
	id     int
	rp     RP
	timer  loop.Timer
	asOf   loop.Time   // when earned was worked out
	earned float64     // bytes that may be sent; a packet goes at 0, on credit
	cnps   []loop.Time // on their way
	sent   Bytes       // while measured
}

// newBottleneck starts n flows of the parameters within the first microseconds.
func newBottleneck(t testing.TB, p Params, m Marking, line Rate, packet Bytes, n int, seed uint64) *bottleneck {
	t.Helper()
	r, err := NewReaction(p, line)
	if err != nil {
		t.Fatal(err)
	}
	np, err := NewNP[int](p.MinTimeBetweenCNPs, n)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	clock := loop.NewVirtual(1)
	b := &bottleneck{clock: clock, node: clock.Node(0), line: line, packet: packet, delay: us, onLine: float64(packet) * 8e9 / float64(line), cp: CP{m, rng}, np: np}
	for i := range n {
		s := &sender{b: b, id: i, rp: r.Flow(), asOf: loop.Time(rng.IntN(10_000))}
		s.timer.Fire = s.wake
		b.node.Arm(&s.timer, s.asOf)
		b.flows = append(b.flows, s)
	}
	return b
}

// wake sends what the flow has earned, and comes back when the next packet is earned or the
// rate changes, whatever is first. A pacer that slept through a gap worked out from an old
// rate would miss every increase in it: a packet of 4 KiB at 1 Mb/s is 33 ms, or 600 increases.
func (s *sender) wake() {
	b, now := s.b, s.b.node.Now()
	s.earned += float64(now-s.asOf) * float64(s.rp.Rate()) / 8e9
	s.asOf = now
	for len(s.cnps) > 0 && s.cnps[0] <= now {
		s.rp.OnCNP(s.cnps[0])
		s.cnps = append(s.cnps[:0], s.cnps[1:]...)
	}
	s.rp.OnTimer(now)
	if s.earned >= 0 {
		s.earned -= float64(b.packet)
		b.arrive(now, s)
		s.rp.OnSent(now, b.packet)
	}
	at := now + loop.Time(math.Ceil(-s.earned*8e9/float64(s.rp.Rate())))
	if change, ok := s.rp.NextTimer(); ok {
		at = min(at, change)
	}
	if len(s.cnps) > 0 {
		at = min(at, s.cnps[0])
	}
	b.node.Arm(&s.timer, at)
}

func (b *bottleneck) arrive(now loop.Time, s *sender) {
	b.drain(now)
	if b.measured {
		b.arrivals++
		b.queueSum += float64(b.waiting())
		b.highWater = max(b.highWater, b.waiting())
		s.sent += b.packet
	}
	if len(b.fifo) == b.head {
		b.free = float64(now) + b.onLine
	}
	b.fifo = append(b.fifo, waiting{s, b.onArrival && b.cp.Mark(b.waiting())})
}

// drain lets go what the line has sent by now: the NP has it, and the next one's turn comes.
func (b *bottleneck) drain(now loop.Time) {
	for b.head < len(b.fifo) && b.free <= float64(now) {
		w := b.fifo[b.head]
		b.head++
		marked := w.marked
		if !b.onArrival {
			marked = b.cp.Mark(b.waiting())
		}
		left := loop.Time(math.Ceil(b.free))
		if marked && b.np.OnMarked(left, w.from.id) {
			w.from.cnps = append(w.from.cnps, left+b.delay)
		}
		if marked && b.measured {
			b.marks++
		}
		b.free += b.onLine
	}
	if b.head > 4096 || b.head == len(b.fifo) {
		b.fifo, b.head = b.fifo[:copy(b.fifo, b.fifo[b.head:])], 0
	}
}

func (b *bottleneck) waiting() Bytes { return Bytes(len(b.fifo)-b.head) * b.packet }

// run lets the flows settle, then measures.
func (b *bottleneck) run(settle, measure time.Duration) {
	b.clock.RunUntil(loop.Time(settle))
	b.measured = true
	b.clock.RunUntil(loop.Time(settle + measure))
}

func (b *bottleneck) meanQueue() float64 { return b.queueSum / float64(b.arrivals) }

// share is what was carried of what the line could.
func (b *bottleneck) share(measure time.Duration) float64 {
	return float64(b.arrivals) * float64(b.packet) * 8e9 / float64(b.line) / float64(measure)
}

// jain is Jain's index of fairness: 1 for equal shares, 1/N when one has all.
func (b *bottleneck) jain() float64 {
	var sum, squares float64
	for _, s := range b.flows {
		x := float64(s.sent)
		sum += x
		squares += x * x
	}
	return sum * sum / squares / float64(len(b.flows))
}
