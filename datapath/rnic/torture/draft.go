package torture

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// drafter writes one script, request by request.
type drafter struct {
	*writer
	from, to int
	s        *script
	pos      int
	open     []span // of the target: READs that a later request must not disturb unless it is fenced
	fetched  []span // where READs and atomics put what they bring, not yet fenced
	ready    []span // and those that are safe to read
	invalid  [windows]bool
}

// draft makes a request and works out what comes of it.
func (d *drafter) draft() *op {
	rng := d.rng
	o := &op{recv: -1, window: -1, flags: verbs.Signaled}
	if rng.IntN(4) == 0 && d.p.kind == verbs.RC {
		o.flags = 0
	}
	if rng.IntN(3) == 0 {
		o.flags |= verbs.Solicited
	}
	if rng.IntN(8) == 0 && d.p.kind == verbs.RC {
		d.fence(o)
	}
	sends := []verbs.Opcode{verbs.OpSend, verbs.OpSendWithImm}
	writes := append(sends, verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm)
	all := append(writes, verbs.OpRDMARead, verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd, verbs.OpAtomicCmpAndSwp, verbs.OpSendWithInv)
	switch d.p.kind {
	case verbs.UD:
		o.kind = pick(rng, sends...)
	case verbs.UC:
		o.kind = pick(rng, writes...)
	default:
		o.kind = pick(rng, all...)
	}
	if d.p.phantom && (o.kind == verbs.OpAtomicFetchAndAdd || o.kind == verbs.OpAtomicCmpAndSwp) {
		o.kind = verbs.OpRDMARead
	}
	if o.kind == verbs.OpSendWithInv && !d.invalidates(o) {
		o.kind = verbs.OpSend
	}
	o.imm = rng.Uint32()
	switch o.kind {
	case verbs.OpRDMARead:
		d.read(o)
	case verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd:
		d.atomic(o)
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm:
		d.source(o)
		d.target(o)
	default:
		d.source(o)
	}
	if o.kind <= verbs.OpSendWithInv || o.kind == verbs.OpRDMAWriteWithImm {
		d.receive(o)
	}
	return o
}

// place gives a request its PSNs.
func (d *drafter) place(o *op) {
	o.first = d.pos
	o.psns = max(1, (o.length+d.p.mtu-1)/d.p.mtu)
	d.pos += o.psns
	d.s.ends = append(d.s.ends, d.pos)
}

// fence has all READs before it done.
func (d *drafter) fence(o *op) {
	o.flags |= verbs.Fence
	d.open = d.open[:0]
	d.ready = append(d.ready, d.fetched...)
	d.fetched = d.fetched[:0]
}

// source gives a message its bytes: of the source, or what a READ brought.
func (d *drafter) source(o *op) {
	rng := d.rng
	if n := len(d.ready) + len(d.fetched); n > 0 && rng.IntN(3) == 0 && d.p.kind == verbs.RC {
		if k := rng.IntN(n); k >= len(d.ready) {
			s := d.fetched[k-len(d.ready)]
			d.fence(o)
			o.local = []span{s}
		} else {
			o.local = []span{d.ready[k]}
		}
	} else {
		n := min(d.size(), sourceLen/2)
		for k := 1 + rng.IntN(3); k > 0; k-- {
			part := n
			if k > 1 {
				part = rng.IntN(n + 1)
			}
			n -= part
			o.local = append(o.local, span{rng.IntN(sourceLen - part + 1), part})
		}
	}
	for _, s := range o.local {
		o.length += s.n
	}
	o.data = get(d.want[d.from], o.local)
	if !d.p.phantom && o.length <= 64 && rng.IntN(3) == 0 && len(d.fetched)+len(d.ready) == 0 {
		o.flags |= verbs.Inline
	}
}

// target is where a WRITE goes. On UC, where a message may arrive in part, each has a place of its own.
func (d *drafter) target(o *op) {
	if d.p.kind != verbs.RC {
		s := d.room(d.to, o.length)
		o.remote = s.off
		return
	}
	o.remote = sourceLen + d.rng.IntN(d.p.target-o.length+1)
	d.through(o)
	d.disturb(o, span{o.remote, o.length})
	copy(d.want[d.to][o.remote:], o.data)
}

// through has a request use a window now and then.
func (d *drafter) through(o *op) {
	if k := d.rng.IntN(3 * windows); k < windows && !d.invalid[k] {
		o.window = k
	}
}

// disturb fences a request that changes what a READ before it may not have read.
func (d *drafter) disturb(o *op, s span) {
	for _, r := range d.open {
		if r.off < s.off+s.n && s.off < r.off+r.n {
			d.fence(o)
			return
		}
	}
}

func (d *drafter) read(o *op) {
	o.length = min(d.size(), d.p.target)
	o.remote = sourceLen + d.rng.IntN(d.p.target-o.length+1)
	d.through(o)
	o.data = append([]byte(nil), d.want[d.to][o.remote:o.remote+o.length]...)
	o.local = d.pieces(d.from, o.length)
	put(d.want[d.from], o.local, o.data)
	d.open = append(d.open, span{o.remote, o.length})
	d.fetched = append(d.fetched, o.local...)
}

func (d *drafter) atomic(o *op) {
	o.length = 8
	o.remote = sourceLen + 8*d.rng.IntN(pick(d.rng, 2, d.p.target/8))
	d.through(o)
	d.disturb(o, span{o.remote, 8})
	word := d.want[d.to][o.remote : o.remote+8]
	old := binary.NativeEndian.Uint64(word)
	o.data = append([]byte(nil), word...)
	o.add, o.swap = d.rng.Uint64(), d.rng.Uint64()
	if o.kind == verbs.OpAtomicFetchAndAdd {
		binary.NativeEndian.PutUint64(word, old+o.add)
	} else {
		if d.rng.IntN(3) > 0 {
			o.add = old
		}
		if o.add == old {
			binary.NativeEndian.PutUint64(word, o.swap)
		}
	}
	o.local = d.pieces(d.from, 8)
	put(d.want[d.from], o.local, o.data)
	d.fetched = append(d.fetched, o.local...)
}

// invalidates picks the window that a SEND closes.
func (d *drafter) invalidates(o *op) bool {
	k := d.rng.IntN(windows)
	if d.invalid[k] {
		return false
	}
	d.invalid[k] = true
	o.window = k
	d.fence(o) // READs before it may go through the window
	return true
}

// receive makes the receive that a message takes.
func (d *drafter) receive(o *op) {
	r := &recv{got: o}
	n := 0
	if o.kind != verbs.OpRDMAWriteWithImm {
		n = o.length
		if d.p.kind == verbs.UD {
			n += 40
		}
	}
	if d.p.kind != verbs.RC { // which message takes it is open
		n = d.p.target
	}
	r.length = n + pick(d.rng, 0, 0, 7)
	r.list = d.pieces(d.to, r.length)
	o.recv = len(d.s.recvs)
	d.s.recvs = append(d.s.recvs, r)
	if d.p.kind == verbs.RC && o.kind != verbs.OpRDMAWriteWithImm {
		put(d.want[d.to], r.list, o.data)
	}
}

// poisoned makes a last request that must fail.
func (d *drafter) poisoned() *op {
	o := &op{recv: -1, window: -1, flags: verbs.Signaled, kind: verbs.OpRDMAWrite, local: []span{{0, 600}}, length: 600, remote: sourceLen, first: d.pos}
	how := d.rng.IntN(6)
	if how == 3 && d.p.phantom {
		how = 0
	}
	switch how {
	case 0:
		o.bad = verbs.RemAccessErr
		o.spoil = func(wr *verbs.SendWR) { wr.RKey++ }
	case 1:
		o.bad, o.kind = verbs.RemAccessErr, verbs.OpRDMARead
		o.local = []span{d.room(d.from, 600)}
		o.spoil = func(wr *verbs.SendWR) { wr.RemoteAddr += 1 << 40 }
	case 2:
		o.bad = verbs.LocProtErr
		o.spoil = func(wr *verbs.SendWR) { wr.SGL[0].LKey++ }
	case 3:
		o.bad, o.kind, o.length = verbs.RemInvReqErr, verbs.OpAtomicFetchAndAdd, 8
		o.local = []span{d.room(d.from, 8)}
		o.spoil = func(wr *verbs.SendWR) { wr.RemoteAddr += 4 }
	case 4:
		o.bad, o.kind, o.badRecv = verbs.RemInvReqErr, verbs.OpSend, verbs.LocLenErr
		r := &recv{got: o, length: 300}
		r.list = []span{d.room(d.to, 300)}
		o.recv = len(d.s.recvs)
		d.s.recvs = append(d.s.recvs, r)
	case 5:
		o.bad, o.kind = verbs.RemAccessErr, verbs.OpSendWithInv
		o.spoil = func(wr *verbs.SendWR) { wr.InvRKey = 0x12345 }
		r := &recv{got: o, length: 600}
		r.list = []span{d.room(d.to, 600)}
		o.recv, o.badRecv = len(d.s.recvs), verbs.WRFlushErr
		d.s.recvs = append(d.s.recvs, r)
	}
	o.psns = max(1, (o.length+d.p.mtu-1)/d.p.mtu)
	d.s.ends = append(d.s.ends, d.pos+o.psns)
	return o
}
