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

// picker is what is done to single packets on a wire, for one fault. It looks at what the port has sent, before anything else strikes.
type picker struct {
	id       string
	prog     *packet.Program
	matcher  *packet.Matcher
	shelf    packet.Shelf[parcel]
	hits     uint64 // packets
	known    int    // connections
	own, via roce.MAC
}

// parcel is a packet with its copies, and what it was when the port sent it.
type parcel struct {
	frame  *link.Frame
	copies []*link.Frame
	facts  packet.Facts
}

// Pick puts what is done to single packets on the wire, whose ports have these addresses.
func (w *Wire) Pick(id string, p *packet.Program, known []packet.Connection, own, via roce.MAC) error {
	if w.picks(id) != nil {
		return fmt.Errorf("%s is on this link already", id)
	}
	k := &picker{id: id, prog: p, matcher: packet.NewMatcher(p), own: own, via: via}
	for i := range known {
		k.connect(&known[i])
	}
	w.pickers = append(w.pickers, k)
	return nil
}

// Connect tells a fault's events of one more connection.
func (w *Wire) Connect(id string, c *packet.Connection) {
	if k := w.picks(id); k != nil {
		k.connect(c)
	}
}

func (k *picker) connect(c *packet.Connection) {
	k.matcher.Connect(c)
	k.known++
}

// Unpick takes a fault's events off. What they hold goes on at once.
func (w *Wire) Unpick(id string) {
	k := w.picks(id)
	if k == nil {
		return
	}
	w.pickers = slices.DeleteFunc(w.pickers, func(have *picker) bool { return have == k })
	k.shelf.Drain(func(p parcel) { w.goOn(p, max(w.loop.Now(), w.last)) })
}

func (w *Wire) picks(id string) *picker {
	for _, k := range w.pickers {
		if k.id == id {
			return k
		}
	}
	return nil
}

// factsOf is what events are told of a frame; false: none is about it.
func factsOf(f *link.Frame) (facts packet.Facts, ok bool) {
	if f.Bytes != nil || f.Kind < roce.KindRoCE {
		facts, ok = packet.Of(&f.View)
	} else {
		facts, ok = packet.OfPacket(&f.Packet), true
	}
	facts.TrafficClass = f.TrafficClass
	return facts, ok
}

// fate is what becomes of a packet that was looked at.
type fate struct {
	gone   bool
	facts  packet.Facts
	copies []*link.Frame
	delay  time.Duration
	holder *picker // keeps it
	hold   packet.Verdict
}

// pick has all events look at a frame, and does to it what they say, but for when it goes on.
func (w *Wire) pick(f *link.Frame) (out fate) {
	facts, ok := factsOf(f)
	if out.facts = facts; !ok {
		return out
	}
	for _, k := range w.pickers {
		v := k.matcher.Look(&facts)
		if v.Do == 0 {
			continue
		}
		k.hits++
		if v.Has(packet.Drop) {
			return fate{gone: true}
		}
		k.change(f, &v)
		facts.TrafficClass = f.TrafficClass
		for range v.Copies {
			out.copies = append(out.copies, w.copyOf(f))
		}
		out.delay += v.Delay
		if v.Hold > 0 {
			out.holder, out.hold = k, v
		}
	}
	return out
}

// change does to a frame what a verdict says.
func (k *picker) change(f *link.Frame, v *packet.Verdict) {
	if v.Has(packet.SetDSCP) {
		f.TrafficClass = f.TrafficClass&3 | v.DSCP<<2
	}
	if v.Has(packet.MarkCE) {
		f.MarkCE()
	}
	if v.Has(packet.ClearECT) {
		f.TrafficClass &^= 3
	}
	if v.Has(packet.Corrupt) {
		k.damage(f, v)
	}
	if v.Has(packet.Truncate) {
		if b := k.bytes(f); int(v.Truncate) < len(b) {
			_ = f.Parse(b[:v.Truncate]) // as much of it as is left
		}
	}
}

// bytes is a frame as it is on the wire, which is its form from then on.
func (k *picker) bytes(f *link.Frame) []byte {
	if f.Bytes != nil {
		f.Flush()
		return f.Bytes
	}
	b, err := AppendFrame(nil, f, k.own, k.via)
	if err != nil { // it can't be written: let it be what no receiver takes
		f.Damaged = true
		return nil
	}
	_ = f.Parse(b)
	return b
}

// damage flips a bit of what is to be damaged, which the packet's number among the hits chooses.
func (k *picker) damage(f *link.Frame, v *packet.Verdict) {
	const payload, header, icrc = 0, 1, 2
	if v.Part == icrc && f.Bytes == nil && f.Kind == roce.KindRoCE {
		f.Damaged = true
		return
	}
	b := k.bytes(f)
	if f.Kind < roce.KindRoCE || b == nil {
		damageFrame(f, draw(k.prog.Seed, drawBit, k.hits))
		return
	}
	carried := f.View.Payload()
	to := cap(b) - cap(carried) // where it begins: it is a part of b
	from := to - int(f.View.Info().HeaderLen)
	switch n := len(carried); {
	case v.Part == icrc:
		from = to + n + f.View.Pad()
		to = from + roce.ICRCLen
	case v.Part == payload && n > 0:
		from, to = to, to+n
	}
	bit := draw(k.prog.Seed, drawBit, k.hits) % uint64((to-from)*8)
	b[from+int(bit/8)] ^= 1 << (bit % 8)
	_ = f.Parse(b)
}

// settle sends a frame on, or keeps it, as its fate says. when is the time at which it would go on.
func (w *Wire) settle(f *link.Frame, what *fate, when loop.Time) {
	p := parcel{f, what.copies, what.facts}
	switch {
	case what.holder != nil:
		k := what.holder
		id := k.shelf.Put(what.hold.Flow, what.hold.Hold, p)
		if what.hold.AtMost > 0 {
			w.later(when.Add(what.hold.AtMost), func() {
				if p, ok := k.shelf.Take(id); ok {
					w.goOn(p, w.loop.Now())
				}
			})
		}
	case what.delay > 0:
		w.later(when.Add(what.delay), func() { w.goOn(p, w.loop.Now()) })
	default:
		w.goOn(p, when)
	}
}

func (w *Wire) later(at loop.Time, do func()) { w.loop.Arm(&loop.Timer{Fire: do}, at) }

// goOn sends a frame and its copies on, and right behind them those that have been held for long enough.
func (w *Wire) goOn(p parcel, when loop.Time) {
	w.send(p, when)
	if w.cuts > 0 {
		return
	}
	for _, k := range w.pickers {
		if k.shelf.Len() > 0 {
			k.shelf.Pass(k.matcher.Flow(&p.facts), func(p parcel) { w.send(p, when) })
		}
	}
	w.follow(when)
}
