package torture

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Result is what a run did, besides not being in violation.
type Result struct {
	Kind      verbs.QPType
	Recovery  rnic.Recovery
	Pairs     int // of queue pairs
	Messages  int
	Packets   uint64
	Counters  [2]rnic.Counters
	Exhausted bool // a request used its retries up
	Took      time.Duration
}

// bed is one run under way: two devices, the wires between them, and pairs of queue pairs with work of their own.
type bed struct {
	plan   *plan
	v      *loop.Virtual
	frames *link.Pool
	devs   [2]*rnic.Device
	wires  [2]*wire
	pairs  []*pair
}

// pair is a queue pair of each host's, and what they do.
type pair struct {
	*bed
	plan      *plan
	hosts     [2]*host
	mon       *monitor
	w         *writer
	loose     [2][]bool
	connected bool
	started   bool
	exhausted bool
}

// Runner makes runs one after the other and uses again what they leave.
type Runner struct{ frames link.Pool }

// Do makes a run. Its error names what was violated, and the seed.
func (r *Runner) Do(seed uint64, o Options) (res Result, err error) {
	p := newPlan(seed, &o)
	t := &bed{plan: p, v: loop.NewVirtual(lookahead), frames: &r.frames}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v", x)
			if o.Bugs == 0 {
				panic(x)
			}
		}
		if err != nil {
			r.frames = link.Pool{} // a run that was broken off keeps some
			err = fmt.Errorf("seed %d (%v, %v, path MTU %d, messages %v, faults %+v): %w", seed, p.kind, p.recovery, p.mtu, p.messages, p.faults, err)
		}
	}()
	if err = t.do(&o); err != nil {
		return res, err
	}
	res = Result{Kind: p.kind, Recovery: p.profile.Recovery, Pairs: len(t.pairs), Took: time.Duration(t.v.Now())}
	for _, q := range t.pairs {
		res.Messages += len(q.hosts[0].mine.ops) + len(q.hosts[1].mine.ops)
		res.Exhausted = res.Exhausted || q.exhausted
	}
	for i, d := range t.devs {
		res.Counters[i] = d.Counters()
		res.Packets += res.Counters[i].TxPackets
	}
	return res, nil
}

func (t *bed) do(o *Options) error {
	if err := t.build(o); err != nil {
		return err
	}
	for _, q := range t.pairs {
		if err := q.prepare(); err != nil {
			return err
		}
	}
	for _, q := range t.pairs {
		q.start()
	}
	through := func() bool {
		for _, q := range t.pairs {
			if !q.through() {
				return false
			}
		}
		return true
	}
	if err := t.until(time.Second, through); err != nil {
		return err
	}
	// What is still under way must change nothing.
	end := t.v.Now().Add(2 * time.Millisecond)
	if err := t.until(time.Second, func() bool { return t.v.Now() >= end }); err != nil {
		return err
	}
	for _, q := range t.pairs {
		if err := q.settle(); err != nil {
			return err
		}
	}
	return t.shut()
}

// build makes devices and wires, and writes what each pair has to do.
func (t *bed) build(o *Options) error {
	p := t.plan
	for i := range t.wires {
		t.wires[i] = &wire{
			bed: t, frames: t.frames, from: t.v.Node(uint32(i)), to: t.v.Node(uint32(1 - i)), rng: rand.New(rand.NewPCG(p.seed, uint64(i))), bytes: p.bytes, out: i,
		}
		d, err := rnic.New(t.config(i))
		if err != nil {
			return err
		}
		t.devs[i] = d
		d.OnAsync(func(e verbs.AsyncEvent) { t.event(i, e) })
	}
	for i := range t.wires {
		t.wires[i].dest = t.devs[1-i]
	}
	for k := range p.pairs {
		own := p
		if k > 0 {
			own = p.beside(k, o)
		}
		t.pairs = append(t.pairs, newPair(t, own))
	}
	return nil
}

func newPair(t *bed, p *plan) *pair {
	q := &pair{bed: t, plan: p, mon: &monitor{p: p}, w: newWriter(p)}
	scripts := [2]*script{q.w.write(0), q.w.write(1)}
	for i := range q.hosts {
		h := &host{r: q, i: i, node: t.v.Node(uint32(i)), dev: t.devs[i], addr: address(p, i), mine: scripts[i], theirs: scripts[1-i], last: -1}
		h.postAt.Fire = func() { h.waiting = false; h.pump() }
		h.giveAt.Fire = h.give
		h.rng = rand.New(rand.NewPCG(p.seed, 2+uint64(i)))
		q.hosts[i] = h
		q.mon.dirs[i] = direction{script: scripts[i], naked: map[int]bool{}, clean: !q.faulty()}
		q.loose[i] = make([]bool, len(q.w.want[i]))
	}
	return q
}

// event is one of a host's device. Only what is meant to fail makes those of errors.
func (t *bed) event(host int, e verbs.AsyncEvent) {
	for _, q := range t.pairs {
		if e.QP == nil || e.QP != q.hosts[host].qp {
			continue
		}
		switch e.Type {
		case verbs.EventQPAccessErr, verbs.EventQPReqErr, verbs.EventQPFatal:
			if host == 0 || !q.hosts[0].poisoned() {
				q.hosts[host].bad("event %v, and nothing was to fail", e.Type)
			}
		}
	}
}

// config is a host's device.
func (t *bed) config(i int) rnic.Config {
	p := t.plan
	prof := p.profile
	prof.Recovery = p.recovery[i]
	mac := func(i int) roce.MAC { return roce.MAC{2, 5: byte(i)} }
	return rnic.Config{
		Name: fmt.Sprintf("h%d", i), Loop: t.v.Node(uint32(i)), MAC: mac(i), Addr: address(p, i), MTU: 1500, Rate: p.rate,
		Seed: p.seed, Profile: prof, Frames: t.frames, Wire: t.wires[i], Bugs: p.bugs, Phantom: true,
		Resolve: func(a roce.Addr) (rnic.Neighbor, bool) {
			return rnic.Neighbor{MAC: mac(1 - i), Dst: uint32(1 - i), Selective: true}, a == address(p, 1-i)
		},
	}
}

// monitor is that of the pair that a packet from a host is of, nil when it is of none.
func (t *bed) monitor(from int, destQP uint32) *monitor {
	for _, q := range t.pairs {
		if to := q.hosts[1-from].qp; to != nil && to.Num() == destQP {
			return q.mon
		}
	}
	return nil
}

// shut closes both devices. Every frame must be back in the pool then.
func (t *bed) shut() error {
	for i, d := range t.devs {
		if err := callErr(t, fmt.Sprintf("close device %d", i), d.Close); err != nil {
			return err
		}
	}
	if made, idle := t.frames.Made(), t.frames.Idle(); made != uint64(idle) {
		return fmt.Errorf("%d of %d frames have not come back", made-uint64(idle), made)
	}
	return nil
}

func address(p *plan, i int) roce.Addr {
	if p.v6 {
		return roce.Addr{0: 0xfd, 15: byte(1 + i)}
	}
	return roce.Addr4([4]byte{10, 0, 0, byte(1 + i)})
}

// until lets time pass until done, and gives up after a span of it.
func (t *bed) until(most time.Duration, done func() bool) error {
	limit := t.v.Now().Add(most)
	for steps := 0; !done(); steps++ {
		if err := t.violation(); err != nil {
			return err
		}
		switch {
		case !t.v.Step():
			for _, q := range t.pairs {
				if !q.started || !q.through() {
					return t.stuck("nothing is left to happen")
				}
			}
			return nil
		case t.v.Now() > limit || steps > 1<<22:
			return t.stuck("no end in sight")
		}
	}
	return t.violation()
}

func (t *bed) violation() error {
	for _, q := range t.pairs {
		if q.mon.err != nil {
			return q.mon.err
		}
	}
	return nil
}

func (t *bed) stuck(what string) error {
	for _, q := range t.pairs {
		if a, b := q.hosts[0], q.hosts[1]; !q.through() {
			return fmt.Errorf("%s at %v: of %d and %d requests %d and %d are done, of %d and %d receives %d and %d", what, t.v.Now(),
				len(a.mine.ops), len(b.mine.ops), a.next, b.next, len(a.theirs.recvs), len(b.theirs.recvs), a.got, b.got)
		}
	}
	return fmt.Errorf("%s at %v", what, t.v.Now())
}

// through says that neither host has anything left to wait for.
func (t *pair) through() bool { return t.hosts[0].through() && t.hosts[1].through() }

// faulty says that the wire does not carry everything as it was.
func (t *pair) faulty() bool { return t.plan.faults[0].any() || t.plan.faults[1].any() }

// excused says that a request may fail with a status though it isn't meant to: the peer has failed by
// design, or the wire was so bad that every retry was.
func (t *pair) excused(h *host, s verbs.Status) bool {
	if s != verbs.RetryExcErr && s != verbs.WRFlushErr {
		return false
	}
	if t.hosts[0].poisoned() && t.plan.kind == verbs.RC && (h.i == 1 || t.faulty()) {
		return true
	}
	if !t.faulty() {
		return false
	}
	t.exhausted = true
	if s == verbs.WRFlushErr { // the other direction's failed
		return t.hosts[1-h.i].failed || h.broken || t.plan.kind == verbs.RC
	}
	c := h.dev.Counters()
	return c.LocalAckTimeoutErr+c.PacketSeqErr+c.ImpliedNakSeqErr > uint64(t.plan.attr.RetryCnt)
}

// loosen takes what the requests from one on would have changed as open.
func (t *pair) loosen(from, id int) {
	for _, o := range t.hosts[from].mine.ops[id:] {
		mark := func(host int, s span) {
			for i := s.off; i < s.off+s.n; i++ {
				t.loose[host][i] = true
			}
		}
		switch o.kind {
		case verbs.OpRDMARead, verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd:
			for _, s := range o.local {
				mark(from, s)
			}
		}
		switch o.kind {
		case verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpAtomicCmpAndSwp, verbs.OpAtomicFetchAndAdd:
			mark(1-from, span{o.remote, o.length})
		}
		if o.recv >= 0 {
			for _, s := range t.hosts[from].mine.recvs[o.recv].list {
				mark(1-from, s)
			}
		}
	}
}

// settle compares all memory with the model's.
func (t *pair) settle() error {
	for i, h := range t.hosts {
		if t.plan.kind != verbs.RC {
			if err := t.settleUnreliable(h); err != nil {
				return err
			}
		}
		got, want := h.read(span{0, h.mem.Len()}), t.w.want[i]
		for k := range want {
			if got[k] != want[k] && !t.loose[i][k] {
				return fmt.Errorf("host %d's memory is wrong at %d (%s)", i, k, t.place(i, k))
			}
		}
	}
	return nil
}

// settleUnreliable checks that each packet's part of a UC WRITE is there or not, but not otherwise, and
// takes receives as open: what completed was checked when it did.
func (t *pair) settleUnreliable(h *host) error {
	for _, rc := range h.theirs.recvs {
		for _, s := range rc.list {
			for k := s.off; k < s.off+s.n; k++ {
				t.loose[h.i][k] = true
			}
		}
	}
	got, was := h.read(span{0, h.mem.Len()}), t.w.begin[h.i]
	for _, o := range h.theirs.ops {
		if o.kind != verbs.OpRDMAWrite && o.kind != verbs.OpRDMAWriteWithImm {
			continue
		}
		for off := 0; off < o.length; off += t.plan.mtu {
			n := min(t.plan.mtu, o.length-off)
			at := o.remote + off
			written, untouched := true, true
			for k := range n {
				written = written && got[at+k] == o.data[off+k]
				untouched = untouched && got[at+k] == was[at+k]
				t.loose[h.i][at+k] = true
			}
			if !written && !(untouched && t.plan.faults[1-h.i].any()) && !(untouched && o.kind == verbs.OpRDMAWriteWithImm) {
				return fmt.Errorf("host %d: the packet at %d of request %d is there neither whole nor not at all", h.i, off, o.id)
			}
		}
	}
	return nil
}

// place names what lies at an offset of a host's memory.
func (t *pair) place(host, at int) string {
	in := func(s span) bool { return at >= s.off && at < s.off+s.n }
	for _, o := range t.hosts[host].mine.ops {
		if o.kind == verbs.OpRDMARead || o.kind == verbs.OpAtomicCmpAndSwp || o.kind == verbs.OpAtomicFetchAndAdd {
			for _, s := range o.local {
				if in(s) {
					return fmt.Sprintf("where request %d, %v, puts what it brings", o.id, o.kind)
				}
			}
		}
	}
	for i, rc := range t.hosts[host].theirs.recvs {
		for _, s := range rc.list {
			if in(s) {
				return fmt.Sprintf("receive %d", i)
			}
		}
	}
	last := "untouched"
	for _, o := range t.hosts[host].theirs.ops {
		if o.remote > 0 && o.kind != verbs.OpRDMARead && in(span{o.remote, o.length}) {
			last = fmt.Sprintf("last changed by request %d, %v of %d bytes to %d", o.id, o.kind, o.length, o.remote)
		}
	}
	return last
}
