//go:build linux

package kernel

import (
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
)

// portReading is what a port's root qdisc said at a moment.
type portReading struct {
	at                      time.Time
	bytes, packets, backlog uint64
}

// shaperTally is how a port's shaper has done, all in wall time.
type shaperTally struct {
	rate topo.Rate // of the line, of wall time

	last  portReading
	known bool // last is one
	watch bool // the time since last counts

	sent time.Duration // what all that was sent while watched takes on the line
	lost time.Duration // what certainly could have been sent besides, and was not; below zero for a moment after catching up
	most time.Duration // what was lost in one interval at most
}

// watchMargin is by how much a queue must outlast the time to the next reading to be watched until then.
const watchMargin = 1.25

// wire is how long the line takes for so much, with what Ethernet puts around each frame.
func (t *shaperTally) wire(bytes, packets uint64) time.Duration {
	bits := float64(bytes+packets*tc.FrameOverhead) * 8
	return time.Duration(bits / float64(t.rate) * float64(time.Second))
}

// take adds a reading. Where undisturbed is false, the time since the last one says nothing of the shaper.
//
// The queue was never empty between two readings if less was sent than stood in it at the first: it is a FIFO, so
// some of what stood there stands there still. That holds whatever arrived meanwhile, and however late the second reading is.
// What left the queue without being sent (the link went down) shows as a second backlog that is too small.
func (t *shaperTally) take(r portReading, undisturbed bool) {
	last, counts := t.last, t.known && t.watch && undisturbed
	t.last, t.known, t.watch = r, true, false
	if !counts || r.bytes < last.bytes || r.packets < last.packets {
		return
	}
	bytes := r.bytes - last.bytes
	wire := t.wire(bytes, r.packets-last.packets)
	switch {
	case bytes >= last.backlog: // it may have run empty
		t.sent += wire
	case r.backlog+bytes >= last.backlog:
		t.sent += wire
		lost := r.at.Sub(last.at) - wire
		t.lost, t.most = t.lost+lost, max(t.most, lost)
	}
}

// until says when the next reading will come. The time to it counts if the queue is long enough to outlast it: that is settled
// ahead, since what happens in an interval must not decide whether it counts.
func (t *shaperTally) until(next time.Duration) {
	t.watch = t.known && t.lasts() >= time.Duration(watchMargin*float64(next))
}

// lasts is how long the line takes for what stands in the queue.
func (t *shaperTally) lasts() time.Duration { return t.wire(t.last.backlog, 0) }

// forget begins anew.
func (t *shaperTally) forget() { t.watch, t.sent, t.lost, t.most = false, 0, 0, 0 }

// busy is how long the shaper was watched with packets waiting.
func (t *shaperTally) busy() time.Duration { return t.sent + max(t.lost, 0) }

// share is the part of its rate that the shaper gave while packets waited, 0 to 1.
func (t *shaperTally) share() float64 { return shareOf(t.sent, t.lost) }

// usual is the share without the worst interval: one long stall of the machine is bad luck, many are a load.
func (t *shaperTally) usual() float64 { return shareOf(t.sent, t.lost-t.most) }

func shareOf(sent, lost time.Duration) float64 {
	if lost <= 0 {
		return 1
	}
	return sent.Seconds() / (sent + lost).Seconds()
}
