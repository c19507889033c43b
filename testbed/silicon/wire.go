package silicon

import (
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

// Wire is one direction of a link with everything that goes wrong on it, which strikes after the sending
// port's line and before the link's own delay. It belongs to the sender's loop.
type Wire struct {
	next   link.Wire
	loop   loop.Loop
	frames *link.Pool

	pickers []*picker
	stages  []*stage
	cuts    int       // faults that have the link down
	last    loop.Time // when the last frame that keeps its place goes on
	tap     *tap
	watches []*watch // the port's
	keep    bool

	passed uint64 // frames that came from the port
	lost   uint64 // of them, those that found the link down
}

// NewWire puts a wire before the one that carries frames across the link.
func NewWire(next link.Wire, l loop.Loop, frames *link.Pool) *Wire {
	return &Wire{next: next, loop: l, frames: frames}
}

// Send implements link.Wire.
func (w *Wire) Send(f *link.Frame, at loop.Time) {
	w.passed++
	if w.keep {
		own(f)
	}
	if w.tap != nil {
		w.tap.sent(f, at)
	}
	if len(w.watches) > 0 {
		look(w.watches, f, w.loop.Now())
	}
	if len(w.stages) == 0 && len(w.pickers) == 0 && w.cuts == 0 && at >= w.last {
		w.next.Send(f, at)
		return
	}
	w.impair(f, at)
}

// Keep makes frames carry their payload from here on, or no longer: a frame in struct form refers to its sender's
// memory, which may have changed when a copy that was sent again arrives behind the one that counted. No receiver
// looks at such a payload, but a capture does.
func (w *Wire) Keep(on bool) { w.keep = on }

// own makes a frame's payload its own.
func own(f *link.Frame) {
	if p := f.Packet.Payload; f.Bytes == nil && len(p) > 0 && (cap(f.Buf) == 0 || &p[0] != &f.Buf[:1][0]) {
		f.Buf = append(f.Buf[:0], p...)
		f.Packet.Payload = f.Buf
	}
}

func (w *Wire) impair(f *link.Frame, at loop.Time) {
	if w.cuts > 0 {
		w.lost++
		w.frames.Put(f)
		return
	}
	var picked fate
	if len(w.pickers) > 0 {
		if picked = w.pick(f); picked.gone {
			w.frames.Put(f)
			return
		}
	}
	var copies [maxStages]*link.Frame
	twice := 0
	overtakes := false
	var shelver *stage // keeps it
	when := at
	for _, s := range w.stages {
		if s.model.is() {
			s.seen++
			switch s.decide(f) {
			case lose:
				s.hits++
				w.frames.Put(f)
				for _, c := range picked.copies {
					w.frames.Put(c)
				}
				return
			case damage:
				if !damageFrame(f, s.draw(drawBit)) {
					continue
				}
				s.hits++
			case double:
				s.hits++
				copies[twice] = w.copyOf(f)
				twice++
			case overtake:
				s.hits++
				overtakes = true
			case shelve:
				if shelver == nil && picked.holder == nil && picked.delay == 0 {
					s.hits++
					shelver = s
				}
			}
		} else {
			s.seen++
			s.hits++
		}
		when = when.Add(s.late())
	}
	if shelver != nil {
		shelver.shelf.Put(anyFlow, shelver.window, parcel{f, append(picked.copies, copies[:twice]...), picked.facts})
		return
	}
	if len(w.pickers) > 0 && (picked.holder != nil || picked.delay > 0) {
		picked.copies = append(picked.copies, copies[:twice]...)
		w.settle(f, &picked, when)
		return
	}
	if overtakes {
		when = at // and the others' order stays theirs
	} else {
		when = max(when, w.last)
		w.last = when
	}
	if len(w.pickers) > 0 {
		picked.copies = append(picked.copies, copies[:twice]...)
		w.settle(f, &picked, when)
		return
	}
	w.next.Send(f, when)
	for _, c := range copies[:twice] {
		w.next.Send(c, when)
	}
	w.follow(when)
}

// anyFlow is whose packets count on a stage's shelf: all that go on.
const anyFlow = 0

// follow sends what has been overtaken by enough packets on, right behind the one that has just gone on.
func (w *Wire) follow(when loop.Time) {
	for _, s := range w.stages {
		if s.shelf.Len() > 0 {
			s.shelf.Pass(anyFlow, func(p parcel) { w.send(p, when) })
		}
	}
}

// send sends a frame with its copies on, unless the link is down by now.
func (w *Wire) send(p parcel, when loop.Time) {
	if w.cuts > 0 {
		for _, f := range append(p.copies, p.frame) {
			w.lost++
			w.frames.Put(f)
		}
		return
	}
	w.next.Send(p.frame, when)
	for _, c := range p.copies {
		w.next.Send(c, when)
	}
}

// copyOf makes a frame like another one, which refers to nothing of it.
func (w *Wire) copyOf(f *link.Frame) *link.Frame {
	c := w.frames.Get()
	c.Len, c.Dst, c.Flow, c.Port, c.Kind, c.TrafficClass, c.TTL, c.Priority, c.Tag = f.Len, f.Dst, f.Flow, f.Port, f.Kind, f.TrafficClass, f.TTL, f.Priority, f.Tag
	c.Damaged, c.PFC = f.Damaged, f.PFC
	c.Content = append(c.Content[:0], f.Content...)
	if f.Bytes != nil {
		c.Buf = append(c.Buf[:0], f.Bytes...)
		c.Bytes = c.Buf
		_ = c.View.Parse(c.Bytes) // as much of it as the original's
		return c
	}
	c.Packet = f.Packet
	if f.Packet.Payload != nil {
		c.Buf = append(c.Buf[:0], f.Packet.Payload...)
		c.Packet.Payload = c.Buf
	}
	return c
}

// damageFrame flips one bit behind the UDP header (or the IP header of what has none), which a number draws. It says whether there was one:
// what is not IP is left alone.
func damageFrame(f *link.Frame, drawn uint64) bool {
	if f.Kind < roce.KindIP {
		return false
	}
	if f.Bytes == nil {
		f.Damaged = true
		return true
	}
	head := roce.EthernetLen + roce.UDPLen
	if f.View.IsIPv6() {
		head += roce.IPv6Len
	} else {
		head += int(f.Bytes[roce.EthernetLen]&15) * 4
	}
	if head >= len(f.Bytes) {
		return false
	}
	bit := drawn % uint64((len(f.Bytes)-head)*8)
	f.Bytes[head+int(bit/8)] ^= 1 << (bit % 8)
	_ = f.View.Parse(f.Bytes)
	return true
}

// Impairment is one thing that goes wrong on a wire, by a name that is unique there.
type Impairment struct {
	ID    string
	Model Model // decides about single packets; nil for a pure delay
	Seed  uint64
	Delay Delay // holds every packet that no model lets past
}

// Delay is an additional delay with jitter, fabric time.
type Delay struct {
	Delay, Jitter time.Duration
	Distribution  string // "", "uniform", "normal", "pareto" or "paretonormal"
}

// maxStages is how many things may go wrong on one wire.
const maxStages = 8

// stage is an impairment in force.
type stage struct {
	Impairment
	model      model
	seen, hits uint64
	state      uint64
	shelf      packet.Shelf[parcel] // of a model that shelves
	window     uint16               // packets that overtake one that is shelved
}

// Allowed says why an impairment can't be put on beside those that are there.
func (w *Wire) Allowed(i Impairment) error {
	if slices.ContainsFunc(w.stages, func(s *stage) bool { return s.ID == i.ID }) {
		return fmt.Errorf("%s is on this link already", i.ID)
	}
	if len(w.stages) >= maxStages {
		return fmt.Errorf("%s: one link has at most %d things go wrong with it", i.ID, maxStages)
	}
	return nil
}

// Add puts an impairment on.
func (w *Wire) Add(i Impairment) error {
	if err := w.Allowed(i); err != nil {
		return err
	}
	s := &stage{Impairment: i}
	if i.Model != nil {
		s.model = i.Model.model()
		if o, ok := i.Model.(Overtaken); ok {
			s.window = o.Window
		}
	}
	w.stages = append(w.stages, s)
	slices.SortStableFunc(w.stages, func(a, b *stage) int { return order(a) - order(b) })
	return nil
}

// Remove takes an impairment off and says what it hit; ok is false when it is not there.
func (w *Wire) Remove(id string) (hits uint64, ok bool) {
	for i, s := range w.stages {
		if s.ID == id {
			w.stages = slices.Delete(w.stages, i, i+1)
			s.shelf.Drain(func(p parcel) { w.send(p, max(w.loop.Now(), w.last)) }) // what has not been overtaken yet goes on at once
			return s.hits, true
		}
	}
	return 0, false
}

// Find is an impairment as it is in force, with how many packets it has seen and hit.
func (w *Wire) Find(id string) (i Impairment, seen, hits uint64, ok bool) {
	for _, s := range w.stages {
		if s.ID == id {
			return s.Impairment, s.seen, s.hits, true
		}
	}
	return Impairment{}, 0, 0, false
}

// Cut takes everything off the wire from now on; Mend takes one cut back.
func (w *Wire) Cut()  { w.cuts++ }
func (w *Wire) Mend() { w.cuts-- }

// IsCut says whether a fault has the link down.
func (w *Wire) IsCut() bool { return w.cuts > 0 }

// Passed is how many frames the port has sent; Lost how many of them found the link down.
func (w *Wire) Passed() uint64 { return w.passed }

// Lost is how many frames found the link down.
func (w *Wire) Lost() uint64 { return w.lost }
