package silicon

import (
	"errors"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// tap gives what passes a port to a sink, in order of time: what the port sends when its last bit leaves, which is after
// it is known.
type tap struct {
	own, peer roce.MAC
	sink      fabric.PacketSink
	waiting   []waiting
	first     int // of waiting
	given     uint64
	err       error
	buf       []byte
}

type waiting struct {
	at    loop.Time
	bytes []byte
}

var errTapped = errors.New("something captures there already")

// Tap gives all that passes the port from now on to a sink, on the port's loop. Untap ends it and says how many
// frames were given. Frames that come in must be given to the port itself, not to its device.
func (p *Port) Tap(sink fabric.PacketSink, own, peer roce.MAC) error {
	if p.tap != nil {
		return errTapped
	}
	p.tap = &tap{own: own, peer: peer, sink: sink}
	p.Wire.tap = p.tap
	return nil
}

// Untap ends a capture.
func (p *Port) Untap() (given uint64, err error) {
	t := p.tap
	if t == nil {
		return 0, nil
	}
	p.tap, p.Wire.tap = nil, nil
	t.flush(1<<63 - 1)
	return t.given, t.err
}

func (t *tap) sent(f *link.Frame, at loop.Time) {
	t.flush(at - 1)
	b, err := AppendFrame(nil, f, t.own, t.peer)
	if err != nil {
		t.fail(err)
		return
	}
	t.waiting = append(t.waiting, waiting{at, b})
}

func (t *tap) received(f *link.Frame, now loop.Time) {
	t.flush(now)
	var err error
	if t.buf, err = AppendFrame(t.buf[:0], f, t.peer, t.own); err != nil {
		t.fail(err)
		return
	}
	t.give(now, t.buf)
}

// flush gives what has left by a time. A port's times never go back, so it is called with a time that is
// not after what comes in next.
func (t *tap) flush(until loop.Time) {
	for t.first < len(t.waiting) && t.waiting[t.first].at <= until {
		w := &t.waiting[t.first]
		t.give(w.at, w.bytes)
		w.bytes = nil
		t.first++
	}
	if t.first == len(t.waiting) {
		t.waiting, t.first = t.waiting[:0], 0
	}
}

func (t *tap) give(at loop.Time, b []byte) {
	if t.err == nil {
		t.fail(t.sink.Packet(at, b, len(b)))
		t.given++
	}
}

func (t *tap) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// AppendFrame writes a frame as it looks on a link between two ports, ICRC included. A damaged one has a bit of its
// ICRC wrong; payload that memory holds no bytes of is zeros.
func AppendFrame(b []byte, f *link.Frame, src, dst roce.MAC) ([]byte, error) {
	switch {
	case f.Bytes != nil:
		at := len(b)
		b = append(b, f.Bytes...)
		var v roce.View
		if f.Kind >= roce.KindIP && v.Parse(b[at:]) == nil {
			v.SetTrafficClass(f.TrafficClass)
			v.SetTTL(f.TTL)
		}
		return b, nil
	case f.Kind == roce.KindPFC:
		return roce.AppendPFC(b, src, &f.PFC), nil
	case f.Kind == roce.KindPause:
		return roce.AppendPause(b, src, f.PFC.Quanta[0]), nil
	}
	p := f.Packet
	p.SrcMAC, p.DstMAC, p.TrafficClass, p.TTL = src, dst, f.TrafficClass, f.TTL
	if p.PayloadLen == 0 || len(p.Payload) != p.PayloadLen {
		p.Payload = nil
	}
	b, err := p.Append(b)
	if err == nil && f.Damaged {
		b[len(b)-1] ^= 1
	}
	return b, err
}
