package asic

import (
	"math/rand/v2"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// Switch is a switch. All its methods are for its loop.
type Switch struct {
	loop     loop.Loop
	frames   *link.Pool
	ports    []port
	hops     []hop
	sets     []set
	spread   spread
	memory   memory
	marks    rand.PCG
	observer Observer
	sampler  sampler
	on       bool

	originated uint64 // frames that the switch made: replies and ICMP errors
	consumed   uint64 // frames that were for the switch

	name      string
	config    []PortConfig
	settings  Settings
	resolve   func(roce.Addr) uint32
	hashSeed  uint64
	rightSeed *uint64 // Balance.RightSeed
	ownSeed   uint64  // where Settings gives none
	late      lateRoutes
}

// seed makes the switch's random streams, one for each purpose.
func (s *Switch) seed(seed uint64) {
	const marks, spray, hash = 1, 2, 3
	s.marks.Seed(seed, marks)
	s.spread.lot.Seed(seed, spray)
	s.ownSeed = rand.NewPCG(seed, hash).Uint64()
}

// Receive implements link.Receiver: a frame has come in whole at port f.Port.
func (s *Switch) Receive(f *link.Frame) {
	now := s.loop.Now()
	in := &s.ports[f.Port]
	if f.Kind == roce.KindPFC || f.Kind == roce.KindPause {
		in.obey(now, f)
		return
	}
	if !in.up || !s.on {
		s.drop(f, in, DropDown)
		return
	}
	in.rxBytes += uint64(f.Len)
	if f.Kind != roce.KindRoCE || f.Bytes != nil {
		s.receiveBytes(now, f, in)
		return
	}
	if f.TTL <= 1 {
		in.rxUnclassed++
		s.drop(f, in, DropTTL)
		return
	}
	s.forward(now, f, in)
}

// forward sends a frame whose TTL allows it on.
func (s *Switch) forward(now loop.Time, f *link.Frame, in *port) {
	f.Priority = in.table.dscp[f.TrafficClass>>2]
	in.rxWatched += in.table.watched >> (f.TrafficClass >> 2) & 1
	in.rxFrames[f.Priority&7]++
	out := s.route(now, f)
	if out == nil {
		s.unroutable(now, f, in)
		return
	}
	if int64(f.Len) > out.table.frameLen {
		s.tooLong(now, f, in, out)
		return
	}
	f.TTL--
	out.take(now, f, in)
}

// drop ends a frame that no queue or group had anything to do with.
func (s *Switch) drop(f *link.Frame, at *port, why Reason) {
	at.drops[why]++
	if s.observer != nil {
		s.observer.Dropped(s.loop.Now(), int(at.index), why, f)
	}
	s.frames.Put(f)
}

// Name is the switch's.
func (s *Switch) Name() string { return s.name }

// SetLink says that a port's link went up or down. What waits at a port that goes down is dropped,
// routes go over the other members of their sets, and pauses of either direction are forgotten.
func (s *Switch) SetLink(port int, up bool) {
	p := &s.ports[port]
	if p.up == up {
		return
	}
	now := s.loop.Now()
	p.up = up
	s.reroute(now, p)
	if !up {
		p.flush(0xff, DropDown)
		p.forgetPauses(now)
	}
	s.resume(now)
}

// SetPower turns the whole switch off or on, as in a reboot: off, it drops all that waits and all that
// comes, and sends nothing; on, it starts empty with the same settings and routes.
func (s *Switch) SetPower(on bool) {
	if s.on == on {
		return
	}
	now := s.loop.Now()
	s.on = on
	if on {
		return
	}
	for i := range s.ports {
		s.ports[i].flush(0xff, DropDown)
		s.ports[i].forgetPauses(now)
	}
	s.resume(now)
	s.spread.forget()
}

// Powered says whether the switch is on.
func (s *Switch) Powered() bool { return s.on }

// SetRate changes how fast a port sends, in bits a second of fabric time, from the next frame on. The link's
// speed stays what it was: quanta count in its bits, and headroom is for what a peer sends at it. A pause frame waits
// for the frame on the line, which takes longer on a slower one: automatic headroom knows nothing of that.
func (s *Switch) SetRate(port int, rate uint64) { s.ports[port].line.SetRate(rate) }

// Rate is how fast a port sends, in bits a second of fabric time.
func (s *Switch) Rate(port int) uint64 { return s.ports[port].line.Rate() }
