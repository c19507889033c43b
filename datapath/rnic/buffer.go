package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// buffer is the port's receive buffer: what has arrived and is not yet in memory. Each priority has its
// share; a lossless one that fills pauses the peer. When a packet leaves it is known when it arrives, so
// the buffer drains by itself as time is looked at, and needs an event only to end or to repeat a pause.
type buffer struct {
	p       *port
	pauser  link.Pauser
	held    [8]int64
	waiting ring[departure]
	latest  loop.Time // of all departures so far
	timer   loop.Timer

	xoff, xon, most int64 // 0: no limit
	lossless        uint8
}

type departure struct {
	at       loop.Time
	n        int32
	priority uint8
}

func (b *buffer) init(p *port) {
	c := &p.d.cfg.Profile.Pause
	b.p = p
	b.pauser = link.Pauser{Quanta: c.Quanta, Global: c.Global}
	b.xoff, b.xon, b.most = int64(c.XOFF), int64(c.XON), int64(c.XOFF+c.Headroom)
	b.lossless = p.obeys
	b.timer.Fire = b.review
}

// admit takes a packet of n bytes in, unless there is no room.
func (b *buffer) admit(now loop.Time, n int32, priority uint8) bool {
	b.drain(now)
	if b.xoff == 0 {
		return true
	}
	held := b.held[priority] + int64(n)
	lossless := b.lossless&(1<<priority) != 0
	if held > b.most || held > b.xoff && !lossless {
		b.p.d.count.Priority[priority].RxBufferDiscards++
		return false
	}
	if held > b.xoff && b.pauser.XOFF(now, priority) {
		b.tell(now)
	}
	return true
}

// hold notes when an admitted packet leaves the buffer.
func (b *buffer) hold(at loop.Time, n int32, priority uint8) {
	if b.xoff == 0 {
		return
	}
	b.latest = max(b.latest, at)
	b.held[priority] += int64(n)
	*b.waiting.add() = departure{b.latest, n, priority}
	if b.pauser.Pauses(priority) {
		b.await()
	}
}

// drain forgets what has left.
func (b *buffer) drain(now loop.Time) {
	for b.waiting.len() > 0 {
		e := b.waiting.front()
		if e.at > now {
			return
		}
		b.held[e.priority] -= int64(e.n)
		b.waiting.head++
	}
}

// review ends the pauses whose priority has drained, and repeats the others in time.
func (b *buffer) review() {
	now := b.p.d.loop.Now()
	b.drain(now)
	say := false
	for i := range uint8(8) {
		if b.pauser.Pauses(i) && b.held[i] <= b.xon {
			say = b.pauser.XON(now, i) || say
		}
	}
	if at, ok := b.pauser.Refresh(); say || ok && at <= now {
		b.tell(now)
	}
	b.await()
}

// await arms the timer for the next thing to say: the first XON, as things are now, or the refresh.
func (b *buffer) await() {
	at, ok := b.pauser.Refresh()
	if !ok {
		b.p.d.loop.Disarm(&b.timer)
		return
	}
	left := b.held
	for i := b.waiting.head; i != b.waiting.tail; i++ {
		e := b.waiting.at(i)
		if e.at >= at {
			break
		}
		if left[e.priority] -= int64(e.n); b.pauser.Pauses(e.priority) && left[e.priority] <= b.xon {
			at = e.at
			break
		}
	}
	b.p.d.loop.Arm(&b.timer, at)
}

// tell sends the pause frame that says how things are, past all queues.
func (b *buffer) tell(now loop.Time) {
	d := b.p.d
	f := d.frames.Get()
	f.Dst = link.NoDst
	b.pauser.Fill(now, d.cfg.Rate, f)
	f.Packet.SrcMAC = d.cfg.MAC
	d.cfg.Wire.Send(f, b.p.onWire(b.p.line.Send(now, f.Len)))
	if s := &b.p.storm; s.lasts > s.Every && s.Priorities != 0 { // the frame may have ended a pause that doesn't end
		s.say(now, s.Priorities, s.Quanta)
	}
}

// reset forgets all pauses: the link went down or came up.
func (b *buffer) reset(now loop.Time) {
	for i := range uint8(8) {
		b.pauser.XON(now, i)
	}
	b.await()
}
