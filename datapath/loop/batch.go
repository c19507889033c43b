package loop

import "slices"

// batch is the arrivals that a node handles in a window, in order. They are sorted once, by keys that
// a sort can compare without looking anything up; a heap would sift each of them twice.
type batch struct {
	entries []entry
	order   []uint64 // time since base << placeBits | place in entries
	next    int      // into order
}

const (
	placeBits = 20
	spanBits  = 64 - placeBits
)

// horizon is how many look-aheads ahead of a window an arrival may wait unsorted. Each window looks at those
// that wait; what comes later waits in the heap.
const horizon = 4

// gather makes a batch of what has arrived for up to a time, and returns the time of the first of
// what still waits.
func (n *Node) gather(last Time) (rest Time) {
	rest = never
	if len(n.inbox) == 0 {
		return rest
	}
	b := &n.due
	b.entries, b.order, b.next = b.entries[:0], b.order[:0], 0
	far := last + horizon*Time(n.p.v.lookahead)
	if far < last {
		far = never
	}
	base, kept := n.next, 0
	for i := range n.inbox {
		e := &n.inbox[i]
		switch {
		case e.at <= last && len(b.entries) < 1<<placeBits && e.at-base < 1<<spanBits:
			Prefetch(e.t) // the callbacks, one after the other, would wait for each
			b.order = append(b.order, uint64(e.at-base)<<placeBits|uint64(len(b.entries)))
			b.entries = append(b.entries, *e)
		case e.at > far || e.at <= last:
			n.arrivals.insert(*e)
		default:
			rest = min(rest, e.at)
			n.inbox[kept] = *e
			kept++
		}
	}
	n.inbox = n.inbox[:kept]
	b.sort()
	return rest
}

func (b *batch) sort() {
	slices.Sort(b.order)
	// Of one time, the rest of the key decides.
	for i := 0; i < len(b.order); {
		end := i + 1
		for end < len(b.order) && b.order[end]>>placeBits == b.order[i]>>placeBits {
			end++
		}
		if end > i+1 {
			slices.SortFunc(b.order[i:end], b.compare)
		}
		i = end
	}
}

func (b *batch) compare(x, y uint64) int {
	if b.entries[x&(1<<placeBits-1)].less(&b.entries[y&(1<<placeBits-1)]) {
		return -1
	}
	return 1
}

func (b *batch) at(i int) *entry { return &b.entries[b.order[i]&(1<<placeBits-1)] }

// top is the first, nil when there is none left.
func (b *batch) top() *entry {
	for b.next < len(b.order) {
		if e := b.at(b.next); e.t != nil {
			return e
		}
		b.next++
	}
	return nil
}

// pop takes the first out, which top has returned.
func (b *batch) pop() *Timer {
	e := b.at(b.next)
	b.next++
	t := e.t
	t.queue = nil
	return t
}

// remove takes a timer out and says whether it was in.
func (b *batch) remove(t *Timer) bool {
	for i := b.next; i < len(b.order); i++ {
		if e := b.at(i); e.t == t {
			e.t, t.queue = nil, nil
			return true
		}
	}
	return false
}
