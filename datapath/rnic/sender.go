package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// source makes packets when the port asks: a QP's requester, or its responder's READ responses.
type source interface {
	// next is the packet that is to leave now. Nil: there is none, and the source will call ready again.
	next(now loop.Time) *link.Frame
}

// sender is the port's bookkeeping of a source, a field of its owner.
type sender struct {
	src      source
	priority uint8
	state    senderState

	// The source says these of the packet that next returns.
	spent bool             // it knows that it has no other: it will call ready again when it has
	kind  verbs.MemoryKind // where its payload comes from
	addr  uint64           // the payload's address; 0: nothing is read from memory

	ect   bool        // what it sends can be marked
	pace  *pace       // nil: at line rate
	since loop.Time   // from when on it has had something to send without a break
	held  *link.Frame // made already: its payload isn't there yet
	after *sender     // next in its priority's turns
	timer loop.Timer  // while it waits

	// For traces.
	message   uint64 // the number of the message that the packet belongs to
	qpn       uint32
	responder bool
}

type senderState uint8

const (
	idle    senderState = iota
	inTurn              // in its priority's turns
	waiting             // for its pacing, or for a payload
)

// ready says that s has, or may have, something to send.
func (p *port) ready(s *sender) { p.readyAt(s, p.d.loop.Now()) }

// readyAt is ready for what comes of something that is through the stages before it at a time.
func (p *port) readyAt(s *sender, at loop.Time) {
	if s.state != idle {
		s.spent = false
		return
	}
	s.since = at
	p.push(s)
	p.run()
}

// forget takes back what a source had made and not sent: its queue pair is gone, or in error.
func (p *port) forget(s *sender) {
	if s.held != nil {
		p.d.frames.Put(s.held)
		s.held = nil
	}
	if s.state == waiting {
		p.d.loop.Disarm(&s.timer)
		s.state = idle
	}
}

// wait has a sender wait by itself; after that it is its turn.
func (p *port) wait(s *sender, at loop.Time) {
	if s.timer.Fire == nil {
		s.timer.Fire = func() { p.pushFront(s); p.run() }
	}
	s.state = waiting
	p.d.loop.Arm(&s.timer, at)
}

// pull is the source's packet that can start at a time. Without one it has none, or waits by itself, or for the turn
// of another priority.
func (p *port) pull(s *sender, now, start loop.Time) *link.Frame {
	s.state = idle
	if s.pace != nil {
		if at := s.pace.next(now); at > start {
			p.wait(s, s.pace.wake(at))
			return nil
		}
	}
	if f := s.held; f != nil {
		s.held = nil
		return f
	}
	s.spent = false
	f := s.src.next(now)
	if f == nil {
		return nil
	}
	if s.ect {
		f.TrafficClass = ect(f.TrafficClass)
	}
	if at := p.d.hw.transmit(now, s, f); at > start {
		s.held = f
		p.wait(s, at)
		return nil
	}
	if p.d.hw.trace != nil && s.pace != nil {
		p.d.hw.tell(s, StagePacing, now, f.Packet.BTH.PSN, f.Packet.PayloadLen)
	}
	if f.Priority != s.priority { // datagrams choose theirs one by one
		s.held, s.priority = f, f.Priority
		p.pushFront(s)
		return nil
	}
	return f
}

// sent notes a packet of n bytes of a source that is on the line.
func (p *port) sent(s *sender, now, start loop.Time, n int32) {
	if s.pace != nil {
		s.pace.sent(now, start, n)
	}
	if !s.spent {
		p.push(s)
	}
}
