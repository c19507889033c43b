package workloads

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// flows is the program of every workload between NICs: all its queue pairs at once.
type flows struct {
	r     *run
	all   []*flow
	words []*sharedWord

	// Owned by the coordinator.
	hosts   gather
	reqs    []*tally
	resps   []*tally
	counted []uint64 // the words' values at the end
	started bool
}

func newFlows(r *run) (*flows, error) {
	p := &flows{r: r, hosts: gather{e: r.e}}
	pairs, err := pairsOf(r.spec, r.e.cfg.Topology)
	if err != nil {
		return nil, err
	}
	shared := map[topo.PortRef]*sharedWord{}
	for _, pr := range pairs {
		for qp := range r.spec.qps() {
			f, err := newFlow(r, len(p.all), qp, pr)
			if err != nil {
				return nil, err
			}
			p.all = append(p.all, f)
			if r.spec.Kind != Incast || f.op != OpAtomic || r.spec.Atomic == CmpSwap {
				continue
			}
			if shared[pr.to] == nil {
				shared[pr.to] = &sharedWord{nic: r.e.nics[pr.to]}
				p.words = append(p.words, shared[pr.to])
			}
			f.word, f.req.added = shared[pr.to], 1
		}
	}
	p.reqs, p.resps = make([]*tally, len(p.all)), make([]*tally, len(p.all))
	p.counted = make([]uint64, len(p.words))
	return p, nil
}

func (p *flows) open(done func(error)) {
	e := p.r.e
	words := p.hosts.expect(len(p.words), func() {
		if err := p.hosts.err(); err != nil {
			done(err)
			return
		}
		ends := p.hosts.expect(2*len(p.all), func() { done(p.hosts.err()) })
		for _, f := range p.all {
			both := p.r.connected(f.index, f.req.end, f.resp.end, &p.hosts, ends, func() { p.r.emit(EventFlowUp, f.name, "") })
			connectEnds(e, f.req.end, f.resp.end, func() error { f.req.prepare(); return nil }, f.resp.prepare, both)
		}
	})
	for _, w := range p.words {
		e.x.Send(e.l, w.nic.l, func() {
			w.open(e.cfg.ControlTimeout, func(err error) { words(w.nic.l, err, nil) })
		})
	}
}

func (p *flows) count() int { return len(p.all) }

func (p *flows) start(at loop.Time, done func()) {
	p.started = true
	both := p.hosts.expect(2*len(p.all), done)
	for i, f := range p.all {
		p.r.e.x.Send(p.r.e.l, f.resp.end.l, func() {
			f.resp.start(at, func(t *tally) { both(f.resp.end.l, nil, func() { p.resps[i] = t; p.tallied(f, i) }) })
		})
		p.r.e.x.Send(p.r.e.l, f.req.end.l, func() {
			f.req.start(at, func(t *tally) { both(f.req.end.l, nil, func() { p.reqs[i] = t; p.tallied(f, i) }) })
		})
	}
}

// tallied tells of a flow's end once both of its ends have reported.
func (p *flows) tallied(f *flow, i int) {
	q, r := p.reqs[i], p.resps[i]
	if q == nil || r == nil {
		return
	}
	if why := failureOf(q, r); why != "" {
		p.r.emit(EventError, f.name, why)
	} else {
		p.r.emit(EventCompleted, f.name, "")
	}
	for _, t := range [...]*tally{q, r} {
		p.r.violated += t.violations - min(t.violations, examples)
	}
}

func failureOf(q, r *tally) string {
	if q.failure != "" {
		return q.failure
	}
	return r.failure
}

func (p *flows) stop() {
	for _, f := range p.all {
		p.r.e.x.Send(p.r.e.l, f.req.end.l, f.req.stop)
	}
}

func (p *flows) abort(why string) {
	for _, f := range p.all {
		p.r.e.x.Send(p.r.e.l, f.req.end.l, func() { f.req.abort(why) })
	}
}

func (p *flows) close(done func(error)) {
	e := p.r.e
	limit := e.cfg.ControlTimeout
	p.hosts.errs = nil
	ends := p.hosts.expect(2*len(p.all), func() {
		words := p.hosts.expect(len(p.words), func() { done(p.hosts.err()) })
		for i, w := range p.words {
			e.x.Send(e.l, w.nic.l, func() {
				got := w.value()
				w.close(limit, func(err error) { words(w.nic.l, err, func() { p.counted[i] = got }) })
			})
		}
	})
	for _, f := range p.all {
		for _, d := range [...]*end{f.req.end, f.resp.end} {
			e.x.Send(e.l, d.l, func() { d.close(limit, func(err error) { ends(d.l, err, nil) }) })
		}
	}
}

// result adds the flows up.
func (p *flows) result(res *Result) {
	if !p.started {
		return
	}
	total, scratch := newHistogram(), newHistogram()
	var shares []float64
	for i, f := range p.all {
		q, r := p.reqs[i], p.resps[i]
		res.Flows = append(res.Flows, flowResult(f, q, r, scratch))
		fr := &res.Flows[i]
		q.latency.addTo(total)
		if i == 0 || fr.Start < res.Start {
			res.Start = fr.Start
		}
		res.End = max(res.End, fr.End)
		res.Bytes += fr.Bytes
		res.VerifiedBytes += fr.VerifiedBytes
		res.WrongBytes += fr.WrongBytes
		res.Messages += fr.Messages
		res.Errors += fr.Errors
		res.Lost += fr.Lost
		res.Duplicates += fr.Duplicates
		res.OutOfOrder += fr.OutOfOrder
		if fr.Status != "" && !slices.Contains(res.Statuses, fr.Status) {
			res.Statuses = append(res.Statuses, fr.Status)
		}
		fr.Killed = f.bereft
		if fr.Failure != "" && !f.bereft && !p.r.expected(fr.Status) {
			p.r.fail(f.name + ": " + fr.Failure)
		}
		shares = append(shares, fr.GoodputBps)
	}
	slices.Sort(res.Statuses)
	for i := range res.Flows {
		if res.Bytes > 0 {
			res.Flows[i].Share = float64(res.Flows[i].Bytes) / float64(res.Bytes)
		}
	}
	res.Duration = res.End.Sub(res.Start)
	res.GoodputBps = goodput(res.Bytes, res.Duration)
	if p.r.spec.WarmUp > 0 {
		res.GoodputBps = 0
		for _, bps := range shares {
			res.GoodputBps += bps
		}
	}
	res.Latency = percentiles(total)
	res.Jain = Jain(shares)
	p.countWords()
}

// countWords checks the shared counters: each addition happened exactly once.
func (p *flows) countWords() {
	for i, w := range p.words {
		var n, returned uint64
		whole, name := true, ""
		for j, f := range p.all {
			if f.word == w {
				n += p.reqs[j].messages
				returned += p.reqs[j].returned
				whole = whole && p.reqs[j].failure == ""
				name = f.name
			}
		}
		if !whole {
			continue // of failed work nothing is known
		}
		if p.counted[i] != n {
			p.r.violation(Violation{p.r.spec.Name, name, n, 0, "atomic", n, p.counted[i]})
		} else if want := countedUp(n); returned != want {
			p.r.violation(Violation{p.r.spec.Name, name, n, 0, "sum", want, returned})
		}
	}
}

func flowResult(f *flow, q, r *tally, scratch *hdrhistogram.Histogram) FlowResult {
	src, dst := f.ends()
	fr := FlowResult{
		Src: portName(src), Dst: portName(dst), Index: f.index,
		SrcQPN: q.qpn, DstQPN: r.qpn,
		Start: q.start, End: max(q.end, r.end),
		Bytes: q.bytes, VerifiedBytes: q.verified + r.verified, WrongBytes: q.wrong + r.wrong,
		Messages: q.messages, Errors: q.errors + r.errors,
		Status: q.status, Failure: failureOf(q, r),
		Lost: r.lost, Duplicates: r.duplicates, OutOfOrder: r.outOfOrder,
		Latency: q.latency.percentiles(scratch),
	}
	if f.op == OpRead {
		fr.SrcQPN, fr.DstQPN = r.qpn, q.qpn
	}
	if f.svc != 0 { // of what arrived, not of what was sent
		fr.Bytes = r.bytes
	}
	if fr.Status == "" {
		fr.Status = r.status
	}
	fr.Duration = fr.End.Sub(fr.Start)
	fr.GoodputBps = goodput(fr.Bytes, fr.Duration)
	if s := f.r.spec; s.WarmUp > 0 {
		fr.GoodputBps = goodput(q.steady, s.Duration-s.WarmUp)
	}
	return fr
}
