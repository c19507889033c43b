package torture

import (
	"math/rand/v2"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
)

// lookahead is the shortest time from one host to the other.
const lookahead = time.Microsecond

// wire carries frames from one host to the other, not all of them and not all as they were.
type wire struct {
	bed    *bed
	frames *link.Pool
	from   *loop.Node
	to     *loop.Node
	dest   *rnic.Device
	faults faults
	rng    *rand.Rand
	bytes  bool
	out    int // which direction's requests it carries
}

// Send implements link.Wire.
func (w *wire) Send(f *link.Frame, at loop.Time) {
	if f.Kind == roce.KindRoCE {
		if m := w.bed.monitor(w.out, f.Packet.BTH.DestQP); m != nil {
			m.sent(w.out, f, w.from.Now())
		}
	}
	at = at.Add(lookahead)
	fl := &w.faults
	if f.Kind != roce.KindRoCE {
		f.ArriveAt(w, 0)
		w.from.Send(w.to, 0, at, &f.Timer)
		return
	}
	if fl.mark > 0 && w.rng.Float64() < fl.mark && f.ECN() != roce.NotECT {
		f.MarkCE()
	}
	if fl.budget > 0 {
		x := w.rng.Float64()
		switch {
		case x < fl.drop:
			fl.budget--
			w.frames.Put(f)
			return
		case x < fl.drop+fl.double:
			fl.budget--
			w.pass(w.twin(f), at.Add(time.Duration(w.rng.Int64N(int64(fl.most)))))
		case x < fl.drop+fl.double+fl.delay:
			fl.budget--
			at = at.Add(time.Duration(w.rng.Int64N(int64(fl.most))))
		case x < fl.drop+fl.double+fl.delay+fl.spoil:
			fl.budget--
			f.Damaged = true
		}
	}
	w.pass(f, at)
}

func (w *wire) pass(f *link.Frame, at loop.Time) {
	if w.bytes {
		f = w.asBytes(f)
	}
	f.ArriveAt(w, 0)
	w.from.Send(w.to, 0, at, &f.Timer)
}

// Receive implements link.Receiver: the far end of the wire.
func (w *wire) Receive(f *link.Frame) {
	if f.Kind == roce.KindRoCE && !f.Damaged {
		h, _ := header(f)
		if m := w.bed.monitor(w.out, h.DestQP); m != nil {
			m.arrived(w.out, f, w.to.Now())
		}
	}
	w.dest.Receive(f)
}

// twin is the frame once more, with bytes of its own.
func (w *wire) twin(f *link.Frame) *link.Frame {
	g := w.frames.Get()
	buf := g.Buf
	g.Packet = f.Packet
	g.Len, g.Dst, g.Flow, g.Kind, g.TrafficClass, g.TTL = f.Len, f.Dst, f.Flow, f.Kind, f.TrafficClass, f.TTL
	g.Buf = append(buf[:0], f.Packet.Payload...)
	g.Content = append(g.Content[:0], f.Content...)
	g.Packet.Payload = nil
	if len(g.Buf) > 0 {
		g.Packet.Payload = g.Buf
	}
	return g
}

// asBytes makes the byte form of a frame; a damaged one has a wrong bit where the ICRC sees it.
func (w *wire) asBytes(f *link.Frame) *link.Frame {
	b, err := f.Packet.Append(nil)
	if err != nil {
		panic(err) // the RNIC made a packet that there is not
	}
	if len(b) != int(f.Len) {
		panic("the RNIC says of a frame that it has another length than it has")
	}
	g := w.frames.Get()
	g.Len, g.Dst, g.Flow, g.Kind, g.TrafficClass, g.TTL, g.Bytes = f.Len, f.Dst, f.Flow, f.Kind, f.TrafficClass, f.TTL, b
	if f.Damaged {
		// Not in the headers before the BTH: the ICRC leaves some of theirs out; nor where the lengths are.
		from := len(b) - roce.ICRCLen - f.Packet.PayloadLen
		i := from + w.rng.IntN(len(b)-from)
		b[i] ^= 1 << w.rng.IntN(8)
		g.Damaged = true
	}
	if err := g.View.Parse(b); err != nil {
		panic(err)
	}
	w.frames.Put(f)
	return g
}
