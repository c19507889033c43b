package asic

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// port is a port, both directions. What every frame touches lies in its first cache lines.
type port struct {
	line    link.Line
	wire    link.Wire
	table   *table
	rxBytes uint64
	index   uint16
	up      bool
	waiting uint8 // queues that hold frames, bit i for queue i
	held    uint8 // priorities that the peer paused, perhaps no more
	gates   uint8 // queues that aren't as usual: stuck, limited, or with a storm
	routed  bool  // routes lead over it: it is up, as far as routes know
	last    uint8 // the weighted queue that was served last

	rxFrames [8]uint64 // by priority

	tx [8]traffic // by queue

	// Egress, where something waits.
	wake   loop.Time // when timer is due; never: it isn't needed
	queued int64     // bytes in all queues
	sw     *Switch
	timer  loop.Timer
	queues [8]queue

	// Ingress, where something waits.
	groups [8]group

	paused link.Paused
	pauser link.Pauser
	again  loop.Timer // repeats the pause
	watch  watch
	errors bucket // of ICMP

	counters
	ignored *ignored // pauses that are noted and not obeyed; made when there are any
	_       [24]byte // to whole cache lines
}

type traffic struct{ frames, bytes uint64 }

// queue is an egress queue.
type queue struct {
	frames  link.Queue
	lossy   int64 // bytes that count against the queue's thresholds
	deficit int64 // of DWRR
	marked  uint64
	high    int64

	drops  uint64
	depths *Depths
	next   loop.Time // when a limited queue may send again

	mismarked uint64
	_         [32]byte // to whole cache lines
}

// never is later than any time.
const never = loop.Time(1<<63 - 1)

func (p *port) init(s *Switch, index int, c *PortConfig) {
	*p = port{sw: s, index: uint16(index), line: link.NewLine(c.Rate), wire: c.Wire, up: true, routed: true, wake: never}
	p.errors.spent = -loop.Time(errorBurst * errorEvery)
	p.timer.Fire = p.onWake
	p.again.Fire = p.onRefresh
	p.watch.timer.Fire = p.onWatch
}

// take sends a frame that came in at a port: at once when the line is idle and nothing that may
// go waits, else through its queue.
func (p *port) take(now loop.Time, f *link.Frame, in *port) {
	q := p.table.queueOf[f.Priority&7]
	if p.waiting|p.held|p.gates == 0 && p.line.Free() <= now {
		p.send(now, f, q)
		return
	}
	if p.watch.stormed&(1<<q) != 0 && p.sw.settings.Watchdog.Action == StormDrop {
		p.dropQueued(f, q, DropStorm)
		return
	}
	shut := p.shut(now)
	if p.line.Free() <= now && (p.waiting&^shut)|shut&(1<<q) == 0 {
		p.send(now, f, q)
		return
	}
	if !p.sw.memory.admit(now, f, in, p, q) {
		return
	}
	qu := &p.queues[q]
	qu.frames.Push(f)
	p.queued += int64(f.Len)
	qu.high = max(qu.high, qu.frames.Bytes())
	p.waiting |= 1 << q
	if p.wake > p.line.Free() {
		p.serve(now)
	}
}

// send puts a frame on the line. It holds no buffer from now on.
func (p *port) send(now loop.Time, f *link.Frame, q uint8) {
	if f.Bytes != nil {
		p.rewrite(f)
	}
	tx := &p.tx[q&7]
	tx.frames++
	tx.bytes += uint64(f.Len)
	if p.table.limited|p.table.ignores != 0 {
		p.limit(now, f, q)
	}
	p.wire.Send(f, p.line.Send(now, f.Len))
}

// serve sends what may go if the line is idle, and sees to it that the port wakes when there is
// more to do: when the line is free, or a pause ends.
func (p *port) serve(now loop.Time) {
	for p.waiting != 0 {
		if free := p.line.Free(); free > now {
			p.wakeAt(free)
			return
		}
		may := p.waiting
		if p.held|p.gates != 0 {
			may &^= p.shut(now)
		}
		if may == 0 {
			p.wakeAt(p.pauseEnd(now))
			return
		}
		q := p.pick(may)
		p.depart(now, q)
	}
	p.wake = never // a timer that is armed still finds nothing to do
}

// depart sends a queue's next frame.
func (p *port) depart(now loop.Time, q uint8) {
	qu := &p.queues[q]
	f := qu.frames.Pop()
	p.queued -= int64(f.Len)
	if qu.frames.Head() == nil {
		p.waiting &^= 1 << q
		qu.deficit = 0
	}
	qt := &p.table.queues[q]
	if n := qu.frames.Bytes(); p.table.compared&(1<<q) != 0 {
		p.compare(f, qu, p.table.right[q&7], n)
	} else if n > qt.kmin && f.TrafficClass&3 != 0 && f.TrafficClass&3 != 3 && qt.marks(n, &p.sw.marks) {
		f.MarkCE()
		qu.marked++
	}
	p.sw.memory.release(now, f, p, q)
	p.send(now, f, q)
}

// compare marks a frame that leaves n bytes behind, and counts it where it should have been otherwise.
func (p *port) compare(f *link.Frame, qu *queue, r *rightECN, n int64) {
	if ecn := f.TrafficClass & 3; n == 0 || ecn == 0 || ecn == 3 {
		return
	}
	is, should := r.marks(n, &p.sw.marks)
	if is {
		f.MarkCE()
		qu.marked++
	}
	if is != should {
		qu.mismarked++
	}
}

func (p *port) wakeAt(at loop.Time) {
	if at != p.wake {
		p.wake = at
		if at != never {
			p.sw.loop.Arm(&p.timer, at)
		}
	}
}

func (p *port) onWake() {
	if p.wake != never {
		p.wake = never
		p.serve(p.sw.loop.Now())
	}
}

// shut is which queues may not send now.
func (p *port) shut(now loop.Time) (mask uint8) {
	for rest := p.held; rest != 0; rest &= rest - 1 {
		i := uint8(bits.TrailingZeros8(rest))
		if p.paused.Holds(now, i) {
			mask |= 1 << p.table.queueOf[i]
		} else {
			p.held &^= 1 << i
		}
	}
	mask = mask&^p.watch.stormed | p.table.stuck
	for rest := p.table.limited; rest != 0; rest &= rest - 1 {
		if q := uint8(bits.TrailingZeros8(rest)); p.queues[q].next > now {
			mask |= 1 << q
		}
	}
	return mask
}

// pauseEnd is when the first of the pauses or limits ends that hold waiting frames back; never, where a fault does.
func (p *port) pauseEnd(now loop.Time) loop.Time {
	at := never
	for rest := p.held; rest != 0; rest &= rest - 1 {
		i := uint8(bits.TrailingZeros8(rest))
		if q := uint8(1) << p.table.queueOf[i]; p.waiting&^p.table.stuck&q != 0 {
			at = min(at, max(p.paused.Until(i), p.limitEnd(now, p.table.queueOf[i])))
		}
	}
	for rest := p.waiting & p.table.limited &^ p.table.stuck; rest != 0; rest &= rest - 1 {
		if end := p.limitEnd(now, uint8(bits.TrailingZeros8(rest))); end > now {
			at = min(at, end)
		}
	}
	return at
}

// flush drops what waits in some queues.
func (p *port) flush(queues uint8, why Reason) {
	now := p.sw.loop.Now()
	for rest := p.waiting & queues; rest != 0; rest &= rest - 1 {
		q := uint8(bits.TrailingZeros8(rest))
		qu := &p.queues[q]
		for f := qu.frames.Pop(); f != nil; f = qu.frames.Pop() {
			p.queued -= int64(f.Len)
			p.sw.memory.release(now, f, p, q)
			p.dropQueued(f, q, why)
		}
	}
	p.waiting &^= queues
}

// dropQueued ends a frame on account of its egress queue.
func (p *port) dropQueued(f *link.Frame, q uint8, why Reason) {
	p.queues[q].drops++
	p.sw.drop(f, p, why)
}
