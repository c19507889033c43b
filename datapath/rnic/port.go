package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
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
	last     loop.Time // when its last packet so far leaves
	queued   bool
	after    *sender
}

// port sends what sources have, one after the other, and what control was given.
type port struct {
	d       *Device
	line    link.Line
	timer   loop.Timer
	down    bool
	sending bool

	head, tail *sender
	controls   []timed
	first      int // of controls
}

type timed struct {
	f  *link.Frame
	at loop.Time
}

func (p *port) init(d *Device) {
	p.d = d
	p.line = link.NewLine(d.cfg.Rate)
	p.timer.Fire = p.run
}

// ready says that s has, or may have, something to send.
func (p *port) ready(s *sender) {
	if !s.queued {
		p.push(s)
		p.run()
	}
}

func (p *port) push(s *sender) {
	s.queued = true
	if p.tail == nil {
		p.head = s
	} else {
		p.tail.after = s
	}
	p.tail = s
}

// control sends an ACK, a NAK or a CNP, not before a time.
func (p *port) control(f *link.Frame, notBefore loop.Time) {
	p.controls = append(p.controls, timed{f, notBefore})
	p.run()
}

func (p *port) run() {
	if p.sending || p.down {
		return
	}
	p.sending = true
	now := p.d.loop.Now()
	for {
		if free := p.line.Free(); free > now {
			if p.head != nil || p.first < len(p.controls) {
				p.d.loop.Arm(&p.timer, free)
			}
			break
		}
		if p.first < len(p.controls) && p.controls[p.first].at <= now {
			f := p.controls[p.first].f
			p.controls[p.first].f = nil
			if p.first++; p.first == len(p.controls) {
				p.controls, p.first = p.controls[:0], 0
			}
			p.send(now, f)
			continue
		}
		s := p.head
		if s == nil {
			if p.first < len(p.controls) {
				p.d.loop.Arm(&p.timer, p.controls[p.first].at)
			}
			break
		}
		if p.head = s.after; p.head == nil {
			p.tail = nil
		}
		s.after, s.queued = nil, false
		if f := s.src.next(now); f != nil {
			p.push(s)
			s.last = p.send(now, f)
		}
	}
	p.sending = false
}

// setLink brings the line up or down.
func (p *port) setLink(up bool) {
	p.down = !up
	p.run()
}

// receive takes a frame that isn't RoCE: nothing is for this port yet.
func (p *port) receive(f *link.Frame) {}

func (p *port) send(now loop.Time, f *link.Frame) loop.Time {
	at := p.line.Send(now, f.Len)
	p.d.leave(f, at)
	return at
}
