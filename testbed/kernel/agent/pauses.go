//go:build linux

package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// pausing is a port that pauses its peer. Times are wall times, of the engine's clock.
type pausing struct {
	*Port
	fd    int // a raw socket past the port's queues
	state link.Pauser
	storm storming
	told  [8]time.Duration // when the kernel told the peer of a pause that it has not begun yet
	alone [8]bool          // the kernel told the peer to pause, and the agent has said nothing since
}

// set takes what an ingress group asks for now.
func (p *pausing) set(now time.Duration, priority uint8, pause bool) error {
	if p.speaks(now, priority, pause && p.Sends>>(priority&7)&1 != 0) {
		return p.send(now)
	}
	return nil
}

// speaks says whether the peer must be sent a frame now. A pause that was over before the agent heard of it has been told by the kernel
// alone: unless the agent ends it, the peer is silent for all the time that the kernel's frame asked for.
func (p *pausing) speaks(now time.Duration, priority uint8, pause bool) bool {
	i, at := priority&7, loop.Time(now)
	alone := p.alone[i]
	p.alone[i] = false
	switch {
	case pause:
		return p.state.XOFF(at, i)
	case alone:
		p.state.XOFF(at, i)
	}
	return p.state.XON(at, i)
}

// refresh repeats the pause when that is due, and says when it is due next; false: nothing is paused.
func (p *pausing) refresh(now time.Duration) (next time.Duration, ok bool, err error) {
	at, ok := p.state.Refresh()
	if ok && time.Duration(at) <= now {
		err = p.send(now)
		at, ok = p.state.Refresh()
	}
	return time.Duration(at), ok, err
}

func (p *pausing) send(now time.Duration) error {
	var f link.Frame
	p.state.Fill(loop.Time(now), p.WallRate, &f)
	frame := roce.AppendPFC(nil, p.MAC, &f.PFC)
	if err := unix.Sendto(p.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: p.Index}); err != nil && err != unix.ENETDOWN {
		return fmt.Errorf("%s: send a pause frame: %w", p.Name, err)
	}
	return nil // a link that is down loses pauses as it loses everything
}

// obeyed takes word that the peer has begun to be silent, and says how long that took since the first frame came that found the threshold reached;
// false: none had come, so that nothing was taken of the headroom.
func (p *pausing) obeyed(at time.Duration, priority uint8) (took time.Duration, ok bool) {
	told := p.told[priority&7]
	p.told[priority&7] = 0
	return at - told, told != 0 && at >= told
}

func (p *pausing) read(now time.Duration) (r PortReading) {
	r.TxPauses, r.Began, r.Sends = p.state.Frames, p.state.Began, p.Sends
	for i := range r.Paused {
		r.Paused[i] = p.state.Time(loop.Time(now), uint8(i)) + p.storm.time(now, i)
		r.TxPauses[i] += p.storm.count[i]
	}
	r.Faults.Storm, r.Stormed = p.storm.Storm, p.storm.frames
	return r
}
