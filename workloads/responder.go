package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// responder is the end whose memory a flow works on. For WRITE and SEND it checks what has
// arrived, and grants credit for the slots that are free again; for READ it fills slots.
type responder struct {
	f *flow
	*end
	reporter
	t      tally
	y      layout
	toPeer *wire[note]

	state   endState
	mem     span
	data    int       // where a slot's payload begins: after the GRH of a UD receive
	arrived []arrival // a ring
	first   uint64    // the oldest arrival that isn't checked
	count   uint64    // arrivals so far
	checked int       // bytes of the oldest checked so far
	seen    sequence  // UC, UD: which messages have arrived
	known   uint64    // RC WRITE: messages placed; UC, UD: messages sent
	retired uint64    // READ: messages that need no data any more
	filled  uint64    // READ: messages whose data is made
	part    int       // READ: bytes of message filled made so far
	credit  uint64
	limit   uint64 // how many messages there will be, once known
	ended   bool
	lossy   bool // of what the requester posted beyond limit, nothing is known

	sgl    []verbs.SGE    // by slot
	recvs  []verbs.RecvWR // to post again
	turn   loop.Timer
	quiet  loop.Timer // UC, UD: nothing has arrived for a while
	stall  *stall
	dead   string // why its process is gone
	bereft string // why the requester's is
	// report is called once when everything is checked.
	report func(*tally)
}

// arrival is a message that is to be checked.
type arrival struct {
	slot  int
	m     uint64
	again bool // UC, UD: it has arrived before
	stale bool // UC WRITE: its slot may hold something else
	bad   bool // its length is wrong
}

// grh is how many bytes a UD receive's buffer begins with.
const grh = 40

func newResponder(f *flow, n *nic) *responder {
	p := &responder{f: f, arrived: make([]arrival, f.slots), sgl: make([]verbs.SGE, f.slots)}
	slots, recvs := f.slots, 0
	switch {
	case f.op == OpAtomic:
		slots = 1
	case f.op == OpSend || f.svc == verbs.UC:
		recvs = f.slots
	}
	size := f.size
	if f.svc == verbs.UD {
		p.data = grh
		size += grh
	}
	p.y = newLayout(size, slots)
	access := verbs.LocalWrite
	switch f.op {
	case OpWrite:
		access |= verbs.RemoteWrite
	case OpRead:
		access |= verbs.RemoteRead
	case OpAtomic:
		access |= verbs.RemoteAtomic
	}
	p.end = newEnd(n, portName(n.Port)+" (responder of "+f.name+")", f.psn("responder psn"), endConfig{
		workload: f.r.spec.Name, flow: f.index, memory: p.y.bytes(), bytes: f.op == OpAtomic, access: access, service: f.svc,
		recvWR: recvs, attr: f.r.spec.attr(n.Device.Attr(), f.mtu, f.index),
	})
	p.reporter = reporter{f.r, f.name, p.end.l, &p.t}
	p.onWC, p.onDrain, p.onBroken = p.completion, p.work, func(err error) { p.fail("", err.Error()) }
	p.turn.Fire, p.quiet.Fire = p.work, p.silence
	p.stall = newStall(p.end.l, f.r.stallLimit(), p.stalled)
	return p
}

// prepare is called once the end is open: slots are poisoned, receives posted.
func (p *responder) prepare() error {
	p.mem = spanOf(p.end.mem)
	p.t.qpn = p.qp.Num()
	p.y.guard(p.mem)
	for i := range p.y.slots {
		switch p.f.op {
		case OpWrite, OpSend:
			p.arm(i, uint64(i))
		case OpAtomic:
			if p.f.r.spec.Atomic == CmpSwap {
				p.y.slot(p.mem, 0).putWord(p.f.stream.word(0))
			}
		}
	}
	if p.cfg.recvWR == 0 || p.f.r.spec.ReceiveDelay > 0 {
		return nil
	}
	return p.receive()
}

// receive posts a receive for every slot.
func (p *responder) receive() error {
	for i := range p.f.slots {
		p.recvs = append(p.recvs, p.recv(i))
	}
	err := p.postRecv(p.recvs)
	p.recvs = p.recvs[:0]
	if err != nil {
		return p.wrap(fmt.Errorf("post receives: %w", err))
	}
	return nil
}

func (p *responder) recv(slot int) verbs.RecvWR {
	wr := verbs.RecvWR{ID: uint64(slot)}
	if p.f.op == OpSend {
		p.sgl[slot] = verbs.SGE{Addr: p.mr.Addr() + uint64(p.y.offset(slot)), Length: uint32(p.y.size), LKey: p.mr.LKey()}
		wr.SGL = p.sgl[slot : slot+1 : slot+1]
	}
	return wr
}

// arm makes a slot ready for message m: its first bytes are such that leaving them as they
// are is noticed. (What follows was another message's, and differs as random bytes do.)
func (p *responder) arm(slot int, m uint64) {
	if b := p.y.slot(p.mem, slot).cut(p.data, p.y.size); p.f.r.spec.Verified() {
		b.cut(0, min(b.n, guardLen)).poison(p.f.stream, m*uint64(p.f.size))
	}
}

// start lets the requester go ahead, and reports the tally once when all is over.
func (p *responder) start(at loop.Time, report func(*tally)) {
	p.report = report
	if p.dead != "" {
		p.expire()
		return
	}
	p.turn.Fire = func() {
		p.turn.Fire = p.work
		p.state = active
		p.t.start = p.end.l.Now()
		if p.bereft != "" {
			p.fail("", p.bereft)
			return
		}
		if d := p.f.r.spec.ReceiveDelay; d > 0 {
			p.grant(p.f.total)
			loop.After(p.end.l, d, p.late)
			return
		}
		p.work()
	}
	p.end.l.Arm(&p.turn, at)
}

// late posts the receives that were held back.
func (p *responder) late() {
	if p.state != active && p.state != ending || p.closed {
		return
	}
	if err := p.receive(); err != nil {
		p.fail("", err.Error())
	}
}

func (p *responder) grant(n uint64) {
	if n > p.credit {
		p.credit = n
		p.toPeer.send(note{kind: noteCredit, n: n})
	}
}

// note handles word from the requester.
func (p *responder) note(n note) {
	p.stall.move()
	switch n.kind {
	case notePlaced:
		p.placed(n.n)
	case noteRetired:
		p.retired = n.n
	case noteEnd, noteBroken:
		if n.kind == noteBroken {
			p.lossy = true
		}
		p.limit, p.ended = n.n, true
		p.placed(n.n)
		p.stall.start()
	}
	if p.state == active {
		p.work()
	}
}

// placed takes in that n messages have completed at the requester.
func (p *responder) placed(n uint64) {
	if p.f.svc != verbs.RC {
		if p.known = max(p.known, n); p.seen.next < p.known {
			p.end.l.Arm(&p.quiet, p.end.l.Now().Add(p.f.r.e.cfg.quiet()))
		}
		return
	}
	if p.f.op != OpWrite {
		return
	}
	for ; p.known < n; p.known++ {
		p.t.bytes += uint64(p.f.size)
		p.arrive(arrival{slot: int(p.known % uint64(p.f.slots)), m: p.known})
	}
}

func (p *responder) arrive(a arrival) {
	p.arrived[p.count%uint64(len(p.arrived))] = a
	p.count++
}

// completion takes a receive in.
func (p *responder) completion(wc *verbs.WC) {
	p.stall.move()
	if wc.Status != verbs.Success {
		p.t.errors++
		if p.state == active && !p.lossy {
			p.fail(wc.Status.String(), fmt.Sprintf("receive: %s (vendor error %#x)", wc.Status, wc.VendorErr))
		}
		return
	}
	a := arrival{slot: int(wc.ID), m: p.count}
	want := p.f.size
	if p.f.svc == verbs.UD {
		want += grh
	}
	if p.f.svc != verbs.RC {
		var how order
		if a.m, how = p.seen.arrive(wc.Imm); how == again {
			p.t.duplicates++
			a.again = true
		}
		if p.f.op == OpWrite {
			a.slot = int(a.m % uint64(p.f.slots))
			// Its slot may belong to another message by now: nothing is known of what it holds.
			a.stale = how != fresh
		}
		if !a.again && !a.stale {
			p.t.messages++
			p.t.bytes += uint64(p.f.size)
		}
		p.end.l.Disarm(&p.quiet)
		if p.seen.next < p.known {
			p.end.l.Arm(&p.quiet, p.end.l.Now().Add(p.f.r.e.cfg.quiet()))
		}
	} else {
		p.t.bytes += uint64(p.f.size)
	}
	if int(wc.ByteLen) != want {
		p.violation(a.m, 0, "length", uint64(want), uint64(wc.ByteLen))
		a.bad = true
	}
	p.t.end = p.end.l.Now()
	p.arrive(a)
}
