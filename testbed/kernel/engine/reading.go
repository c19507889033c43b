//go:build linux

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Reading is what a port is doing and has done.
type Reading struct {
	Packets   int           // waiting
	Late      time.Duration // of the line's time, lost because it was served late
	SlotDrops uint64        // frames dropped because more waited than the port has places for
	Queues    [Priorities]QueueReading
	Groups    [Priorities]GroupReading
	Arrived   ArrivalReading
}

// Sent is what the port has sent altogether.
func (r *Reading) Sent() (bytes, frames uint64) {
	for i := range r.Queues {
		bytes, frames = bytes+r.Queues[i].TxBytes, frames+r.Queues[i].TxFrames
	}
	return bytes, frames
}

// QueueReading is a queue's. Sizes are bytes of frames.
type QueueReading struct {
	Packets            int
	Bytes, HighWater   uint64
	TxFrames, TxBytes  uint64
	Drops, StormDrops  uint64
	ECNFrames, Marked  uint64 // ECN-capable frames that departed, and those that were marked
	Paused             bool
	PausedTime         time.Duration // for how long the peer had it paused, up to now
	PausedSince        time.Duration // CLOCK_MONOTONIC, when the pause began that it is in
	RxPauses, RxPaused uint64        // pause frames that spoke of the priority, and pauses that began
	Against            uint64        // frames that were sent while the peer had the priority paused, since the port doesn't obey
	Mismarked          uint64        // frames that the right curve would have marked and the one in force didn't, or the other way round
}

// GroupReading is an ingress group's.
type GroupReading struct {
	Held, Headroom, Lossy   uint64
	HighWater, HeadroomHigh uint64
	XOFFs, HeadroomDrops    uint64
	TxPauses                uint64 // pause frames that the kernel sent for the group; those of an agent come besides
	Frames, Watched         uint64 // frames that came in by the group, and those of them with a DSCP of Port.Watched
	Pausing                 bool
}

// ArrivalReading is what came in at a paced port.
type ArrivalReading struct {
	Marked, CNPs uint64
	HeldBack     uint64 // marked packets whose flow had had a notice within the interval
}

type list struct{ First, Last, Packets, _ uint32 }

type queueState struct {
	FIFO                                                                    list
	Bytes, Lossy, High, In, Out, TxFrames, TxBytes, Drops, StormDrops, Next uint64
	Deficit                                                                 int64
	Packets, Flows, Turn, _                                                 uint32
	Until, Since, Paused, RxPause, RxXOFF, Against, Blocked                 uint64
}

type portState struct {
	FreeAt                      uint64
	Packets, Spare, Fresh, Last uint32
	Wake                        uint64
	May, Held                   uint32
	Late                        uint64
	SlotDrops, Lost             uint64
	Express                     list
	Queue                       [Priorities]queueState
}

type groupState struct {
	Held, Head, Lossy, High, HeadHigh, XOFFs, HeadroomDrops uint64
	XOFF, Told                                              uint32
	TxPause, Frames, Watched                                uint64
	Next, Listed                                            uint32
}

type nodeState struct {
	Lock, Paused              uint32
	Used, Total, High, Resume uint64
}

type markCounts struct{ Seen, Marked, Wrong uint64 }

// Now is the programs' clock: CLOCK_MONOTONIC.
func Now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails for an unknown clock or a bad address alone
	return time.Duration(t.Nano())
}

// paused is for how long a queue was paused up to now.
func (q *queueState) paused(now uint64) time.Duration {
	n := q.Paused
	if q.Until != 0 { // a pause that nobody has ended yet
		if end := min(now, q.Until); end > q.Since {
			n += end - q.Since
		}
	}
	return time.Duration(n)
}
