//go:build linux

package tc

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// Port is what is declared about the sending side of a port. All values are wall values: rates
// have been divided by the dilation already; bytes never change.
type Port struct {
	// Rate is the line rate. Frames are charged with Ethernet's preamble, gap and check
	// sequence (24 bytes, at least 84 a frame), as on a real link.
	Rate topo.Rate
	// MTU is the largest IP packet, bytes.
	MTU int
	// Priorities are the traffic classes, the most urgent first; at least one. Traffic that
	// nothing classifies goes to the last.
	Priorities []Priority
}

// Priority is a traffic class with a queue of its own.
type Priority struct {
	// Limit is the queue's size in bytes of frames (without preamble, gap and check sequence).
	Limit topo.Bytes
	// Marker marks ECN-capable packets; nil: none are marked.
	Marker *Marker
}

// Marker is red on the instantaneous queue. It never drops: what isn't ECN-capable passes. It
// spaces marks evenly, so that where the curve says p it marks 2p/(1+p) of the packets.
type Marker struct {
	Kmin, Kmax topo.Bytes
	Pmax       topo.Fraction
	// Off marks nothing, and keeps the marker's place in the tree: what waits there would be lost if it went.
	Off bool
}

// offMin and offMax are more than any queue holds, and as much as red takes.
const offMin, offMax = 1 << 29, 1 << 30

// Handles of the tree.
const (
	rootHandle = 1 << 16
	// ShaperClass is the class of the whole port.
	ShaperClass   = rootHandle | 1
	priorityBase  = rootHandle | 0x10
	markerBase    = 0x20
	queueBase     = 0x40
	maxPriorities = 16
)

// PriorityClass is the class of priority p; a program that classifies packets writes it into
// the packet's priority field.
func PriorityClass(p int) uint32 { return priorityBase + uint32(p) }

// FrameOverhead is Ethernet's cost of a frame beyond what the kernel counts as its length, in bytes: preamble and
// start, check sequence, gap.
const FrameOverhead = 8 + 4 + 12

const (
	frameMinimum = 64 + 8 + 12
)

// burstTime is how late the kernel may serve the shaper without losing throughput: the token
// bucket holds that much of the line rate, and at least two frames.
const burstTime = time.Millisecond

// Check says what of the declaration can't be.
func (p Port) Check() error {
	switch {
	case p.Rate/8 < 1000:
		return fmt.Errorf("rate %v: the shaper needs at least 8kbps after dilation", p.Rate)
	case len(p.Priorities) == 0 || len(p.Priorities) > maxPriorities:
		return fmt.Errorf("%d priorities: need 1 to %d", len(p.Priorities), maxPriorities)
	case p.MTU < 256 || p.MTU > 65535:
		return fmt.Errorf("MTU %d is not between 256 and 65535", p.MTU)
	}
	for i, q := range p.Priorities {
		if q.Limit < topo.Bytes(p.MTU+14) || q.Limit > 1<<31 {
			return fmt.Errorf("priority %d: a queue of %v does not hold a frame of MTU %d, or is over 2GiB", i, q.Limit, p.MTU)
		}
		if m := q.Marker; m != nil && !m.Off && (m.Kmin > m.Kmax || m.Kmax > 1<<30 || m.Pmax <= 0 || m.Pmax > 1) {
			return fmt.Errorf("priority %d: marker needs kmin ≤ kmax ≤ 1GiB and 0 < pmax ≤ 1, not %v, %v, %v", i, m.Kmin, m.Kmax, m.Pmax)
		}
	}
	return nil
}

// Tree is the qdiscs and classes that the declaration asks for, parents first.
func (p Port) Tree() []Object {
	rate := uint64(p.Rate) / 8
	frame := uint64(p.MTU) + 14 + FrameOverhead
	burst := max(2*frame, rate*uint64(burstTime)/uint64(time.Second))
	last := len(p.Priorities) - 1
	class := func(id, parent uint32, guaranteed uint64, prio int) Object {
		return Object{ID: id, Parent: parent, Class: true, Spec: HTBClass{
			Rate: guaranteed, Ceil: rate, Burst: burst, Quantum: uint32(frame), Priority: uint32(prio),
			Overhead: FrameOverhead, Minimum: frameMinimum,
		}}
	}
	objects := []Object{
		{ID: rootHandle, Parent: Root, Spec: HTB{Default: 0x10 + uint32(last)}},
		class(ShaperClass, rootHandle, rate, 0),
	}
	for i, q := range p.Priorities {
		// With one priority the class is the link. With more, each is promised nearly nothing
		// and borrows the rest, which htb hands out in order of priority.
		guaranteed := rate
		if last > 0 {
			guaranteed = max(rate/1000, 1)
		}
		objects = append(objects, class(PriorityClass(i), ShaperClass, guaranteed, i))
		parent := PriorityClass(i)
		if m := q.Marker; m != nil {
			id := uint32(markerBase+i) << 16
			red := RED{Min: uint32(m.Kmin), Max: uint32(max(m.Kmax, m.Kmin+1)), MaxP: probability32(float64(m.Pmax))}
			if m.Off {
				red = RED{Min: offMin, Max: offMax, MaxP: 1}
			}
			objects = append(objects, Object{ID: id, Parent: parent, Spec: red})
			parent = id | 1
		}
		objects = append(objects, Object{ID: uint32(queueBase+i) << 16, Parent: parent, Spec: FIFO{Limit: uint32(q.Limit)}})
	}
	return objects
}

// probability32 scales a probability to the kernel's 32 bits.
func probability32(p float64) uint32 {
	return uint32(min(p*(1<<32), 1<<32-1))
}
