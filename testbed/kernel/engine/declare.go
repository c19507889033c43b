//go:build linux

package engine

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Priorities is how many a port has.
const Priorities = 8

// Port is what is declared of a port. Rates are wall rates: they have been divided by the dilation already; bytes never
// change.
type Port struct {
	Rate topo.Rate
	MTU  int // the largest IP packet, bytes
	// Priority of each DSCP, of what comes in at the port and of what its node sends itself. What isn't IP has DSCP 0's.
	Priority [64]uint8
	Watched  uint64 // DSCPs of which what comes in is counted, bit i for DSCP i
	Queues   [Priorities]Queue
	Groups   [Priorities]Group
	// Obey are the priorities whose pauses are obeyed, bit i for priority i. Stuck ones are never served.
	Obey, Stuck uint8
	// Sends are the priorities that the port pauses its peer in.
	Sends uint8
	MAC   [6]byte // the source of its pause frames
	// Paced looks for flows that have a rate of their own, and for what DCQCN needs of what arrives. Notice is the least time
	// between two notices of marked packets of one flow.
	Paced  bool
	Notice time.Duration
}

// Queue is the egress queue of a priority.
type Queue struct {
	// Reserved bytes of lossy frames are the queue's own; beyond that it may hold Alpha (in 1024ths) times what is left of the node's
	// shared memory.
	Reserved topo.Bytes
	Alpha    uint32
	Weight   int       // frames of a round; 0: strict, before all that have a weight
	Rate     topo.Rate // that it is limited to; 0: the line's
	Marking  *Marking  // nil: none
	Right    *Right    // nil: Marking is right
}

// Right is the curve that would be right where another one is in force: packets that are marked, or aren't, for it are counted.
type Right struct {
	Marking *Marking // nil: none
}

// Marking is DCQCN's curve, on the bytes that a departing frame leaves behind in its queue.
type Marking struct {
	Kmin, Kmax topo.Bytes
	Pmax       topo.Fraction
}

// Group is the account of what came in at the port with a priority and waits in the node.
type Group struct {
	Lossless bool
	Reserved topo.Bytes
	XOFF     topo.Bytes // beyond Reserved; with Alpha it follows from what is left of the shared memory
	Alpha    uint32     // 1024ths; 0: XOFF counts
	XON      topo.Bytes // how far below that the pause ends
	Headroom topo.Bytes
}

// Overheads of a frame on the line, in bytes: preamble and start, check sequence, gap; and what the shortest costs.
const (
	frameOverhead = 8 + 4 + 12
	frameMinimum  = 64 + 8 + 12
)

// leastLag is how late the kernel may serve a line without losing throughput.
const leastLag = time.Millisecond

// Check says what of the declaration can't be.
func (p *Port) Check() error {
	switch {
	case p.Rate/8 < 1000:
		return fmt.Errorf("rate %v: at least 8kbps after dilation", p.Rate)
	case p.MTU < 256 || p.MTU > 65535:
		return fmt.Errorf("MTU %d is not between 256 and 65535", p.MTU)
	}
	for i := range p.Queues {
		q := &p.Queues[i]
		for _, m := range q.curves() {
			if m != nil && (m.Kmin >= m.Kmax || m.Kmax > 1<<30 || m.Pmax <= 0 || m.Pmax > 1) {
				return fmt.Errorf("priority %d: marking needs kmin < kmax ≤ 1GiB and 0 < pmax ≤ 1, not %v, %v, %v", i, m.Kmin, m.Kmax, m.Pmax)
			}
		}
		if q.Weight < 0 || q.Weight > 1000 {
			return fmt.Errorf("priority %d: weight %d is not from 0 (strict) to 1000", i, q.Weight)
		}
	}
	for d, i := range p.Priority {
		if i >= Priorities {
			return fmt.Errorf("DSCP %d: there is no priority %d", d, i)
		}
	}
	return nil
}

// curves are the one in force and the right one.
func (q *Queue) curves() [2]*Marking {
	if q.Right == nil {
		return [2]*Marking{q.Marking, nil}
	}
	return [2]*Marking{q.Marking, q.Right.Marking}
}

// conf is struct port_conf.
type conf struct {
	Node               uint32
	FirstSlot, Slots   uint32
	Overhead, Minimum  uint32
	Poll               uint32
	Cost, Lag, Quantum uint64
	Notice             uint64
	Watched            uint64
	Priority           [64]uint8
	Obey, Stuck, Paced uint8
	Sends              uint8
	MAC                [6]byte
	_                  [6]uint8
	Queue              [Priorities]queueConf
	Group              [Priorities]groupConf
}

type queueConf struct {
	Reserved      uint64
	Alpha, Weight uint32
	Cost          uint64
	Kmin, Kmax    uint32
	Slope         uint64
	Right         struct {
		Kmin, Kmax uint32
		Slope      uint64
		Wrong, _   uint32
	}
}

// curve is a marking as programs read it.
func curve(m *Marking) (kmin, kmax uint32, slope uint64) {
	if m == nil {
		return 0, 0, 0
	}
	return uint32(m.Kmin), uint32(m.Kmax), uint64(float64(m.Pmax) * (1 << 40) / float64(m.Kmax-m.Kmin))
}

type groupConf struct {
	Reserved, XOFF, XON, Headroom uint64
	Alpha, Lossless               uint32
}

// cost is what a byte takes at a rate, in 2^-16 ns.
func cost(r topo.Rate) uint64 {
	if r == 0 {
		return 0
	}
	return (8e9<<16 + uint64(r)/2) / uint64(r)
}

// encode is the declaration as programs read it, but for where the port is.
func (p *Port) encode() conf {
	frame := uint64(p.MTU) + 14
	perByte := cost(p.Rate)
	c := conf{
		Overhead: frameOverhead, Minimum: frameMinimum, Cost: perByte, Quantum: perByte * 64, Priority: p.Priority, Watched: p.Watched,
		Obey: p.Obey, Stuck: p.Stuck, Sends: p.Sends, MAC: p.MAC, Notice: uint64(p.Notice),
	}
	wire := (frame + frameOverhead) * perByte >> 16
	c.Lag = max(uint64(leastLag), 2*wire)
	c.Poll = uint32(min(max(wire/8, uint64(100*time.Microsecond)), uint64(time.Millisecond)))
	if p.Paced {
		c.Paced = 1
	}
	for i := range p.Queues {
		q := &p.Queues[i]
		c.Queue[i] = queueConf{Reserved: uint64(q.Reserved), Alpha: q.Alpha, Weight: uint32(uint64(q.Weight) * (frame + frameOverhead)), Cost: cost(q.Rate)}
		to := &c.Queue[i]
		to.Kmin, to.Kmax, to.Slope = curve(q.Marking)
		if q.Right != nil {
			to.Right.Kmin, to.Right.Kmax, to.Right.Slope = curve(q.Right.Marking)
			to.Right.Wrong = 1
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		c.Group[i] = groupConf{Reserved: uint64(g.Reserved), XOFF: uint64(g.XOFF), XON: uint64(g.XON), Headroom: uint64(g.Headroom), Alpha: g.Alpha}
		if g.Lossless {
			c.Group[i].Lossless = 1
		}
	}
	return c
}
