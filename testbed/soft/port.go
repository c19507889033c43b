//go:build linux

package soft

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/topo"
)

// port is a port of a node: a link.Wire that ends in a socket, and what reads that socket. It belongs to its
// node's loop, but for what is atomic.
type port struct {
	node   *node
	index  uint16
	sock   *packet.Socket
	ref    topo.PortRef
	mac    roce.MAC
	delay  loop.Duration
	number func(roce.Addr) uint32 // nil: a host's
	to     link.Receiver
	inlet  *silicon.Wire // of a host whose process is another: what goes wrong on its way here strikes here; else nil

	fromHost bool           // the far end is a host
	lineRate int64          // that frames come in by at most, bits a second of fabric time
	last     time.Duration  // when the last one did, fabric time
	arrived  fifo           // what came in, or will have at a fabric time, and was not handed on
	taken    []taken        // what came in since slots were given back
	waiting  fifo           // frames that have left the line and not arrived yet
	dark     bool           // the interface has no carrier: what has left the line is lost
	far      *packet.Socket // of the port across the link; nil: it is none of ours

	counts portCounts
}

// taken is a frame that came in, and the slot of the ring that it may still lie in.
type taken struct {
	f    *link.Frame
	slot *byte
}

// portCounts may be read by any goroutine.
type portCounts struct {
	received, sent atomic.Uint64
	// unsent are frames that the kernel refused: the interface was down, or too small.
	unsent atomic.Uint64
	late   lateness
}

// Send implements link.Wire: the frame goes to the socket once its last bit has crossed the link.
func (p *port) Send(f *link.Frame, at loop.Time) {
	p.waiting.push(f, p.node.dilation.Wall(loop.TrueTime(p.node.loop, at).Add(p.delay).Sub(0)))
}

// flush hands the frames that are due to the kernel and says when the next one is: never when negative.
// Where the kernel has no room it says never, and the poller waits for room. Where the far end has none the frames wait: a
// machine that is too slow makes them late, and doesn't lose them.
func (p *port) flush(now time.Duration) time.Duration {
	q := &p.waiting
	for p.dark && q.n > 0 {
		p.node.frames.Put(q.pop())
	}
	for q.n > 0 && q.first().due <= now {
		if p.far != nil && p.far.Crowded() {
			return now + crowdedFor
		}
		for i := 0; i < q.n && p.sock.Room() && q.at(i).due <= now; i++ {
			p.encode(q.at(i).f)
		}
		sent, lost, err := p.sock.Send()
		now = p.node.now()
		for range sent {
			p.counts.late.add(now - q.first().due)
			p.node.frames.Put(q.pop())
		}
		p.counts.sent.Add(uint64(sent))
		if lost {
			p.counts.unsent.Add(1)
			p.node.frames.Put(q.pop())
			if !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.EMSGSIZE) && !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOBUFS) {
				p.node.failed.CompareAndSwap(nil, &err)
			}
		}
		if p.sock.Full() {
			return -1
		}
	}
	if q.n == 0 {
		return -1
	}
	return q.first().due
}

// crowdedFor is how soon to look again whether the far end has room: it takes a batch in about that time.
const crowdedFor = 100 * time.Microsecond

// zeros are the payload of packets whose bytes nobody looks at.
var zeros [1 << 16]byte

// encode adds a frame to what goes to the kernel next.
func (p *port) encode(f *link.Frame) {
	if f.Bytes != nil {
		f.Flush()
		p.sock.Add(f.Bytes, nil, nil)
		return
	}
	head := p.sock.Head()
	switch f.Kind {
	case roce.KindPFC:
		p.sock.Add(roce.AppendPFC(head, p.mac, &f.PFC), nil, nil)
		return
	case roce.KindPause:
		p.sock.Add(roce.AppendPause(head, p.mac, f.PFC.Quanta[0]), nil, nil)
		return
	}
	k := &f.Packet
	k.TrafficClass, k.TTL = f.TrafficClass, f.TTL
	head, err := k.AppendHeaders(head)
	if err != nil {
		panic("soft: " + p.ref.String() + ": a packet that can't be written: " + err.Error()) // the RNIC's own
	}
	payload := k.Payload
	if payload == nil {
		payload = zeros[:k.PayloadLen]
	}
	n := len(head)
	trailer := k.AppendTrailerTo(head, head, payload)[n:]
	if f.Damaged {
		trailer[len(trailer)-1] ^= 0xff
	}
	p.sock.Add(head, payload, trailer)
}

// look takes frames out of the ring, and says whether there are any that have not been handed on.
//
// A frame came in when the kernel stamped it, which a sender that is late, and sends many at once, makes too close to
// the one before: then it came in when the line allows. Switches pace all that they send, RNICs what is theirs; what a host's own stack
// sends is not paced, and comes in as it comes.
func (p *port) look() bool {
	for range mostTaken {
		if p.arrived.n >= mostArrived {
			break
		}
		b, stamp := p.sock.Next()
		if b == nil {
			break
		}
		f := p.node.frames.Get()
		_ = f.Parse(b) // it is what of it is sound
		f.Port = p.index
		if p.number != nil {
			f.Classify(p.number)
		}
		at := max(p.node.dilation.Fabric(stamp-p.node.offset), p.last)
		if !p.fromHost || f.Kind == roce.KindRoCE || f.Kind == roce.KindPFC || f.Kind == roce.KindPause {
			at = max(at, p.last+roce.LineTime(len(b), p.lineRate))
		}
		p.last = at
		p.arrived.push(f, at)
		p.taken = append(p.taken, taken{f, unsafe.SliceData(b)})
	}
	return p.arrived.n > 0
}

// How many frames are taken out of a ring before the node looks elsewhere, and how many of a port's wait for their time outside of
// it.
const (
	mostTaken   = 4 * packet.Batch
	mostArrived = 4096
)

// take hands on the first frame, and says whether there is another.
func (p *port) take() bool {
	f := p.arrived.pop()
	p.counts.received.Add(1)
	if p.to == nil { // the node is not whole yet
		p.node.frames.Put(f)
	} else {
		p.pass(f)
	}
	return p.arrived.n > 0 || p.look()
}

// pass hands on a frame that has come in.
func (p *port) pass(f *link.Frame) {
	if p.inlet != nil {
		p.inlet.Send(f, p.node.loop.Now())
		return
	}
	p.to.Receive(f)
}

// coming is when the first frame that has not been handed on will have come in, wall time since the epoch; negative: there is none.
func (p *port) coming() time.Duration {
	if p.arrived.n == 0 {
		return -1
	}
	return p.node.dilation.Wall(p.arrived.first().due)
}

// giveBack gives the slots of what came in back to the kernel. Frames that still lie in one, in a
// queue or on the way, are copied out: slots are few, and go back in order.
func (p *port) giveBack() {
	if len(p.taken) == 0 {
		return
	}
	for i, t := range p.taken {
		if f := t.f; f.Bytes != nil && unsafe.SliceData(f.Bytes) == t.slot {
			f.Buf = append(f.Buf[:0], f.Bytes...)
			f.Bytes = f.Buf
			_ = f.View.Parse(f.Bytes)
		}
		p.taken[i] = taken{}
	}
	p.sock.Release(len(p.taken))
	p.taken = p.taken[:0]
}
