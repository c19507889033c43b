//go:build linux

package agent

import (
	"errors"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/topo"
)

const (
	// countEvery is how often a limited flow's bytes are counted, for the byte counter of its reaction point, and how often one is looked at
	// that waits for its last packets.
	countEvery = 10 * time.Millisecond
	// lookAgain is how often it is asked whether a flow's queue pair is still there.
	lookAgain = 5 * time.Second
)

// paced is a flow of the engine: an *engine.Flow.
type paced interface {
	SetRate(topo.Rate) error
	Read() (engine.FlowReading, error)
	Close() (closed bool, err error)
}

// flows are the reaction points of a port's queue pairs. A queue pair has one from its first CNP on, and costs nothing before.
type flows struct {
	port     *Port
	dilation loop.Dilation
	peers    *peers
	open     func(key engine.FlowKey, rate uint64) (paced, error)
	reaction *dcqcn.Reaction
	last     loop.Time // of the reaction points' events

	byQPN map[uint32]*flow // by local queue pair
	owner map[source]*flow // who has the engine's flow to a queue pair
	due   dueFlows

	without uint64 // times that a flow could not be given a rate
}

// flow is a queue pair's reaction point and, while it is limited, its flow in the engine, which has its requests and its responses.
type flow struct {
	rp      dcqcn.RP
	qpn     uint32
	to      source
	engine  paced         // nil: not open
	sent    uint64        // bytes that the reaction point has heard of
	rate    dcqcn.Rate    // that the engine has; 0: it is to be told
	without bool          // the engine had no flow for it
	gone    bool          // the queue pair is: it only waits for its last packets
	checked time.Duration // when the queue pair was there
	at      time.Duration // when it is looked at next
	place   int           // in the heap; -1: not in it
}

func newFlows(p *Port, d loop.Dilation, peers *peers, open func(engine.FlowKey, uint64) (paced, error)) *flows {
	return &flows{port: p, dilation: d, peers: peers, open: open, byQPN: map[uint32]*flow{}, owner: map[source]*flow{}}
}

func rateOf(bits uint64) topo.Rate { return topo.Rate(bits) }

// set changes the parameters. Flows keep their rates, and change them by the new parameters from now on.
func (s *flows) set(at time.Duration, params dcqcn.Params) error {
	reaction, err := dcqcn.NewReaction(params, dcqcn.Rate(s.port.NIC.Line))
	if err != nil {
		return err
	}
	now := s.fabric(at)
	for _, f := range s.byQPN {
		reaction.Adopt(&f.rp, now)
		s.due.set(f, at)
	}
	if s.reaction != nil {
		reaction.Counters = s.reaction.Counters
	}
	s.reaction = reaction
	return nil
}

// fabric is an engine's time as a fabric's, never before one that there has been.
func (s *flows) fabric(at time.Duration) loop.Time {
	s.last = max(s.last, loop.Time(s.dilation.Fabric(at)))
	return s.last
}

// cnp takes a CNP for a local queue pair that is connected to another.
func (s *flows) cnp(at time.Duration, qpn uint32, to source) error {
	f := s.byQPN[qpn]
	if f != nil && f.to != to { // the number is another queue pair's now
		if err := s.drop(f, at); err != nil {
			return err
		}
		f = nil
	}
	if f == nil {
		f = &flow{rp: s.reaction.Flow(), qpn: qpn, to: to, place: -1}
		s.byQPN[qpn] = f
	}
	f.checked = at
	now := s.fabric(at)
	if err := s.count(f, now); err != nil {
		return err
	}
	f.rp.OnCNP(now)
	return s.pace(f, at)
}

// count tells a reaction point what its flow has sent.
func (s *flows) count(f *flow, now loop.Time) error {
	if f.engine == nil {
		return nil
	}
	r, err := f.engine.Read()
	if err != nil {
		return err
	}
	if sent := r.TxBytes - f.sent; sent > 0 {
		f.sent = r.TxBytes
		f.rp.OnSent(now, dcqcn.Bytes(sent))
	}
	return nil
}

// pace gives the engine the rate of a flow, and says when the flow is looked at again.
func (s *flows) pace(f *flow, now time.Duration) error {
	if !f.rp.Limited() {
		return s.release(f, now)
	}
	if err := s.limit(f); err != nil {
		return err
	}
	at := f.checked + lookAgain
	if next, ok := f.rp.NextTimer(); ok {
		at = min(at, now+s.dilation.Wall(next.Sub(s.last)))
	}
	if s.port.NIC.Params.RPGByteReset > 0 {
		at = min(at, now+countEvery)
	}
	s.due.set(f, at)
	return nil
}

// limit has the engine send a flow at its reaction point's rate. Where the engine has no more flows it goes on at line rate, until one is free.
func (s *flows) limit(f *flow) error {
	rate := s.wall(f.rp.Rate())
	if o := s.owner[f.to]; o != nil && o != f { // of a queue pair that was connected to the same one before: it is gone, whether that was seen or not
		f.engine, f.sent, f.rate = o.engine, o.sent, 0
		s.owner[f.to] = f
		s.forget(o)
	}
	switch {
	case f.engine == nil:
		p, err := s.open(engine.FlowKey{Port: s.port.Number, To: f.to.addr, QPN: f.to.qpn}, rate)
		if errors.Is(err, engine.ErrFlows) {
			if !f.without {
				s.without++
			}
			f.without, f.rate = true, 0
			return nil
		}
		if err != nil {
			return err
		}
		f.engine, f.sent = p, 0
		s.owner[f.to] = f
	case f.rate != f.rp.Rate():
		if err := f.engine.SetRate(rateOf(rate)); err != nil {
			return err
		}
	}
	f.rate, f.without = f.rp.Rate(), false
	return nil
}

// wall is a rate in bits a second of wall time.
func (s *flows) wall(r dcqcn.Rate) uint64 { return max(uint64(r)/uint64(s.dilation.Factor()), 8) }

// release lets a flow go back to the port's queue, once nothing of it waits apart.
func (s *flows) release(f *flow, now time.Duration) error {
	f.rate = 0
	if f.engine != nil {
		closed, err := f.engine.Close()
		if err != nil {
			return err
		}
		if !closed {
			s.due.set(f, now+countEvery)
			return nil
		}
		f.engine, f.sent = nil, 0
	}
	if s.owner[f.to] == f {
		delete(s.owner, f.to)
	}
	if f.gone {
		s.due.remove(f) // if it is in it
	} else {
		s.due.set(f, max(f.checked, now)+lookAgain)
	}
	return nil
}

// drop forgets a flow whose queue pair is gone. What of it waits still goes as fast as the line lets it, and then its flow in the engine is others'.
func (s *flows) drop(f *flow, now time.Duration) error {
	s.forget(f)
	return s.release(f, now)
}

// forget takes a flow's queue pair for gone. Its flow in the engine is not closed.
func (s *flows) forget(f *flow) {
	if s.byQPN[f.qpn] == f {
		delete(s.byQPN, f.qpn)
	}
	s.due.remove(f)
	f.gone = true
}

// timers does what is due, and says when something is next; false: nothing.
func (s *flows) timers(now time.Duration) (next time.Duration, ok bool, err error) {
	for len(s.due) > 0 && s.due[0].at <= now {
		if err := s.timer(s.due[0], now); err != nil {
			return 0, false, err
		}
	}
	if len(s.due) == 0 {
		return 0, false, nil
	}
	return s.due[0].at, true, nil
}

// timer looks at a flow that is due.
func (s *flows) timer(f *flow, now time.Duration) error {
	if f.gone {
		return s.release(f, now)
	}
	if now-f.checked >= lookAgain {
		remote, ok, err := s.peers.of(now, f.qpn)
		if err != nil {
			return err
		}
		if !ok || remote != f.to.qpn {
			return s.drop(f, now)
		}
		f.checked = now
	}
	t := s.fabric(now)
	if err := s.count(f, t); err != nil {
		return err
	}
	f.rp.OnTimer(t)
	return s.pace(f, now)
}
