//go:build linux

package soft

import (
	"time"

	"github.com/rocebed/rocebed/datapath/link"
)

// flight is a frame on the way, and when it arrives: time since the epoch.
type flight struct {
	f   *link.Frame
	due time.Duration
}

// fifo is frames on their way, by when they arrive, in a ring that grows. Nearly all come in order.
type fifo struct {
	ring []flight // a power of two
	head int
	n    int
}

func (q *fifo) at(i int) *flight { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *fifo) first() *flight { return q.at(0) }

// push puts a frame behind all that arrive no later.
func (q *fifo) push(f *link.Frame, due time.Duration) {
	if q.n == len(q.ring) {
		q.grow()
	}
	i := q.n
	q.n++
	for ; i > 0 && q.at(i-1).due > due; i-- {
		*q.at(i) = *q.at(i - 1)
	}
	*q.at(i) = flight{f, due}
}

func (q *fifo) pop() *link.Frame {
	e := q.first()
	f := e.f
	e.f = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return f
}

func (q *fifo) grow() {
	bigger := make([]flight, max(2*len(q.ring), 64))
	for i := range q.n {
		bigger[i] = *q.at(i)
	}
	q.ring, q.head = bigger, 0
}
