package loop

// entry is a timer's place in the order of one node's events: by time, then by port, then by
// the node that caused it, then by that node's count. In real time only time and count differ.
// The key stands beside the pointer, so that sorting touches no timer.
type entry struct {
	at  Time
	sub uint64 // port << 32 | source. Port 0: timers and posts; 1 + p: what arrives at port p
	seq uint64 // counted by the source
	t   *Timer
}

func (a *entry) less(b *entry) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.sub != b.sub:
		return a.sub < b.sub
	}
	return a.seq < b.seq
}

// queue is a four-ary heap. Four children a node make it half as deep as two do, and they lie
// in two cache lines.
//
// A queue that keeps track tells each timer its place, so that any can be moved or removed at
// the cost of a sift. One that doesn't leaves the timers alone until they come out, and looks
// for one that is to be removed: right for what is sent and hardly ever taken back, and whose
// memory is another node's until then.
type queue struct {
	heap  []entry
	track bool
}

const arity = 4

func (q *queue) len() int { return len(q.heap) }

// push puts a timer in that is in no queue.
func (q *queue) push(e entry) {
	if e.t.Fire == nil && e.t.Do == nil {
		panic("loop: a timer was armed before its Fire was set")
	}
	e.t.at, e.t.queue = e.at, q
	q.insert(e)
}

// insert is push for what is marked as armed here already.
func (q *queue) insert(e entry) {
	q.heap = append(q.heap, e)
	q.up(len(q.heap)-1, e)
}

// move changes the place of a timer in a queue that keeps track.
func (q *queue) move(e entry) {
	i := int(e.t.index) - 1
	e.t.at = e.at
	if e.less(&q.heap[i]) {
		q.up(i, e)
	} else {
		q.down(i, e)
	}
}

// remove takes a timer out that is in.
func (q *queue) remove(t *Timer) {
	i := int(t.index) - 1
	if !q.track {
		for i = 0; q.heap[i].t != t; i++ {
		}
	}
	q.take(i)
	t.queue = nil
}

// take closes the gap at i.
func (q *queue) take(i int) {
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap[last].t = nil
	q.heap = q.heap[:last]
	if i == last {
		return
	}
	if i > 0 && moved.less(&q.heap[(i-1)/arity]) {
		q.up(i, moved)
	} else {
		q.down(i, moved)
	}
}

// pop takes the first out. There must be one.
func (q *queue) pop() *Timer {
	t := q.heap[0].t
	t.queue = nil
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap[last].t = nil
	q.heap = q.heap[:last]
	if last > 0 {
		q.down(0, moved)
	}
	return t
}

// up puts e at i or above.
func (q *queue) up(i int, e entry) {
	h := q.heap
	for i > 0 {
		parent := (i - 1) / arity
		if !e.less(&h[parent]) {
			break
		}
		h[i] = h[parent]
		if q.track {
			h[i].t.index = int32(i + 1)
		}
		i = parent
	}
	h[i] = e
	if q.track {
		e.t.index = int32(i + 1)
	}
}

// down puts e at i or below.
func (q *queue) down(i int, e entry) {
	h := q.heap
	for {
		first := arity*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h)); c++ {
			if h[c].less(&h[least]) {
				least = c
			}
		}
		if !h[least].less(&e) {
			break
		}
		h[i] = h[least]
		if q.track {
			h[i].t.index = int32(i + 1)
		}
		i = least
	}
	h[i] = e
	if q.track {
		e.t.index = int32(i + 1)
	}
}
