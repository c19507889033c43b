package asic

import "math/bits"

// pick chooses among queues that may send, at least one. Strict queues come first, the highest
// of them; the others share what is left by deficit weighted round robin (Shreedhar and Varghese, 1995): a queue's
// turn adds its quantum to what it may send, and lasts while its next frame fits.
func (p *port) pick(may uint8) uint8 {
	if strict := may & p.table.strict; strict != 0 {
		return uint8(bits.Len8(strict) - 1)
	}
	if may&(may-1) == 0 {
		return uint8(bits.TrailingZeros8(may)) // alone: it is nobody's loss, so it owes nothing
	}
	for {
		q := p.last
		if may&(1<<q) != 0 {
			qu := &p.queues[q]
			if n := int64(qu.frames.Head().Len); qu.deficit >= n {
				qu.deficit -= n
				return q
			}
		}
		p.next(may)
	}
}

// next begins the turn of the next queue. Of what is left of an earlier turn, which a pause may have cut
// short, it keeps a frame's worth; a queue that runs empty has nothing left (depart).
func (p *port) next(may uint8) {
	after := may &^ (1<<(p.last+1) - 1)
	if after == 0 {
		after = may
	}
	p.last = uint8(bits.TrailingZeros8(after))
	q := &p.queues[p.last]
	q.deficit = min(q.deficit, p.table.frameLen) + p.table.queues[p.last].quantum
}
