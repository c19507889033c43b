//go:build linux

package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
)

// Faults are what is wrong with a NIC. The zero value is nothing.
type Faults struct {
	Storm   Storm
	MuteCNP bool          // it sends no CNPs
	CNPGap  time.Duration // the least time between two, whichever flows they are for; fabric time
}

// Storm is a port that pauses its peer for nothing. The zero value is none.
type Storm struct {
	Priorities uint8         // bit i for priority i
	Quanta     uint16        // that each frame asks for, in 512 bit times of the link
	Every      time.Duration // from one frame to the next, wall time; 0: half of what the quanta come to, so that the pause never ends
}

// storming is a storm in force. It knows nothing of the pauses that groups ask for, whose frames go beside its own. Times are wall times.
type storming struct {
	Storm
	every, lasts time.Duration
	last         time.Duration // frame
	spent        [8]time.Duration
	count        [8]uint64 // frames that spoke of a priority
	frames       uint64    // but for those that ended a storm
}

// time is for how long a priority was paused up to now.
func (s *storming) time(now time.Duration, priority int) time.Duration {
	n := s.spent[priority]
	if s.Priorities>>priority&1 != 0 {
		n += max(min(now-s.last, s.lasts), 0)
	}
	return n
}

// say sends a frame that speaks of priorities.
func (p *pausing) say(priorities uint8, quanta uint16) error {
	var f roce.PFC
	for i := range uint8(8) {
		if priorities>>i&1 != 0 {
			f.Set(i, quanta)
			p.storm.count[i]++
		}
	}
	if err := unix.Sendto(p.fd, roce.AppendPFC(nil, p.MAC, &f), 0, &unix.SockaddrLinklayer{Ifindex: p.Index}); err != nil && err != unix.ENETDOWN {
		return fmt.Errorf("%s: send a pause frame: %w", p.Name, err)
	}
	return nil
}

// setStorm puts a storm in the place of the one that there was.
func (p *pausing) setStorm(now time.Duration, to Storm) error {
	s := &p.storm
	if s.Storm == to {
		return nil
	}
	for i := range s.spent {
		s.spent[i] = s.time(now, i)
	}
	ended := s.Priorities &^ to.Priorities &^ p.state.Paused()
	s.Storm = to
	if ended != 0 {
		if err := p.say(ended, 0); err != nil {
			return err
		}
	}
	if to.Priorities == 0 {
		return nil
	}
	s.lasts = roce.QuantaTime(to.Quanta, int64(p.WallRate))
	if s.every = to.Every; s.every == 0 {
		s.every = max(s.lasts/2, 1)
	}
	s.last = now
	s.frames++
	return p.say(to.Priorities, to.Quanta)
}

// beat sends the frame of a storm that is due, and says when the next one is; false: there is no storm. One that comes late moves those behind it.
func (p *pausing) beat(now time.Duration) (next time.Duration, ok bool, err error) {
	s := &p.storm
	if s.Priorities == 0 {
		return 0, false, nil
	}
	if due := s.last + s.every; due <= now {
		for i := range s.spent {
			s.spent[i] = s.time(now, i)
		}
		s.last = max(due, now-s.every)
		s.frames++
		err = p.say(s.Priorities, s.Quanta)
	}
	return s.last + s.every, true, err
}

// setFaults changes what is wrong with the NIC at a port.
func (a *agent) setFaults(port int, f Faults) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, n := a.pausing[port], a.nics[port]
	switch {
	case p == nil:
		return fmt.Errorf("there is no port %d", port)
	case n == nil && (f.MuteCNP || f.CNPGap > 0):
		return fmt.Errorf("port %d has no DCQCN", port)
	}
	if n != nil {
		n.mute, n.gap = f.MuteCNP, f.CNPGap
	}
	return p.setStorm(engine.Now(), f.Storm)
}

// setSends changes in which priorities a port pauses its peer. A pause in one that it doesn't any more ends, and one that is asked for in one that it
// does now begins.
func (a *agent) setSends(port int, sends uint8) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pausing[port]
	if p == nil {
		return fmt.Errorf("there is no port %d", port)
	}
	p.Sends = sends
	for i := range uint8(8) {
		pausing, err := a.tables.Pausing(port, i)
		if err == nil {
			err = p.set(engine.Now(), i, pausing)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
