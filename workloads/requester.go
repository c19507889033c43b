package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// requester is the end that posts a flow's work. Message numbers count up from 0:
//
//	retired ≤ completed ≤ next ≤ credit
//
// A message's slot is free again once it is retired: when its completion has come, or for a
// READ when its data has been checked.
type requester struct {
	f *flow
	*end
	reporter
	t      tally
	y      layout
	toPeer *wire[note]

	state     endState
	next      uint64
	completed uint64
	retired   uint64
	credit    uint64
	signaled  uint64 // messages below it are known of when their completions have come
	filled    int    // bytes of message next made so far
	checked   int    // bytes of message retired checked so far
	told      uint64 // the last notePlaced or noteRetired
	stopping  bool
	peerOver  bool   // the responder has reported, or never will
	dead      string // why its process is gone
	bereft    string // why the responder's is

	mem     span
	posted  []loop.Time // by slot
	sgl     []verbs.SGE // by slot
	batch   []verbs.SendWR
	every   uint64 // one in so many is signalled
	turn    loop.Timer
	until   loop.Timer
	pace    pacer
	release loop.Timer // when the next message is due
	stall   *stall
	added   uint64 // an atomic's addend
	last    uint64 // a shared counter's last returned value plus one
	report  func(*tally)
}

// endState is where an end is in its flow.
type endState uint8

const (
	idle    endState = iota
	active           // messages under way
	broken           // the QP failed or was given up: flushing
	ending           // all is sent; waiting for the other end
	through          // reported
)

func newRequester(f *flow, n *nic) *requester {
	q := &requester{f: f, y: newLayout(f.size, f.depth)}
	cfg := endConfig{
		workload: f.r.spec.Name, flow: f.index, memory: q.y.bytes(), bytes: f.op == OpAtomic, access: verbs.LocalWrite, service: f.svc,
		sendWR: f.depth + 1, attr: f.r.spec.attr(n.Device.Attr(), f.mtu, f.index), deaf: f.r.e.cfg.IgnoreCNPs,
	}
	q.end = newEnd(n, portName(n.Port)+" (requester of "+f.name+")", f.psn("requester psn"), cfg)
	q.reporter = reporter{f.r, f.name, q.end.l, &q.t}
	q.onWC, q.onDrain, q.onBroken = q.completion, q.drained, func(err error) { q.fail("", err.Error()) }
	q.turn.Fire, q.until.Fire, q.release.Fire = q.work, q.stop, q.released
	q.pace = pacer{Pace: f.r.e.cfg.Pace, size: uint64(f.size), slack: max(uint64(f.depth), f.r.e.cfg.Pace.Burst)}
	q.stall = newStall(q.end.l, f.r.stallLimit(), q.stalled)
	q.posted = make([]loop.Time, f.depth)
	q.sgl = make([]verbs.SGE, f.depth)
	q.batch = make([]verbs.SendWR, 0, f.depth)
	q.every = 1
	if f.r.spec.Signaling == SignalSelective {
		q.every = uint64(max(f.depth/2, 1))
	}
	q.added = streamKey(f.r.e.cfg.Seed, f.r.spec.Name, "addend", f.index)%1000 + 1
	return q
}

// prepare is called once the end is open.
func (q *requester) prepare() {
	q.mem = spanOf(q.end.mem)
	q.y.guard(q.mem)
	for i := range q.sgl {
		q.sgl[i] = verbs.SGE{Addr: q.mr.Addr() + uint64(q.y.offset(i)), Length: uint32(q.f.size), LKey: q.mr.LKey()}
	}
	q.t.qpn = q.qp.Num()
}

// start begins at a time, and reports the tally once when all is over.
func (q *requester) start(at loop.Time, report func(*tally)) {
	q.report = report
	if q.dead != "" {
		q.expire()
		return
	}
	q.turn.Fire = func() {
		q.turn.Fire = q.work
		q.state = active
		q.t.start, q.t.end = q.end.l.Now(), q.end.l.Now()
		q.stall.start()
		if d := q.f.r.spec.Duration; d > 0 {
			q.end.l.Arm(&q.until, q.t.start.Add(d))
		}
		q.work()
	}
	q.end.l.Arm(&q.turn, at)
}

// stop posts nothing new.
func (q *requester) stop() {
	q.stopping = true
	if q.state == active {
		q.work()
	}
}

// work makes, posts and checks what can be, within the budget.
func (q *requester) work() {
	left := budget
	if q.f.op == OpRead {
		left = q.check(left)
	}
	if q.state == active {
		left = q.post(left)
	}
	q.tell()
	if left <= 0 && q.state == active {
		q.end.l.Arm(&q.turn, q.end.l.Now())
		return
	}
	q.finish()
	q.starve()
}

func (q *requester) drained() {
	if q.state == active {
		q.work()
	}
}

// wants says whether another message is to be posted.
func (q *requester) wants() bool {
	if q.next >= q.f.total || q.next >= q.credit || q.next-q.retired >= uint64(q.f.depth) {
		return false
	}
	if q.stopping {
		return q.tail()
	}
	return q.paced()
}

// tail says whether messages have been posted that no completion will tell of. One more,
// signalled, tells of them.
func (q *requester) tail() bool { return q.signaled < q.next }

func (q *requester) post(left int) int {
	q.batch = q.batch[:0]
	for q.wants() && left > 0 {
		slot := int(q.next % uint64(q.f.depth))
		if fills := q.f.op == OpWrite || q.f.op == OpSend; fills && q.f.r.spec.Verified() {
			n, cost := q.mem.step(q.f.size-q.filled, left)
			q.y.slot(q.mem, slot).cut(q.filled, q.filled+n).fill(q.f.stream, q.next*uint64(q.f.size)+uint64(q.filled))
			left -= cost
			if q.filled += n; q.filled < q.f.size {
				break
			}
			q.filled = 0
		}
		q.batch = append(q.batch, q.request(slot))
		q.posted[slot] = q.end.l.Now()
		q.next++
	}
	if len(q.batch) == 0 {
		return left
	}
	if err := q.qp.PostSend(q.batch...); err != nil {
		q.fail("", fmt.Sprintf("post send: %v", err))
	}
	return left
}

// request is the work request of message next.
func (q *requester) request(slot int) verbs.SendWR {
	m := q.next
	wr := verbs.SendWR{ID: m, SGL: q.sgl[slot : slot+1 : slot+1]}
	if m+1-q.signaled >= q.every || m+1 == q.f.total || q.stopping {
		wr.Flags = verbs.Signaled
		q.signaled = m + 1
	}
	remote := q.peer.addr + uint64(q.f.resp.y.offset(int(m%uint64(q.f.slots))))
	switch q.f.op {
	case OpWrite:
		wr.Op, wr.RemoteAddr, wr.RKey = verbs.OpRDMAWrite, remote, q.peer.rkey
		if q.f.svc == verbs.UC { // the responder learns of it no other way
			wr.Op, wr.Imm = verbs.OpRDMAWriteWithImm, uint32(m)
		}
	case OpRead:
		wr.Op, wr.RemoteAddr, wr.RKey = verbs.OpRDMARead, remote, q.peer.rkey
	case OpSend:
		wr.Op = verbs.OpSend
		if q.f.svc != verbs.RC {
			wr.Op, wr.Imm = verbs.OpSendWithImm, uint32(m)
		}
		if q.f.svc == verbs.UD {
			wr.AH, wr.RemoteQPN, wr.RemoteQKey = q.ah, q.peer.qpn, q.peer.qkey
		}
	case OpAtomic:
		wr.RemoteAddr, wr.RKey = q.peer.addr+uint64(q.f.resp.y.offset(0)), q.peer.rkey
		if w := q.f.word; w != nil {
			wr.RemoteAddr, wr.RKey = w.addr, w.rkey
		}
		if q.f.r.spec.Atomic == CmpSwap {
			wr.Op, wr.CompareAdd, wr.Swap = verbs.OpAtomicCmpAndSwp, q.f.stream.word(m), q.f.stream.word(m+1)
		} else {
			wr.Op, wr.CompareAdd = verbs.OpAtomicFetchAndAdd, q.added
		}
	}
	return wr
}

// completion takes a work completion in.
func (q *requester) completion(wc *verbs.WC) {
	q.stall.move()
	if wc.ID == drainID {
		q.flushed()
		return
	}
	if wc.Status != verbs.Success {
		q.failed(wc)
		return
	}
	if wc.ID < q.completed || wc.ID >= q.next {
		q.violation(wc.ID, 0, "order", q.completed, wc.ID)
		return
	}
	now := q.end.l.Now()
	steady := q.f.r.spec.steady(now.Sub(q.t.start))
	q.t.latency.record(now.Sub(q.posted[wc.ID%uint64(q.f.depth)]))
	for ; q.completed <= wc.ID; q.completed++ {
		q.t.messages++
		if q.f.svc == verbs.RC {
			q.t.bytes += uint64(q.f.size)
			if steady {
				q.t.steady += uint64(q.f.size)
			}
		}
		if q.f.op == OpAtomic {
			q.returned(q.completed)
		}
	}
	q.t.end = now
	if q.f.op != OpRead {
		q.retired = q.completed
	}
}

// returned checks what an atomic brought back: the value before the operation.
func (q *requester) returned(m uint64) {
	slot := int(m % uint64(q.f.depth))
	got := q.y.slot(q.mem, slot).word()
	q.checkGap(q.y, q.mem, slot, m)
	want := m * q.added
	switch {
	case q.f.word != nil: // others add too: it only grows
		if want = q.last; got >= want {
			want = got
		}
		q.last = got + 1
		q.t.returned += mix64(got)
	case q.f.r.spec.Atomic == CmpSwap:
		want = q.f.stream.word(m)
	}
	if got == want {
		q.t.verified += 8
		return
	}
	q.t.wrong += 8
	q.violation(m, 0, "atomic", want, got)
}

// check compares READ data that has arrived.
func (q *requester) check(left int) int {
	for q.retired < q.completed && left > 0 {
		slot := int(q.retired % uint64(q.f.depth))
		if q.f.r.spec.Verified() {
			n, cost := q.mem.step(q.f.size-q.checked, left)
			off := uint64(q.checked)
			q.checkSlot(q.f.stream, q.y.slot(q.mem, slot).cut(q.checked, q.checked+n), q.retired, off, q.retired*uint64(q.f.size)+off)
			left -= cost
			if q.checked += n; q.checked < q.f.size {
				break
			}
			q.checked = 0
			q.checkGap(q.y, q.mem, slot, q.retired)
			q.y.slot(q.mem, slot).cut(0, min(q.f.size, guardLen)).poison(q.f.stream, (q.retired+uint64(q.f.depth))*uint64(q.f.size))
		}
		q.retired++
	}
	return left
}

// tell sends word of progress.
func (q *requester) tell() {
	kind, n := notePlaced, q.completed
	switch {
	case q.f.op == OpRead:
		kind, n = noteRetired, q.retired
	case q.f.op == OpAtomic, q.f.op == OpSend && q.f.svc == verbs.RC:
		return
	}
	if n > q.told && q.state == active {
		q.told = n
		q.toPeer.send(note{kind: kind, n: n})
	}
}
