package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// note is what the two ends of a flow tell each other.
type note struct {
	kind noteKind
	n    uint64
	text string // noteFailed
}

type noteKind uint8

const (
	notePlaced  noteKind = iota // to the responder: n messages have completed (RC WRITE: their data is placed)
	noteRetired                 // to the responder: n READ messages have been checked; their slots may be filled anew
	noteEnd                     // to the responder: n messages are all there will be
	noteBroken                  // to the responder: the same after a failure; of what was posted beyond n nothing is known
	noteCredit                  // to the requester: it may post messages below n
	noteDone                    // to the requester: the responder has checked everything
	noteFailed                  // to the requester: the responder can't go on
)

// flow is one queue pair of a workload: a requester and a responder, on their hosts' loops.
// What both read is set before either is opened.
type flow struct {
	r      *run
	index  int
	name   string
	pair   pair
	op     Op
	svc    verbs.QPType
	size   int
	depth  int
	slots  int
	total  uint64
	mtu    int
	stream Stream
	bereft bool        // on the coordinator's loop: the process of one of its ends was killed
	word   *sharedWord // an atomic's counter that several flows add to; nil: each has its own

	req  *requester
	resp *responder
}

// budget is how many bytes an end generates or checks before its loop may do something else.
const budget = 256 << 10

// tally is what one end has to say about its flow. The end owns it until it reports.
type tally struct {
	start, end loop.Time
	bytes      uint64
	steady     uint64 // of bytes, those that came in the time that goodput is over
	verified   uint64
	wrong      uint64
	messages   uint64
	errors     uint64
	status     string // the first error
	failure    string
	lost       uint64
	duplicates uint64
	outOfOrder uint64
	violations uint64
	qpn        uint32
	latency    latencies
	returned   uint64 // shared atomics: the sum of mix64 over the values returned
}

func newFlow(r *run, index, qp int, p pair) (*flow, error) {
	from, err := r.e.nic(p.from)
	if err != nil {
		return nil, err
	}
	to, err := r.e.nic(p.to)
	if err != nil {
		return nil, err
	}
	s := r.spec
	mtu := pathMTU(s, from, to)
	f := &flow{
		r: r, index: index, pair: p, op: s.op(), svc: s.transport(), mtu: mtu,
		size: s.size(mtu), depth: s.depth(mtu), slots: s.slots(mtu),
		stream: NewStream(r.e.cfg.Seed, s.Name, index),
	}
	f.total = s.messages(f.size)
	src, dst := f.ends()
	f.name = fmt.Sprintf("%s→%s#%d", portName(src), portName(dst), qp)
	if f.svc == verbs.UD && f.size > mtu {
		return nil, fmt.Errorf("size: ud carries at most one MTU a message, here %d bytes", mtu)
	}
	f.req = newRequester(f, from)
	f.resp = newResponder(f, to)
	f.req.toPeer = newWire(r.e.x, from.l, to.l, f.resp.note)
	f.resp.toPeer = newWire(r.e.x, to.l, from.l, f.req.note)
	return f, nil
}

// ends are the NICs that data comes from and goes to.
func (f *flow) ends() (src, dst topo.PortRef) {
	if f.op == OpRead {
		return f.pair.to, f.pair.from
	}
	return f.pair.from, f.pair.to
}

// psn is the first PSN that an end sends.
func (f *flow) psn(purpose string) uint32 {
	return uint32(streamKey(f.r.e.cfg.Seed, f.r.spec.Name, purpose, f.index))
}

// pathMTU is the spec's, or the smaller of the two ports'.
func pathMTU(s *Spec, a, b *nic) int {
	if s.QP.MTU != 0 {
		return s.QP.MTU
	}
	return min(a.Device.Port().ActiveMTU, b.Device.Port().ActiveMTU)
}

// layout places slots in a region, guards before, between and after them.
type layout struct{ size, stride, slots int }

func newLayout(size, slots int) layout {
	return layout{size, (size+guardLen-1)/guardLen*guardLen + guardLen, slots}
}

func (y layout) bytes() int       { return guardLen + y.stride*y.slots }
func (y layout) offset(i int) int { return guardLen + y.stride*i }

// gap is the guard after slot i; slot −1's is the one before the first.
func (y layout) gap(mem span, i int) span {
	if i < 0 {
		return mem.cut(0, guardLen)
	}
	return mem.cut(y.offset(i)+y.size, y.offset(i+1))
}

func (y layout) slot(mem span, i int) span {
	o := y.offset(i)
	return mem.cut(o, o+y.size)
}

func (y layout) guard(mem span) {
	for i := -1; i < y.slots; i++ {
		y.gap(mem, i).guard()
	}
}

// reporter finds fault with what an end sees, on the end's loop.
type reporter struct {
	r    *run
	flow string
	l    loop.Loop
	t    *tally
}

func (p *reporter) violation(message, offset uint64, what string, want, got uint64) {
	if p.t.violations++; p.t.violations > examples {
		return
	}
	v := Violation{p.r.spec.Name, p.flow, message, offset, what, want, got}
	p.r.e.x.Send(p.l, p.r.e.l, func() { p.r.violation(v) })
}

// checkGap looks at the guards on both sides of a slot.
func (p *reporter) checkGap(y layout, mem span, slot int, message uint64) {
	for _, i := range [...]int{slot - 1, slot} {
		g := y.gap(mem, i)
		if bad := g.intact(); bad >= 0 {
			want, got := g.broken(bad)
			p.violation(message, uint64(bad), "guard", want, got)
			g.guard()
		}
	}
}

// checkSlot compares a piece of a message, counts, and reports the first wrong byte.
func (p *reporter) checkSlot(s Stream, got span, message, offset, streamOff uint64) {
	bad := got.check(s, streamOff)
	if bad < 0 {
		p.t.verified += uint64(got.n)
		return
	}
	want, is := got.differ(s, bad, streamOff)
	p.violation(message, offset+uint64(bad), "payload", want, is)
	right := got.right(s, streamOff)
	p.t.verified += right
	p.t.wrong += uint64(got.n) - right
}
