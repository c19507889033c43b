package rnic

import (
	"errors"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Storm is a port that pauses its peer though it has room. The zero value is none.
type Storm struct {
	Priorities uint8 // bit i for priority i
	// Quanta is what each frame asks for, in 512 bit times of the link, 1 to 65535; 0: 65535.
	Quanta uint16
	// Every is the time from one frame to the next, fabric time; 0: half of what the quanta come to, so that the pause never ends.
	Every time.Duration
}

func (s *Storm) validate() error {
	if s.Every < 0 || s.Priorities == 0 && *s != (Storm{}) {
		return errors.New("a storm needs priorities, and a time between frames that is not negative")
	}
	return nil
}

// storming is a storm in force. It knows nothing of the pauses that the receive buffer asks for, whose frames go beside its own.
type storming struct {
	Storm
	p     *port
	timer loop.Timer
	lasts time.Duration // a frame's pause
	last  loop.Time     // frame
	spent [8]time.Duration
	count [8]uint64 // frames
}

// set puts a storm in the place of the one that there was.
func (s *storming) set(p *port, n Storm) {
	now := p.d.loop.Now()
	ended := s.Priorities &^ n.Priorities
	s.settle(now)
	p.d.loop.Disarm(&s.timer)
	s.p, s.Storm = p, n
	if ended != 0 {
		s.say(now, ended&^p.in.pauser.Paused(), 0)
	}
	if n.Priorities == 0 {
		return
	}
	if s.Quanta == 0 {
		s.Quanta = 0xffff
	}
	s.lasts = roce.QuantaTime(s.Quanta, int64(p.d.cfg.Rate))
	if s.Every == 0 {
		s.Every = max(s.lasts/2, 1)
	}
	s.timer.Fire = s.beat
	s.last = now
	s.frame(now)
}

func (s *storming) beat() {
	s.settle(s.p.d.loop.Now())
	s.frame(s.last.Add(s.Every))
}

// frame sends the next frame, which is due now, and waits for the one after it.
func (s *storming) frame(due loop.Time) {
	s.last = due
	s.say(s.p.d.loop.Now(), s.Priorities, s.Quanta)
	s.p.d.loop.Arm(&s.timer, due.Add(s.Every))
}

// settle accounts for the pause of the last frame up to now.
func (s *storming) settle(now loop.Time) {
	for i := range s.spent {
		s.spent[i] += s.now(now, uint8(i))
	}
}

// now is for how long the last frame has kept a priority paused up to now.
func (s *storming) now(now loop.Time, priority uint8) time.Duration {
	if s.Priorities&(1<<priority) == 0 {
		return 0
	}
	return max(min(now.Sub(s.last), s.lasts), 0)
}

// time is for how long a priority was paused up to now.
func (s *storming) time(now loop.Time, priority uint8) time.Duration {
	return s.spent[priority&7] + s.now(now, priority&7)
}

// say sends a frame past all queues. A port without a link sends none.
func (s *storming) say(now loop.Time, priorities uint8, quanta uint16) {
	p, d := s.p, s.p.d
	if p.down || priorities == 0 {
		return
	}
	f := d.frames.Get()
	f.Kind, f.Len, f.Dst = roce.KindPFC, roce.MinFrameLen, link.NoDst
	f.PFC = roce.PFC{}
	if p.in.pauser.Global {
		f.Kind, priorities = roce.KindPause, 0xff
	}
	for i := range uint8(8) {
		if priorities&(1<<i) != 0 {
			f.PFC.Set(i, quanta)
			s.count[i]++
		}
	}
	f.Packet.SrcMAC = d.cfg.MAC
	d.cfg.Wire.Send(f, p.onWire(p.line.Send(now, f.Len)))
}
