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
	Messages  int
	Packets   uint64
	Counters  [2]rnic.Counters
	Exhausted bool // a request used its retries up
	Took      time.Duration
}

// run is one run under way.
type run struct {
	plan      *plan
	v         *loop.Virtual
	frames    *link.Pool
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
	t := &run{plan: p, v: loop.NewVirtual(lookahead), frames: &r.frames}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v", x)
			if o.Bugs == 0 {
				panic(x)
			}
		}
		if err != nil {
			r.frames = link.Pool{} // a run that was broken off keeps some
			err = fmt.Errorf("seed %d (%v, %v, path MTU %d, messages %v, faults %+v): %w", seed, p.kind, p.profile.Recovery, p.mtu, p.messages, p.faults, err)
		}
	}()
	if err = t.do(); err != nil {
		return res, err
	}
	res = Result{Kind: p.kind, Recovery: p.profile.Recovery, Messages: len(t.hosts[0].mine.ops) + len(t.hosts[1].mine.ops), Exhausted: t.exhausted, Took: time.Duration(t.v.Now())}
	for i, h := range t.hosts {
		res.Counters[i] = h.dev.Counters()
		res.Packets += res.Counters[i].TxPackets
	}
	return res, nil
}

func (t *run) do() error {
	p := t.plan
	t.mon = &monitor{p: p}
	t.w = newWriter(p)
	scripts := [2]*script{t.w.write(0), t.w.write(1)}
	for i := range t.hosts {
		t.hosts[i] = &host{r: t, i: i, node: t.v.Node(uint32(i)), addr: address(p, i), mine: scripts[i], theirs: scripts[1-i], last: -1}
		t.mon.dirs[i] = direction{script: scripts[i], naked: map[int]bool{}, clean: !t.faulty()}
		t.loose[i] = make([]bool, len(t.w.want[i]))
	}
	for i, h := range t.hosts {
		h.wire = &wire{frames: t.frames, from: h.node, to: t.hosts[1-i].node, rng: rand.New(rand.NewPCG(p.seed, uint64(i))), bytes: p.bytes, mon: t.mon, out: i}
		h.postAt.Fire = func() { h.waiting = false; h.pump() }
		h.giveAt.Fire = h.give
	}
	for i, h := range t.hosts {
		d, err := rnic.New(h.config(t.frames))
		if err != nil {
			return err
		}
		h.dev = d
		t.hosts[1-i].wire.dest = d
	}
	if err := t.prepare(); err != nil {
		return err
	}
	if err := t.until(time.Second, func() bool { return t.hosts[0].through() && t.hosts[1].through() }); err != nil {
		return err
	}
	// What is still under way must change nothing.
	end := t.v.Now().Add(2 * time.Millisecond)
	if err := t.until(time.Second, func() bool { return t.v.Now() >= end }); err != nil {
		return err
	}
	if err := t.settle(); err != nil {
		return err
	}
	return t.shut()
}

// shut closes both devices. Every frame must be back in the pool then.
func (t *run) shut() error {
	for i, h := range t.hosts {
		if err := callErr(t, fmt.Sprintf("close device %d", i), h.dev.Close); err != nil {
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
func (t *run) until(most time.Duration, done func() bool) error {
	limit := t.v.Now().Add(most)
	for steps := 0; !done(); steps++ {
		if t.mon.err != nil {
			return t.mon.err
		}
		if !t.v.Step() {
			if t.started && t.v.Now() < limit && t.hosts[0].through() && t.hosts[1].through() {
				return nil
			}
			return t.stuck("nothing is left to happen")
		}
		if t.v.Now() > limit || steps > 1<<20 {
			return t.stuck("no end in sight")
		}
	}
	return t.mon.err
}

func (t *run) stuck(what string) error {
	a, b := t.hosts[0], t.hosts[1]
	return fmt.Errorf("%s at %v: of %d and %d requests %d and %d are done, of %d and %d receives %d and %d", what, t.v.Now(),
		len(a.mine.ops), len(b.mine.ops), a.next, b.next, len(a.theirs.recvs), len(b.theirs.recvs), a.got, b.got)
}

// faulty says that the wire does not carry everything as it was.
func (t *run) faulty() bool { return t.plan.faults[0].any() || t.plan.faults[1].any() }

// excused says that a request may fail with a status though it isn't meant to: the peer has failed by
// design, or the wire was so bad that every retry was.
func (t *run) excused(h *host, s verbs.Status) bool {
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
func (t *run) loosen(from, id int) {
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
func (t *run) settle() error {
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
func (t *run) settleUnreliable(h *host) error {
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
func (t *run) place(host, at int) string {
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
