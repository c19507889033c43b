package workloads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// flows is the program of every workload between NICs: all its queue pairs at once.
type flows struct {
	r     *run
	all   []*flow
	words []*sharedWord

	// Owned by the coordinator.
	left    int // answers that the current phase waits for
	errs    []error
	then    func()
	reqs    []*tally
	resps   []*tally
	counted []uint64 // the words' values at the end
	started bool
}

func newFlows(r *run) (*flows, error) {
	p := &flows{r: r}
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

// expect sets how many answers the phase waits for, and what comes then.
func (p *flows) expect(n int, then func()) {
	p.left, p.then = n, then
	if n == 0 {
		then()
	}
}

// answer is called on a host's loop.
func (p *flows) answer(from loop.Loop, err error, note func()) {
	p.r.e.x.Send(from, p.r.e.l, func() {
		if note != nil {
			note()
		}
		if err != nil {
			p.errs = append(p.errs, err)
		}
		if p.left--; p.left == 0 {
			p.then()
		}
	})
}

func (p *flows) open(done func(error)) {
	limit := p.r.e.cfg.ControlTimeout
	p.expect(len(p.words), func() {
		if len(p.errs) > 0 {
			done(errors.Join(p.errs...))
			return
		}
		p.expect(2*len(p.all), func() { done(first(p.errs)) })
		for _, f := range p.all {
			p.openFlow(f)
		}
	})
	for _, w := range p.words {
		p.r.e.x.Send(p.r.e.l, w.nic.l, func() {
			w.open(limit, func(err error) { p.answer(w.nic.l, err, nil) })
		})
	}
}

// first is the first error, and how many others there are.
func first(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%w (and %d more errors)", errs[0], len(errs)-1)
}

// openFlow opens both ends, lets them exchange addresses, and brings them to RTS.
func (p *flows) openFlow(f *flow) {
	limit := p.r.e.cfg.ControlTimeout
	up := 0
	openEnd := func(d, peer *end, prepare func() error) func() {
		var told *address // the peer's, if it was first
		opened := false
		join := func() {
			if !opened || told == nil {
				return
			}
			d.connect(*told, limit, func(err error) {
				p.answer(d.l, err, func() {
					if up++; err == nil && up == 2 {
						p.r.emit(EventFlowUp, f.name, "")
					}
				})
			})
		}
		d.onAddress = func(a address) { told = &a; join() }
		return func() {
			d.open(limit, func(err error) {
				if err == nil {
					err = prepare()
				}
				var a address
				if err != nil {
					a.err = err
					p.answer(d.l, err, nil)
				} else {
					a = d.address()
					opened = true
				}
				p.r.e.x.Send(d.l, peer.l, func() { peer.onAddress(a) })
				join()
			})
		}
	}
	q, r := f.req, f.resp
	openReq := openEnd(q.end, r.end, func() error { q.prepare(); return nil })
	openResp := openEnd(r.end, q.end, r.prepare)
	p.r.e.x.Send(p.r.e.l, q.end.l, openReq)
	p.r.e.x.Send(p.r.e.l, r.end.l, openResp)
}

func (p *flows) start(at loop.Time, done func()) {
	p.started = true
	p.expect(2*len(p.all), done)
	for i, f := range p.all {
		p.r.e.x.Send(p.r.e.l, f.resp.end.l, func() {
			f.resp.start(at, func(t *tally) { p.answer(f.resp.end.l, nil, func() { p.resps[i] = t; p.tallied(f, i) }) })
		})
		p.r.e.x.Send(p.r.e.l, f.req.end.l, func() {
			f.req.start(at, func(t *tally) { p.answer(f.req.end.l, nil, func() { p.reqs[i] = t; p.tallied(f, i) }) })
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
	limit := p.r.e.cfg.ControlTimeout
	p.errs = nil
	p.expect(2*len(p.all), func() {
		p.expect(len(p.words), func() { done(first(p.errs)) })
		for i, w := range p.words {
			p.r.e.x.Send(p.r.e.l, w.nic.l, func() {
				got := w.value()
				w.close(limit, func(err error) { p.answer(w.nic.l, err, func() { p.counted[i] = got }) })
			})
		}
	})
	for _, f := range p.all {
		for _, d := range [...]*end{f.req.end, f.resp.end} {
			p.r.e.x.Send(p.r.e.l, d.l, func() { d.close(limit, func(err error) { p.answer(d.l, err, nil) }) })
		}
	}
}

// result adds the flows up.
func (p *flows) result(res *Result) {
	if !p.started {
		return
	}
	total := newHistogram()
	var shares []float64
	for i, f := range p.all {
		q, r := p.reqs[i], p.resps[i]
		res.Flows = append(res.Flows, flowResult(f, q, r))
		fr := &res.Flows[i]
		total.Merge(q.latency)
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
		if fr.Failure != "" && !p.r.expected(fr.Status) {
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

func flowResult(f *flow, q, r *tally) FlowResult {
	src, dst := f.ends()
	fr := FlowResult{
		Src: portName(src), Dst: portName(dst), Index: f.index,
		SrcQPN: q.qpn, DstQPN: r.qpn,
		Start: q.start, End: max(q.end, r.end),
		Bytes: q.bytes, VerifiedBytes: q.verified + r.verified, WrongBytes: q.wrong + r.wrong,
		Messages: q.messages, Errors: q.errors + r.errors,
		Status: q.status, Failure: failureOf(q, r),
		Lost: r.lost, Duplicates: r.duplicates, OutOfOrder: r.outOfOrder,
		Latency: percentiles(q.latency),
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
	return fr
}
