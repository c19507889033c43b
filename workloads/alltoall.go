package workloads

// allToAll sends block j of rank i's buffer to block i of rank j's other buffer. A rank's own
// block stays where it is.
type allToAll struct {
	c     *collective
	block int // bytes
	slice int
}

func newAllToAll(c *collective) *allToAll {
	s := c.r.spec
	block := s.size(0) / len(c.ranks) / 4 * 4
	return &allToAll{c, block, min(s.slice(), block)}
}

// The parts of a rank's buffer.
const (
	outgoing = 0
	incoming = 1
)

func (a *allToAll) lanes() []*lane {
	var out []*lane
	slices := (a.block + a.slice - 1) / a.slice
	qps := min(a.c.r.spec.qps(), slices)
	for i, from := range a.c.ranks {
		for off := 1; off < len(a.c.ranks); off++ { // everyone begins with another
			j := (i + off) % len(a.c.ranks)
			for qp := range qps {
				w := newLane(a.c, len(out), from, a.c.ranks[j], qp, (slices-qp+qps-1)/qps, 4)
				w.place = func(u int) place {
					at := (u*qps + qp) * a.slice
					return place{
						src:  from.y.offset(outgoing) + j*a.block + at,
						dst:  from.y.offset(incoming) + i*a.block + at,
						size: min(a.slice, a.block-at),
					}
				}
				w.came = func(int, span) {}
				out = append(out, w)
			}
		}
	}
	return out
}

func (a *allToAll) first(w *lane) int { return w.units }

// stream is the payload of a pair of ranks.
func (a *allToAll) stream(from, to int) Stream {
	s := a.c.r.spec
	return Stream{streamKey(a.c.r.e.cfg.Seed, s.Name, "block", from*len(a.c.ranks)+to)}
}

// blocks runs do over the parts of [from, to) that lie in one block each.
func (a *allToAll) blocks(from, to int, do func(block, from, to int)) {
	for from < to {
		end := min((from/a.block+1)*a.block, to)
		do(from/a.block, from, end)
		from = end
	}
}

func (a *allToAll) fill(e *rankEnd, iteration uint64, done func()) {
	send, recv := e.part(outgoing), e.part(incoming)
	start := iteration * uint64(a.block)
	e.pieces(a.block*len(a.c.ranks), func(from, to int) {
		a.blocks(from, to, func(peer, from, to int) {
			at := start + uint64(from-peer*a.block)
			send.cut(from, to).fill(a.stream(e.index, peer), at)
			if peer == e.index {
				recv.cut(from, to).fill(a.stream(peer, e.index), at) // nobody sends it, so nobody may touch it
				return
			}
			recv.cut(from, to).poison(a.stream(peer, e.index), at)
		})
	}, done)
}

func (a *allToAll) check(e *rankEnd, iteration uint64, done func()) {
	recv := e.part(incoming)
	from := make([]*reporter, len(a.c.ranks)) // who answers for a block
	for _, w := range e.ins {
		if from[w.from.index] == nil {
			from[w.from.index] = &w.in.reporter
		}
	}
	e.pieces(a.block*len(a.c.ranks), func(lo, hi int) {
		a.blocks(lo, hi, func(peer, lo, hi int) {
			off := uint64(lo - peer*a.block)
			s, at := a.stream(peer, e.index), iteration*uint64(a.block)+off
			if p := from[peer]; p != nil {
				p.checkSlot(s, recv.cut(lo, hi), iteration, off, at)
			} else if bad := recv.cut(lo, hi).check(s, at); bad >= 0 {
				want, got := recv.cut(lo, hi).differ(s, bad, at)
				e.violation(iteration, off+uint64(bad), "guard", want, got)
			}
		})
	}, func() {
		e.guards(iteration)
		done()
	})
}

// busFactor is (n−1)/n (NCCL tests, doc/PERFORMANCE.md).
func (a *allToAll) busFactor() float64 {
	n := float64(len(a.c.ranks))
	return (n - 1) / n
}
