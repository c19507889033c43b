package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// place says what a unit is: where in the sender's buffer it lies and where it goes.
type place struct {
	src    int // offset in the sender's buffer
	size   int // bytes
	dst    int // offset in the receiver's buffer, unless staged
	staged bool
}

// lane carries numbered units from one rank to another, in order, as WRITEs with immediate
// into the receiver's memory. Units count on from one iteration to the next:
//
//	completed ≤ next ≤ min(allowed, credit)
//
// A staged unit goes to a slot of the receiving end, any other to its place in the receiver's
// buffer. The receiver grants credit for a unit once it is done with the one a slot count
// before. Between ranks of one host there is no wire: units are copied, as NVLink would.
type lane struct {
	c        *collective
	index    int
	name     string
	from, to *rankEnd
	shard    int
	units    int // an iteration
	slots    int
	place    func(u int) place        // u counts from 0 in each iteration
	came     func(u int, staged span) // on the receiver's loop, before the unit counts
	credits  *wire[uint64]
	out      laneOut
	in       laneIn
}

// laneOut is the sending end, on the sender's loop.
type laneOut struct {
	*end
	reporter
	t         tally
	depth     int
	next      uint64
	completed uint64
	allowed   uint64
	credit    uint64
	posted    []loop.Time
	sgl       []verbs.SGE
	batch     []verbs.SendWR
	copied    loop.Timer // of a lane without a wire
	down      bool
	flushed   func()
}

// laneIn is the receiving end, on the receiver's loop.
type laneIn struct {
	*end
	reporter
	t       tally
	y       layout
	mem     span         // staging
	own     verbs.Memory // of a lane without a wire, where bytes won't do
	count   uint64
	granted uint64
	bytes   uint64 // this iteration's
	recvs   []verbs.RecvWR
}

func newLane(c *collective, index int, from, to *rankEnd, shard, units, slice int) *lane {
	s := c.r.spec
	mtu := pathMTU(s, from.nic, to.nic)
	w := &lane{c: c, index: index, from: from, to: to, shard: shard, units: units, slots: s.slots(mtu)}
	w.name = fmt.Sprintf("%s→%s#%d", from.rank, to.rank, shard)
	w.credits = newWire(c.r.e.x, to.l, from.l, w.granted)
	o, in := &w.out, &w.in
	o.depth = s.depth(mtu)
	o.posted, o.sgl = make([]loop.Time, o.depth), make([]verbs.SGE, o.depth)
	o.batch = make([]verbs.SendWR, 0, o.depth)
	o.reporter = reporter{c.r, w.name, from.l, &o.t}
	in.reporter = reporter{c.r, w.name, to.l, &in.t}
	in.y = newLayout(slice, w.slots)
	if w.local() {
		o.copied.Fire = w.copy
		return w
	}
	psn := func(purpose string) uint32 {
		return uint32(streamKey(c.r.e.cfg.Seed, s.Name, purpose, index))
	}
	o.end = newEnd(from.nic, fmt.Sprintf("%s (sender of %s)", portName(from.rank.port), w.name), psn("sender psn"), endConfig{
		workload: s.Name, flow: index, service: verbs.RC, sendWR: o.depth + 1, attr: s.attr(from.nic.Device.Attr(), mtu, index),
	})
	in.end = newEnd(to.nic, fmt.Sprintf("%s (receiver of %s)", portName(to.rank.port), w.name), psn("receiver psn"), endConfig{
		workload: s.Name, flow: index, service: verbs.RC, recvWR: w.slots, memory: in.y.bytes(), kind: verbs.GPUMemory,
		access: verbs.LocalWrite | verbs.RemoteWrite, attr: s.attr(to.nic.Device.Attr(), mtu, index),
	})
	o.end.onWC, o.end.onDrain = w.sent, func() { w.pump(); from.advance() }
	o.end.onBroken = func(err error) { from.fail("", err.Error()) }
	in.end.onWC, in.end.onDrain = w.received, w.settle
	in.end.onBroken = func(err error) { to.fail("", err.Error()) }
	return w
}

// local says whether the two ranks share a host.
func (w *lane) local() bool { return w.from.rank.node == w.to.rank.node }

// prepareIn is called on the receiver's loop once the end is open.
func (w *lane) prepareIn() error {
	in := &w.in
	if !w.local() {
		in.mem, in.end.buf = spanOf(in.end.mem), w.to.mr
		in.t.qpn = in.qp.Num()
		for range w.slots {
			in.recvs = append(in.recvs, verbs.RecvWR{})
		}
		if err := in.postRecv(in.recvs); err != nil {
			return in.wrap(fmt.Errorf("post receives: %w", err))
		}
		in.recvs = in.recvs[:0]
	} else if err := w.stage(); err != nil {
		return err
	}
	in.y.guard(in.mem)
	w.grant()
	return nil
}

// stage makes room for what is staged in a lane without a wire.
func (w *lane) stage() error {
	in := &w.in
	if !w.to.nic.phantom {
		in.mem = span{b: make([]byte, in.y.bytes()), n: in.y.bytes()}
		return nil
	}
	var err error
	if in.own, err = w.to.nic.alloc(in.y.bytes(), verbs.GPUMemory, false); err != nil {
		return fmt.Errorf("%s: make room for what is staged: %w", w.name, err)
	}
	in.mem = spanOf(in.own)
	return nil
}

// grant lets the sender use what slots are free.
func (w *lane) grant() {
	if to := w.in.count + uint64(w.slots); to > w.in.granted {
		w.in.granted = to
		w.credits.send(to)
	}
}

func (w *lane) granted(to uint64) {
	w.out.credit = to
	w.pump()
}

// allow lets units below a number go, on the sender's loop.
func (w *lane) allow(to uint64) {
	if to > w.out.allowed {
		w.out.allowed = to
		w.pump()
	}
}

// pump posts what may go.
func (w *lane) pump() {
	o := &w.out
	if o.down {
		return
	}
	o.batch = o.batch[:0]
	now := w.from.l.Now()
	before := o.next
	for o.next < min(o.allowed, o.credit) && o.next-o.completed < uint64(o.depth) {
		i := int(o.next % uint64(o.depth))
		o.posted[i] = now
		if !w.local() {
			o.batch = append(o.batch, w.request(i))
		}
		o.next++
	}
	switch {
	case o.next == before:
	case w.local():
		w.from.l.Arm(&o.copied, now)
	default:
		if err := o.qp.PostSend(o.batch...); err != nil {
			w.from.fail("", fmt.Sprintf("%s: post send: %v", w.name, err))
		}
	}
}

func (w *lane) request(i int) verbs.SendWR {
	o := &w.out
	p := w.place(int(o.next % uint64(w.units)))
	o.sgl[i] = verbs.SGE{Addr: w.from.mr.Addr() + uint64(p.src), Length: uint32(p.size), LKey: w.from.mr.LKey()}
	wr := verbs.SendWR{
		ID: o.next, Op: verbs.OpRDMAWriteWithImm, Flags: verbs.Signaled, Imm: uint32(o.next),
		SGL: o.sgl[i : i+1 : i+1], RemoteAddr: o.peer.bufAddr + uint64(p.dst), RKey: o.peer.bufRKey,
	}
	if p.staged {
		wr.RemoteAddr, wr.RKey = o.peer.addr+uint64(w.in.y.offset(int(o.next%uint64(w.slots)))), o.peer.rkey
	}
	return wr
}

// sent takes a completion in on the sender's loop.
func (w *lane) sent(wc *verbs.WC) {
	o := &w.out
	if wc.ID == drainID {
		if o.flushed != nil {
			o.flushed()
			o.flushed = nil
		}
		return
	}
	if wc.Status != verbs.Success {
		o.t.errors++
		if !o.down {
			o.t.status = wc.Status.String()
			o.t.failure = fmt.Sprintf("unit %d: %s (vendor error %#x)", wc.ID, wc.Status, wc.VendorErr)
			w.from.fail(o.t.status, w.name+": "+o.t.failure)
		}
		return
	}
	if wc.ID != o.completed {
		o.violation(wc.ID, 0, "order", o.completed, wc.ID)
		return
	}
	w.completed(w.place(int(wc.ID % uint64(w.units))).size)
}

func (w *lane) completed(size int) {
	o := &w.out
	now := w.from.l.Now()
	if o.t.messages == 0 {
		o.t.start = o.posted[0]
	}
	o.t.latency.record(now.Sub(o.posted[o.completed%uint64(o.depth)]))
	o.completed++
	o.t.messages++
	o.t.bytes += uint64(size)
	o.t.end = now
	w.from.moved()
}

// received takes a receive in on the receiver's loop.
func (w *lane) received(wc *verbs.WC) {
	in := &w.in
	if wc.Status != verbs.Success {
		in.t.errors++
		w.to.fail(wc.Status.String(), fmt.Sprintf("%s: receive: %s (vendor error %#x)", w.name, wc.Status, wc.VendorErr))
		return
	}
	u := int(in.count % uint64(w.units))
	p := w.place(u)
	if wc.Imm != uint32(in.count) {
		in.violation(in.count, 0, "order", in.count&(1<<32-1), uint64(wc.Imm))
	}
	if int(wc.ByteLen) != p.size {
		in.violation(in.count, 0, "length", uint64(p.size), uint64(wc.ByteLen))
	}
	in.recvs = append(in.recvs, verbs.RecvWR{})
	w.arrived(u, p)
}

func (w *lane) arrived(u int, p place) {
	in := &w.in
	slot := int(in.count % uint64(w.slots))
	var staged span
	if p.staged {
		staged = in.y.slot(in.mem, slot).cut(0, p.size)
	}
	in.bytes += uint64(p.size)
	w.came(u, staged)
	if p.staged {
		in.checkGap(in.y, in.mem, slot, in.count)
	}
	in.count++
	w.to.moved()
}

// settle makes ready again what the arrivals of one event have used.
func (w *lane) settle() {
	in := &w.in
	if len(in.recvs) > 0 && !w.to.down {
		err := in.postRecv(in.recvs)
		in.recvs = in.recvs[:0]
		if err != nil {
			w.to.fail("", fmt.Sprintf("%s: post receives: %v", w.name, err))
			return
		}
	}
	w.grant()
	w.to.advance()
}

// copy moves the units of a lane without a wire. Both ranks are on this loop.
func (w *lane) copy() {
	o := &w.out
	if o.down {
		return
	}
	for left := budget; o.completed < o.next && left > 0; {
		u := int(o.completed % uint64(w.units))
		p := w.place(u)
		src := w.from.buf.cut(p.src, p.src+p.size)
		if p.staged {
			w.in.y.slot(w.in.mem, int(w.in.count%uint64(w.slots))).cut(0, p.size).copyFrom(src)
		} else {
			w.to.buf.cut(p.dst, p.dst+p.size).copyFrom(src)
		}
		left -= p.size
		w.arrived(u, p)
		w.completed(p.size)
	}
	if o.completed < o.next {
		w.from.l.Arm(&o.copied, w.from.l.Now())
	}
	w.settle()
	w.from.advance()
	w.pump()
}

// halt moves the sender's QP to the error state and waits for the flush.
func (w *lane) halt(done func()) {
	o := &w.out
	o.down = true
	if w.local() {
		w.from.l.Disarm(&o.copied)
		done()
		return
	}
	if o.end.closed { // its process is gone
		done()
		return
	}
	limit := w.c.r.e.cfg.ControlTimeout
	o.end.fail(limit, func(err error) {
		if err == nil {
			err = o.qp.PostSend(verbs.SendWR{ID: drainID, Op: verbs.OpSend, Flags: verbs.Signaled})
		}
		if err != nil {
			done()
			return
		}
		within(w.from.l, limit, "flush", func(answer func(error)) { o.flushed = func() { answer(nil) } }, func(error) { done() })
	})
}
