package rnic

import (
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// reorder is what a responder of selective repeat holds beyond the PSN that it expects. A packet of a WRITE of
// such a requester's says where its payload goes, which is written at once; all else about it, and other requests
// whole, wait for what is before them.
type reorder struct {
	held [selWindow]*link.Frame // by PSN
	n    int
}

// tagPlaced is the Tag of a frame whose payload has been written.
const tagPlaced = 1

// ahead takes a request d PSNs beyond the one expected.
func (r *responder) ahead(f *link.Frame, info *roce.Info, d int, at loop.Time) {
	r.q.dev.count.OutOfSequence++
	if d >= selWindow || r.told {
		return // what follows a request that found no receive is to come again, as that is
	}
	if r.order == nil {
		r.order = &reorder{}
	}
	psn := f.Packet.BTH.PSN
	if slot := &r.order.held[psn%selWindow]; *slot == nil {
		if info.Operation == roce.OpRDMAWrite && info.Transport == roce.TransportManufacturer && !r.placeEarly(f, info, at) {
			return // it is at fault, or seems so: that is found out when it comes in order
		}
		*slot = f
		r.order.n++
		r.q.dev.kept = true
	}
	r.sack(psn, at)
}

// placeEarly writes the payload of a WRITE's packet and says whether it may.
func (r *responder) placeEarly(f *link.Frame, info *roce.Info, at loop.Time) bool {
	q, p := r.q, &f.Packet
	n := uint64(p.PayloadLen)
	f.Tag = tagPlaced
	if n == 0 {
		return true
	}
	if q.attr.Access&verbs.RemoteWrite == 0 || !r.sized(info, p.PayloadLen) || n > uint64(p.RETH.DMALen) {
		return false
	}
	g := q.remote(p.RETH.RKey, p.RETH.VA, n, verbs.RemoteWrite)
	if g == nil {
		return false
	}
	g.store(p.RETH.VA, p)
	q.dev.land(at, g.place(p.RETH.VA), uint32(n), g.mem.kind)
	p.Payload = nil
	return true
}

// catchUp executes what is held and has become the expected one, and acknowledges it.
func (r *responder) catchUp(at loop.Time) {
	o := r.order
	before := r.epsn
	for o.n > 0 && !r.closing && r.q.state != verbs.Err {
		slot := &o.held[r.epsn%selWindow]
		f := *slot
		if f == nil || f.Packet.BTH.PSN != r.epsn {
			break
		}
		*slot = nil
		o.n--
		was := r.epsn
		r.placed, r.q.dev.content = f.Tag == tagPlaced, f.Content
		r.execute(f, f.Packet.Info(), at)
		r.placed = false
		r.q.dev.frames.Put(f)
		if r.epsn == was {
			break // no receive was there, or it was at fault: the peer will come with it again, or not
		}
	}
	if r.epsn != before && r.owed == 0 && r.pending == 0 && !r.closing && r.q.state != verbs.Err {
		r.ack(at)
	}
}

// release gives back what is held.
func (r *responder) release() {
	if r.order == nil {
		return
	}
	for i, f := range r.order.held {
		if f != nil {
			r.q.dev.frames.Put(f)
			r.order.held[i] = nil
		}
	}
	r.order.n = 0
}

// sack says which PSN is expected, and which beyond it have come: one, and those of the 64 before it.
func (r *responder) sack(newest roce.PSN, at loop.Time) {
	q := r.q
	f := q.dev.frame(&q.path, roce.SRSelectiveAck, q.attr.DestQPN, r.epsn, 0)
	p := &f.Packet
	p.Payload = nil
	p.AETH = roce.AETH{Syndrome: roce.NAK(roce.NAKPSNSequenceError), MSN: r.msn}
	p.ImmDt, p.AtomicAckETH = uint32(newest), 0
	for i := range 64 {
		psn := newest.Add(-1 - i)
		if !psn.After(r.epsn) {
			break
		}
		if r.order.held[psn%selWindow] != nil {
			p.AtomicAckETH |= 1 << i
		}
	}
	q.dev.count.AcksSent++
	q.dev.port.control(f, at)
}
