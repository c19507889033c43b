package workloads

// sequence follows which messages of an unreliable service have arrived.
type sequence struct {
	next uint64 // one past the highest that arrived or was given up
	lost uint64 // below next and not arrived
	late uint64 // arrived after a higher one
	seen [window / 64]uint64
}

// window is how far back an arrival is recognised as late or as a duplicate.
const window = 4096

// order is how a message came.
type order uint8

const (
	fresh   order = iota // higher than all before
	tooLate              // after a higher one
	again                // a second time, or so late that nobody knows
)

// arrive takes in a message by the low 32 bits of its number.
func (q *sequence) arrive(low uint32) (m uint64, how order) {
	m = q.next + uint64(int64(int32(low-uint32(q.next))))
	if int64(m) < 0 {
		m = uint64(low)
	}
	if m >= q.next {
		q.skip(m)
		q.mark(m, true)
		q.next = m + 1
		return m, fresh
	}
	if q.next-m > window || q.marked(m) {
		return m, again
	}
	q.mark(m, true)
	q.lost--
	q.late++
	return m, tooLate
}

// skip counts the messages below n that haven't arrived as lost.
func (q *sequence) skip(n uint64) {
	for ; q.next < n; q.next++ {
		q.mark(q.next, false)
		q.lost++
	}
}

func (q *sequence) mark(m uint64, set bool) {
	bit := uint64(1) << (m % 64)
	if set {
		q.seen[m%window/64] |= bit
	} else {
		q.seen[m%window/64] &^= bit
	}
}

func (q *sequence) marked(m uint64) bool { return q.seen[m%window/64]>>(m%64)&1 == 1 }
