package workloads

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rocebed/rocebed/datapath/loop"
)

// collective is the program of a workload over GPU ranks. It runs iterations: fill, barrier,
// communicate, check. Only communicating counts as time.
type collective struct {
	r     *run
	ranks []*rankEnd
	lanes []*lane
	prog  collectiveProgram

	// Owned by the coordinator.
	hosts      gather
	done       func()
	begun      loop.Time // of the first iteration
	at         loop.Time // of this one
	last       loop.Time // when its last rank was through
	iterations uint64
	busy       time.Duration
	stopping   bool
	broken     bool
	bereft     string // why a rank's process is gone
	statuses   []string
}

// collectiveProgram is what tells one collective from another.
type collectiveProgram interface {
	lanes() []*lane
	first(*lane) int // how many units may go as soon as an iteration begins
	// fill makes a rank's input, and check its output; both on the rank's loop.
	fill(e *rankEnd, iteration uint64, done func())
	check(e *rankEnd, iteration uint64, done func())
	busFactor() float64
}

func newCollective(r *run) (*collective, error) {
	c := &collective{r: r, hosts: gather{e: r.e}}
	ranks, err := ranksOf(r.spec, r.e.cfg.Topology)
	if err != nil {
		return nil, err
	}
	c.ranks = make([]*rankEnd, len(ranks))
	y := newLayout(r.spec.size(0), 1) // of a rank's buffer
	if r.spec.Kind == AllToAll {
		a := newAllToAll(c)
		c.prog, y = a, newLayout(a.block*len(ranks), 2)
	} else {
		c.prog = newAllReduce(c)
	}
	for i, rk := range ranks {
		n, err := r.e.nic(rk.port)
		if err != nil {
			return nil, err
		}
		c.ranks[i] = newRankEnd(c, i, rk, n, y)
	}
	c.lanes = c.prog.lanes()
	for _, w := range c.lanes {
		w.from.outs = append(w.from.outs, w)
		w.to.ins = append(w.to.ins, w)
	}
	return c, nil
}

// eachRank does something on every rank's loop, and then what comes next.
func (c *collective) eachRank(do func(e *rankEnd, answer func(error, func())), then func()) {
	all := c.hosts.expect(len(c.ranks), then)
	for _, e := range c.ranks {
		c.r.e.x.Send(c.r.e.l, e.l, func() {
			do(e, func(err error, note func()) { all(e.l, err, note) })
		})
	}
}

func (c *collective) open(done func(error)) {
	c.eachRank(func(e *rankEnd, answer func(error, func())) { e.open(func(err error) { answer(err, nil) }) }, func() {
		if err := c.hosts.err(); err != nil {
			done(err)
			return
		}
		ends := c.hosts.expect(2*len(c.lanes), func() {
			if err := c.hosts.err(); err != nil {
				done(err)
				return
			}
			c.eachRank(func(e *rankEnd, answer func(error, func())) {
				c.prog.fill(e, 0, func() { answer(nil, nil) })
			}, func() { done(nil) })
		})
		for _, w := range c.lanes {
			c.openLane(w, ends)
		}
	})
}

func (c *collective) openLane(w *lane, ends answer) {
	if w.local() {
		c.r.e.x.Send(c.r.e.l, w.to.l, func() {
			err := w.prepareIn()
			ends(w.to.l, err, nil)
			ends(w.to.l, nil, nil)
		})
		return
	}
	connectEnds(c.r.e, w.out.end, w.in.end, func() error { w.out.t.qpn = w.out.qp.Num(); return nil }, w.prepareIn, c.r.connected(w.index, w.out.end, w.in.end, &c.hosts, ends, nil))
}

func (c *collective) count() int { return len(c.lanes) }

func (c *collective) start(at loop.Time, done func()) {
	c.done, c.begun = done, at
	c.mourn()
	c.iterate(at)
}

func (c *collective) iterate(at loop.Time) {
	c.at = at
	i := c.iterations
	c.eachRank(func(e *rankEnd, answer func(error, func())) {
		e.begin(i, at, func(through loop.Time) {
			answer(nil, func() { c.last = max(c.last, through) })
		})
	}, c.iterated)
}

// iterated is called when every rank is through an iteration.
func (c *collective) iterated() {
	i := c.iterations
	c.iterations++
	c.busy += c.last.Sub(c.at)
	s := c.r.spec
	more := !c.stopping && (s.Messages == 0 || c.iterations < uint64(s.Messages)) &&
		(s.Duration == 0 || c.last.Sub(c.begun) < s.Duration)
	c.eachRank(func(e *rankEnd, answer func(error, func())) {
		c.prog.check(e, i, func() {
			if !more {
				answer(nil, nil)
				return
			}
			c.prog.fill(e, i+1, func() { answer(nil, nil) })
		})
	}, func() {
		if more && !c.stopping {
			c.iterate(c.r.e.l.Now().Add(c.r.e.cfg.LookAhead))
			return
		}
		c.done()
	})
}

func (c *collective) stop() { c.stopping = true }

func (c *collective) abort(why string) { c.failed("", why) }

// failed ends the collective: every rank stops sending.
func (c *collective) failed(status, why string) {
	if c.broken {
		return
	}
	c.broken = true
	if status != "" {
		c.statuses = append(c.statuses, status)
	}
	if c.bereft == "" && !c.r.expected(status) {
		c.r.fail(why)
	}
	c.r.emit(EventError, "", why)
	c.eachRank(func(e *rankEnd, answer func(error, func())) { e.halt(func() { answer(nil, nil) }) }, c.done)
}

func (c *collective) close(done func(error)) {
	limit := c.r.e.cfg.ControlTimeout
	c.hosts.errs = nil
	var ends []*end
	for _, w := range c.lanes {
		if !w.local() {
			ends = append(ends, w.out.end, w.in.end)
		}
	}
	all := c.hosts.expect(len(ends), func() {
		c.eachRank(func(e *rankEnd, answer func(error, func())) { e.close(func(err error) { answer(err, nil) }) },
			func() { done(c.hosts.err()) })
	})
	for _, d := range ends {
		c.r.e.x.Send(c.r.e.l, d.l, func() { d.close(limit, func(err error) { all(d.l, err, nil) }) })
	}
}

func (c *collective) result(res *Result) {
	if c.done == nil {
		return
	}
	res.Ranks, res.Iterations, res.Duration = len(c.ranks), c.iterations, c.busy
	res.Start, res.End = c.begun, c.last
	total, scratch := newHistogram(), newHistogram()
	tallies := []*tally{}
	var shares []float64
	for _, e := range c.ranks {
		tallies = append(tallies, &e.t)
	}
	for _, w := range c.lanes {
		if w.local() { // what is copied inside a host is checked, but is no traffic
			tallies = append(tallies, &tally{wrong: w.in.t.wrong, violations: w.in.t.violations})
			continue
		}
		tallies = append(tallies, &w.in.t, &w.out.t)
		w.out.t.latency.addTo(total)
		f := c.laneResult(w, scratch)
		res.Flows = append(res.Flows, f)
		shares = append(shares, f.GoodputBps)
	}
	for _, t := range tallies {
		res.Bytes += t.bytes
		res.VerifiedBytes += t.verified
		res.WrongBytes += t.wrong
		res.Messages += t.messages
		res.Errors += t.errors
		c.r.violated += t.violations - min(t.violations, examples)
	}
	for i := range res.Flows {
		if res.Bytes > 0 {
			res.Flows[i].Share = float64(res.Flows[i].Bytes) / float64(res.Bytes)
		}
	}
	slices.Sort(c.statuses)
	res.Statuses = c.statuses
	res.GoodputBps = goodput(res.Bytes, c.busy)
	res.AlgBwBps = goodput(uint64(c.r.spec.size(0))*c.iterations, c.busy)
	res.BusBwBps = res.AlgBwBps * c.prog.busFactor()
	res.Latency, res.Jain = percentiles(total), Jain(shares)
}

func (c *collective) laneResult(w *lane, scratch *hdrhistogram.Histogram) FlowResult {
	t := &w.out.t
	return FlowResult{
		Src: portName(w.from.rank.port), Dst: portName(w.to.rank.port), Index: w.index,
		SrcQPN: t.qpn, DstQPN: w.in.t.qpn,
		Start: t.start, End: t.end, Duration: c.busy,
		Bytes: t.bytes, VerifiedBytes: w.in.t.verified, WrongBytes: w.in.t.wrong,
		Messages: t.messages, GoodputBps: goodput(t.bytes, c.busy), Latency: t.latency.percentiles(scratch),
		Errors: t.errors + w.in.t.errors, Status: t.status, Failure: t.failure,
	}
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
