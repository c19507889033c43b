package rnic

// ring is a queue whose elements keep what they own from one use to the next. It grows as it has to;
// how much it may hold its owner says. Its counters run freely.
type ring[T any] struct {
	slots      []T
	head, tail uint32
}

func (r *ring[T]) len() uint32    { return r.tail - r.head }
func (r *ring[T]) at(i uint32) *T { return &r.slots[i&uint32(len(r.slots)-1)] }
func (r *ring[T]) front() *T      { return r.at(r.head) }

// add gives the element behind the last, as its last user left it. Pointers to others are not good any more.
func (r *ring[T]) add() *T {
	if int(r.len()) == len(r.slots) {
		r.grow()
	}
	r.tail++
	return r.at(r.tail - 1)
}

func (r *ring[T]) grow() {
	old := *r
	r.slots = make([]T, max(2*len(old.slots), 8))
	for i := old.head; i != old.tail; i++ {
		*r.at(i) = *old.at(i)
	}
}
