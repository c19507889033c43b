package asic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Reason is why a frame was dropped.
type Reason uint8

// The reasons. Those from DropEgress on are for want of buffer or because of a storm.
const (
	DropDown     Reason = iota // the link, or the switch, is down
	DropTTL                    // its TTL ran out
	DropNoRoute                // no route, or no port of the route is up
	DropMTU                    // longer than the egress port's MTU
	DropOther                  // neither for the switch nor to be forwarded
	DropBroken                 // no frame that can be read, or a wrong IPv4 checksum
	DropEgress                 // the egress queue's threshold
	DropIngress                // the lossy ingress group's threshold
	DropHeadroom               // a lossless group's headroom was full
	DropStorm                  // the watchdog's
	reasons
)

var reasonNames = [reasons]string{"link_down", "ttl", "no_route", "mtu", "other", "broken", "egress", "ingress", "headroom", "storm"}

// String is the reason in one word, fit for a label.
func (r Reason) String() string { return reasonNames[r] }

// Reasons are all reasons.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Observer is told what is worth a line in a record, on the switch's loop, as it happens. Frames
// are still the switch's.
type Observer interface {
	// Dropped is told of a frame dropped at a port: its ingress port, or its egress port where
	// a queue, an MTU or a storm is the reason.
	Dropped(now loop.Time, port int, why Reason, f *link.Frame)
	// Paused is told of a pause frame that a port sends.
	Paused(now loop.Time, port int, says *roce.PFC)
	// Storm is told of the watchdog finding a storm, and of its end.
	Storm(now loop.Time, port int, priority uint8, begins bool)
}

// counters are those that not every frame moves.
type counters struct {
	rxUnclassed            uint64 // frames that came in and were given no priority
	rxWatched              uint64
	moved                  uint64
	rxPause                [8]uint64
	stormsSeen, stormsOver [8]uint64
	drops                  [reasons]uint64
}

type groupCounters struct {
	xoffs         uint64
	headroomDrops uint64
	high          int64
	headHigh      int64
}

// PortStats is a reading of a port. Frames and bytes don't count pause frames.
type PortStats struct {
	Up                 bool
	RxFrames, RxBytes  uint64
	TxFrames, TxBytes  uint64
	RxPriority         [8]uint64        // frames that came in, by priority
	Watched            uint64           // frames that came in with a DSCP of PortSettings.Watched
	Against            [8]uint64        // frames that were sent in a priority of PFC.Ignore while the peer had paused it
	Moved              uint64           // frames that left here, and elsewhere with Balance.RightSeed
	LateRoutes         uint64           // changes of the link that routes followed late (Settings.RouteDelay)
	RxPause, TxPause   [8]uint64        // pause frames that spoke of a priority: XOFF, refresh and XON
	RxPaused, TxPaused [8]time.Duration // for how long the port was paused, and paused its peer
	XOFFs              [8]uint64        // pauses of the peer that began
	Storms, Restored   [8]uint64        // of the watchdog
	Stormed            uint8            // priorities in a storm now
	Drops              [reasons]uint64
	Queues             [8]QueueStats
	Groups             [8]GroupStats
	LineFree           loop.Time // when the last frame given to the line has left
}

// QueueStats is a reading of an egress queue.
type QueueStats struct {
	TxFrames, TxBytes uint64
	Drops             uint64
	Marked            uint64 // frames that the queue marked CE
	Mismarked         uint64 // frames that Queue.Right would have marked and ECN didn't, or the other way round
	Frames            int    // that wait now
	Bytes, HighWater  int64  // that wait now; the most since the last ResetHighWater
}

// GroupStats is a reading of an ingress priority group.
type GroupStats struct {
	Bytes, HighWater       int64 // that wait now, headroom included
	Headroom, HeadroomHigh int64 // of those in headroom
	HeadroomDrops          uint64
	XOFFs                  uint64 // pauses that the group asked for
	Paused                 bool   // it asks now
}

// Stats reads a port.
func (s *Switch) Stats(port int) PortStats {
	p, now := &s.ports[port], s.loop.Now()
	r := PortStats{
		Up: p.up, RxFrames: p.rxUnclassed, RxBytes: p.rxBytes, RxPriority: p.rxFrames, RxPause: p.rxPause, TxPause: p.pauser.Frames, XOFFs: p.pauser.Began,
		Storms: p.stormsSeen, Restored: p.stormsOver, Stormed: p.watch.storms, Drops: p.drops, LineFree: p.line.Free(),
	}
	r.Watched, r.Moved, r.LateRoutes = p.rxWatched, p.moved, s.late.of(port)
	if p.ignored != nil {
		r.Against = p.ignored.against
	}
	for i := range r.Queues {
		q, g := &p.queues[i], &p.groups[i]
		r.RxPaused[i], r.TxPaused[i] = p.paused.Time(now, uint8(i)), p.pauser.Time(now, uint8(i))
		r.RxFrames += p.rxFrames[i]
		r.TxFrames += p.tx[i].frames
		r.TxBytes += p.tx[i].bytes
		r.Queues[i] = QueueStats{p.tx[i].frames, p.tx[i].bytes, q.drops, q.marked, q.mismarked, q.frames.Len(), q.frames.Bytes(), q.high}
		r.Groups[i] = GroupStats{g.held + g.head + g.lossy, g.high, g.head, g.headHigh, g.headroomDrops, g.xoffs, g.xoff}
	}
	return r
}

// Depth is how many bytes wait in a queue.
func (s *Switch) Depth(port, queue int) int64 { return s.ports[port].queues[queue].frames.Bytes() }

// MemoryStats is a reading of the packet memory, in bytes.
type MemoryStats struct {
	Total, HighWater int64 // of all waiting frames, and the most of it since the last ResetHighWater
	Shared, Used     int64 // the shared buffer's size, and what of it is in use
}

// Memory reads the packet memory.
func (s *Switch) Memory() MemoryStats {
	return MemoryStats{s.memory.total, s.memory.high, s.memory.shared, s.memory.used}
}

// ResetHighWater lets all high-water marks begin anew at what waits now.
func (s *Switch) ResetHighWater() {
	s.memory.high = s.memory.total
	for i := range s.ports {
		p := &s.ports[i]
		for j := range p.queues {
			p.queues[j].high = p.queues[j].frames.Bytes()
			g := &p.groups[j]
			g.high, g.headHigh = g.held+g.head+g.lossy, g.head
		}
	}
}
