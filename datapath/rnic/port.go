package rnic

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// port sends what sources have and what control was given. Whenever the line is free it takes a packet
// of the priority whose turn it is, among those that nobody paused; within a priority control goes
// first, then sources in turn, a packet each. A source whose pacing or payload isn't there yet waits by
// itself and holds nobody up. At saturation that is an event for each burst of packets; what is idle costs none.
type port struct {
	d       *Device
	line    link.Line
	timer   loop.Timer
	down    bool
	sending bool

	busy    uint8 // priorities that have something to send
	strict  uint8
	turn    uint8 // of the others, whose turn it is
	burst   int
	classes [8]class

	obeys   uint8       // priorities whose pauses are obeyed
	paused  link.Paused // what the peer asked for
	blocked uint8       // priorities that it holds back
	unblock loop.Time   // until when, the first of them

	jitter rand.PCG
	last   loop.Time // a frame was on the wire, where there is jitter

	in    buffer
	storm storming
}

// class is a priority's queue.
type class struct {
	controls   ring[timed]
	head, tail *sender
	quantum    int32 // bytes a round; 0: strict
	credit     int32 // bytes left in this round
}

type timed struct {
	f  *link.Frame
	at loop.Time
}

func (p *port) init(d *Device) {
	p.d = d
	p.line = link.NewLine(d.cfg.Rate)
	p.jitter.Seed(d.cfg.Seed, jitterStream)
	p.timer.Fire = p.run
	p.burst = max(d.cfg.Profile.Scheduler.Burst, 1)
	for i, w := range d.cfg.Profile.Scheduler.Weights {
		p.classes[i].quantum = int32(w * (d.cfg.MTU + roce.EthernetLen))
		if w == 0 {
			p.strict |= 1 << i
		}
	}
	p.obeys = d.cfg.Profile.Pause.Lossless
	if d.cfg.Profile.Pause.Global {
		p.obeys = 0xff
	}
	p.in.init(p)
}

// push puts a source at the end of its priority's turns.
func (p *port) push(s *sender) {
	s.state = inTurn
	c := &p.classes[s.priority&7]
	if c.tail == nil {
		c.head = s
	} else {
		c.tail.after = s
	}
	c.tail = s
	p.busy |= 1 << (s.priority & 7)
}

// pushFront puts a source before the others: its turn had come.
func (p *port) pushFront(s *sender) {
	s.state = inTurn
	c := &p.classes[s.priority&7]
	if s.after = c.head; c.tail == nil {
		c.tail = s
	}
	c.head = s
	p.busy |= 1 << (s.priority & 7)
}

// soon is how far ahead an idle port commits its line to a control packet. What comes up in between, a pause frame
// too, waits for that.
const soon = 500 * time.Nanosecond

// control sends an ACK, a NAK or a CNP, not before a time.
func (p *port) control(f *link.Frame, notBefore loop.Time) {
	now := p.d.loop.Now()
	bit := uint8(1) << (f.Priority & 7)
	if start := max(now, notBefore); p.busy == 0 && p.line.Free() <= start && start <= now.Add(soon) && p.blockedAt(now)&bit == 0 {
		p.send(f, start) // nobody wants the line before it
		return
	}
	e := p.classes[f.Priority&7].controls.add()
	e.f, e.at = f, notBefore
	p.busy |= bit
	p.run()
}

// run sends what can be sent now, and sees to it that it runs again when more can be.
func (p *port) run() {
	if p.sending {
		return
	}
	p.sending = true
	now := p.d.loop.Now()
	for sent := 0; p.busy != 0; {
		if free := p.line.Free(); free > now && (sent == 0 || sent >= p.burst) {
			p.wake(free)
			break
		}
		start := max(now, p.line.Free())
		f, s, again := p.pick(now, start)
		if f == nil {
			if again != never {
				p.wake(again)
				break
			}
			continue // of a source that had nothing
		}
		sent++
		n, psn, carried := f.Len, f.Packet.BTH.PSN, f.Packet.PayloadLen
		end := p.send(f, start)
		if s == nil {
			continue
		}
		if p.d.hw.trace != nil {
			p.d.hw.tell(s, StageQueue, start, psn, carried)
			p.d.hw.tell(s, StageWire, end, psn, carried)
		}
		p.sent(s, now, start, n)
	}
	p.sending = false
}

// never is later than anything.
const never = loop.Time(math.MaxInt64)

func (p *port) wake(at loop.Time) {
	if !p.timer.Armed() || p.timer.At() > at {
		p.d.loop.Arm(&p.timer, at)
	}
}

// pick takes the next frame, and the source that it is from if it isn't control. Without one, again says when
// there may be; never, when it should be asked at once, as something has changed.
func (p *port) pick(now, start loop.Time) (f *link.Frame, s *sender, again loop.Time) {
	again = never
	avail := p.busy
	if b := p.blockedAt(now) & avail; b != 0 {
		avail &^= b
		again = p.unblock
	}
	for avail != 0 {
		i := p.choose(avail)
		c := &p.classes[i]
		if c.controls.len() > 0 {
			if e := c.controls.front(); e.at <= start {
				f = e.f
				e.f = nil
				c.controls.head++
				p.settle(i)
				c.credit -= f.Len
				return f, nil, 0
			} else if c.head == nil {
				again = min(again, e.at)
				avail &^= 1 << i
				continue
			}
		}
		s = c.head
		if c.head = s.after; c.head == nil {
			c.tail = nil
		}
		s.after = nil
		f = p.pull(s, now, start)
		p.settle(i)
		if f == nil {
			return nil, nil, never
		}
		c.credit -= f.Len
		return f, s, 0
	}
	return nil, nil, again
}

// settle forgets a priority that has nothing left to send.
func (p *port) settle(i uint8) {
	if c := &p.classes[i]; c.head == nil && c.controls.len() == 0 {
		p.busy &^= 1 << i
	}
}

// choose says which of some priorities is next: the highest strict one, else by deficit round robin
// (Shreedhar and Varghese, SIGCOMM 1995, but that credit may be overdrawn by a packet).
func (p *port) choose(avail uint8) uint8 {
	if s := avail & p.strict; s != 0 {
		return uint8(bits.Len8(s)) - 1
	}
	if avail&(avail-1) == 0 {
		i := uint8(bits.TrailingZeros8(avail))
		p.classes[i].credit = p.classes[i].quantum // alone it gets all
		return i
	}
	for {
		c := &p.classes[p.turn]
		if avail&(1<<p.turn) != 0 && c.credit > 0 {
			return p.turn
		}
		p.turn = (p.turn + 1) & 7
		if c = &p.classes[p.turn]; avail&(1<<p.turn) != 0 {
			c.credit = min(c.credit+c.quantum, c.quantum)
		}
	}
}

// send puts a frame on the line.
func (p *port) send(f *link.Frame, start loop.Time) (end loop.Time) {
	end = p.line.Send(start, f.Len)
	c := &p.d.count.Priority[f.Priority&7]
	c.TxPackets++
	c.TxBytes += uint64(f.Len)
	p.d.leave(f, p.onWire(end))
	return end
}

// jitterStream tells the random numbers of jitter from others of the device's seed.
const jitterStream = 0x6a74

// onWire is when a frame that the line has sent at a time is on the wire.
func (p *port) onWire(end loop.Time) loop.Time {
	most := p.d.cfg.Profile.Stages.Jitter
	if most == 0 {
		return end
	}
	late, _ := bits.Mul64(p.jitter.Uint64(), uint64(most))
	p.last = max(end.Add(time.Duration(late)), p.last)
	return p.last
}

// blockedAt is which priorities the peer holds back.
func (p *port) blockedAt(now loop.Time) uint8 {
	if p.blocked != 0 && now >= p.unblock {
		p.look(now)
	}
	return p.blocked
}

// look works out anew what the peer holds back.
func (p *port) look(now loop.Time) {
	p.blocked, p.unblock = 0, never
	for i := range uint8(8) {
		if until := p.paused.Until(i); until > now {
			p.blocked |= 1 << i
			p.unblock = min(p.unblock, until)
		}
	}
}

// receive takes a frame that isn't RoCE: pause frames are for the port, others for nobody.
func (p *port) receive(f *link.Frame) {
	pfc := &f.PFC
	switch global := p.d.cfg.Profile.Pause.Global; {
	case f.Kind == roce.KindPFC && !global:
		if f.Bytes != nil {
			*pfc = f.View.PFC()
		}
	case f.Kind == roce.KindPause && global:
		if f.Bytes != nil {
			for i := range uint8(8) {
				pfc.Set(i, f.View.Pause())
			}
		}
	default:
		return
	}
	pfc.Enabled &= p.obeys
	now := p.d.loop.Now()
	p.paused.Take(now, p.d.cfg.Rate, pfc)
	for i := range p.classes {
		if pfc.Enabled&(1<<i) != 0 {
			p.d.count.Priority[i].RxPause++
		}
	}
	p.look(now)
	p.run()
}

// setLink brings the port up or down. Who was paused isn't any more.
func (p *port) setLink(up bool) {
	p.down = !up
	now := p.d.loop.Now()
	p.paused.Take(now, p.d.cfg.Rate, &roce.PFC{Enabled: 0xff})
	p.look(now)
	p.in.reset(now)
	p.run()
}
