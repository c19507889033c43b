package link

import (
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Pauser is how a port that runs out of buffer keeps its peer silent: which priorities it has
// paused, what the next pause frame says, when it must be repeated. The owner sends the frames;
// they go past its queues, behind the frame that is on the line.
//
// Every frame speaks of all priorities that are paused, with the full quanta, so one refresh
// serves all. A pause that isn't repeated ends by itself (802.1Qbb): the refresh comes when half of it is over.
type Pauser struct {
	// Quanta is what a pause asks for, in 512 bit times, 1 to 65535; 0 is 65535.
	Quanta uint16
	// Global pauses the whole link in one (802.3x) while any priority is paused.
	Global bool

	// Frames counts the pause frames that spoke of a priority: XOFF, refresh and XON. Began counts its pauses.
	Frames [8]uint64
	Began  [8]uint64

	paused  uint8
	over    uint8 // paused no more, and the peer has not been told
	refresh loop.Time
	since   [8]loop.Time
	spent   [8]time.Duration
}

// Paused is which priorities are, bit i for priority i.
func (p *Pauser) Paused() uint8 { return p.paused }

// Pauses says whether the priority is paused.
func (p *Pauser) Pauses(priority uint8) bool { return p.paused&(1<<(priority&7)) != 0 }

// XOFF pauses a priority. It says whether a frame must be sent now: the priority was not paused.
func (p *Pauser) XOFF(now loop.Time, priority uint8) bool {
	i := priority & 7
	if p.paused&(1<<i) != 0 {
		return false
	}
	p.paused |= 1 << i
	p.over &^= 1 << i
	p.since[i] = now
	p.Began[i]++
	return true
}

// XON ends a priority's pause. It says whether a frame must be sent now.
func (p *Pauser) XON(now loop.Time, priority uint8) bool {
	i := priority & 7
	if p.paused&(1<<i) == 0 {
		return false
	}
	p.paused &^= 1 << i
	p.over |= 1 << i
	p.spent[i] += now.Sub(p.since[i])
	return true
}

// Fill makes f, fresh from its pool, the pause frame in struct form that says how things are now, on
// a line of a rate in bits a second. XOFF and XON ask for one, and the refresh.
func (p *Pauser) Fill(now loop.Time, rate uint64, f *Frame) {
	quanta := p.Quanta
	if quanta == 0 {
		quanta = 0xffff
	}
	f.Kind, f.Len = roce.KindPFC, roce.MinFrameLen
	f.PFC = roce.PFC{}
	speaks := p.paused | p.over
	if p.Global {
		f.Kind, speaks = roce.KindPause, 0xff
	}
	for i := range uint8(8) {
		bit := uint8(1) << i
		if speaks&bit == 0 {
			continue
		}
		q := uint16(0)
		if p.paused&bit != 0 || p.Global && p.paused != 0 {
			q = quanta
		}
		f.PFC.Set(i, q)
		p.Frames[i]++
	}
	p.over = 0
	p.refresh = now.Add(roce.QuantaTime(quanta, int64(rate)) / 2)
}

// Refresh is when a frame must be sent again if nothing changes; false while nothing is paused.
func (p *Pauser) Refresh() (at loop.Time, ok bool) { return p.refresh, p.paused != 0 }

// Time is for how long the priority was kept paused up to now.
func (p *Pauser) Time(now loop.Time, priority uint8) time.Duration {
	i := priority & 7
	d := p.spent[i]
	if p.paused&(1<<i) != 0 {
		d += now.Sub(p.since[i])
	}
	return d
}

// Forget ends all pauses without a word to the peer: the link is down.
func (p *Pauser) Forget(now loop.Time) {
	for i := range uint8(8) {
		p.XON(now, i)
	}
	p.over = 0
}
