package workloads

// allReduce is the ring all-reduce. With several queue pairs the buffer is shared out, and each
// share has a ring of its own (NCCL's channels).
type allReduce struct {
	c      *collective
	slice  int
	shards []shard
}

// shard is the elements that one ring reduces.
type shard struct {
	ring
	from, count int
}

func newAllReduce(c *collective) *allReduce {
	s := c.r.spec
	a := &allReduce{c: c, slice: s.slice()}
	elements, n := s.size(0)/4, s.qps()
	for i := range n {
		from, to := i*elements/n, (i+1)*elements/n
		a.shards = append(a.shards, shard{newRing(len(c.ranks), to-from, a.slice), from, to - from})
	}
	return a
}

func (a *allReduce) lanes() []*lane {
	var out []*lane
	n := len(a.c.ranks)
	// The lane out of a rank, by shard and rank.
	outs := make([][]*lane, len(a.shards))
	for i, sh := range a.shards {
		largest := 0
		for u := range sh.units() {
			from, to := sh.elements(0, u, sh.count)
			largest = max(largest, (to-from)*4)
		}
		outs[i] = make([]*lane, n)
		for r := range n {
			w := newLane(a.c, len(out), a.c.ranks[r], a.c.ranks[(r+1)%n], i, sh.units(), largest)
			outs[i][r] = w
			out = append(out, w)
		}
		for r, w := range outs[i] {
			a.connect(sh, r, w, outs[i][(r+1)%n])
		}
	}
	return out
}

// connect makes a lane carry a ring's units; what arrives lets the receiver's own lane go on.
func (a *allReduce) connect(sh shard, r int, w, next *lane) {
	base := w.to.y.offset(0) + sh.from*4
	w.place = func(u int) place {
		from, to := sh.elements(r, u, sh.count)
		p := place{src: base + from*4, size: (to - from) * 4, dst: base + from*4, staged: sh.reduces(u)}
		if p.staged {
			p.dst = 0
		}
		return p
	}
	w.came = func(u int, staged span) {
		if staged.some() {
			p := w.place(u)
			summand{kind: a.c.r.spec.DataType}.addTo(w.to.buf.cut(p.src, p.src+p.size), staged)
		}
		first := w.in.count - uint64(u)
		w.to.allowAt(next, first+uint64(min(u+1+sh.k, sh.units())), w.to.through(w.place(u).size))
	}
}

func (a *allReduce) first(w *lane) int { return a.shards[w.shard].k }

func (a *allReduce) summand(iteration uint64) summand {
	s := a.c.r.spec
	return newSummand(a.c.r.e.cfg.Seed, s.Name, iteration, s.DataType, len(a.c.ranks))
}

func (a *allReduce) fill(e *rankEnd, iteration uint64, done func()) {
	sum, buf := a.summand(iteration), e.part(0)
	e.pieces(buf.n, func(from, to int) { sum.make(buf.cut(from, to), uint32(e.index), from/4) }, done)
}

// check compares the whole buffer with the closed form. What came in over the fabric counts
// as verified in the proportion in which the result is right.
func (a *allReduce) check(e *rankEnd, iteration uint64, done func()) {
	sum, buf, wrong := a.summand(iteration), e.part(0), 0
	e.pieces(buf.n, func(from, to int) {
		bad, first := sum.judge(buf.cut(from, to), from/4)
		if bad > 0 {
			want, got := sum.differ(buf, first)
			e.violation(iteration, uint64(first*4), "sum", want, got)
		}
		wrong += bad
	}, func() {
		right := uint64(buf.n/4 - wrong)
		for _, w := range e.ins {
			if !w.local() {
				e.t.verified += w.in.bytes * right / uint64(buf.n/4)
			}
			w.in.bytes = 0
		}
		e.t.wrong += uint64(wrong) * 4
		e.guards(iteration)
		done()
	})
}

// busFactor turns algorithm bandwidth into bus bandwidth: each byte of the buffer crosses a
// rank's wire 2(n−1)/n times (NCCL tests, doc/PERFORMANCE.md).
func (a *allReduce) busFactor() float64 {
	n := float64(len(a.c.ranks))
	return 2 * (n - 1) / n
}
