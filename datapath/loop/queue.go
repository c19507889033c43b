package loop

// key orders events. In real time only at and seq differ; in virtual time the rest makes
// the order independent of when an event was inserted.
type key struct {
	at     Time
	node   uint32 // the node it happens on
	port   uint32 // 0: the node's own timers and posts; 1 + p: what arrives at port p
	source uint32 // the node that caused it
	seq    uint64 // counted by the source
}

func (a *key) less(b *key) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.node != b.node:
		return a.node < b.node
	case a.port != b.port:
		return a.port < b.port
	case a.source != b.source:
		return a.source < b.source
	}
	return a.seq < b.seq
}

// queue is a four-ary heap of timers that know their places. Four children a node make the
// heap half as deep as two do, and a sift stays within a cache line or two of pointers.
type queue struct {
	heap []*Timer
}

const arity = 4

func (q *queue) len() int    { return len(q.heap) }
func (q *queue) top() *Timer { return q.heap[0] }

// set puts t in the queue under k, or moves it there.
func (q *queue) set(t *Timer, k key) {
	if t.index == 0 {
		if t.Fire == nil {
			panic("loop: a timer was armed before its Fire was set")
		}
		t.key, t.queue = k, q
		q.heap = append(q.heap, t)
		t.index = len(q.heap)
		q.up(t.index - 1)
		return
	}
	if t.queue != q {
		panic("loop: a timer armed on one loop was armed on another")
	}
	earlier := k.less(&t.key)
	t.key = k
	if earlier {
		q.up(t.index - 1)
	} else {
		q.down(t.index - 1)
	}
}

// remove takes t out and says whether it was in.
func (q *queue) remove(t *Timer) bool {
	if t.index == 0 {
		return false
	}
	if t.queue != q {
		panic("loop: a timer armed on one loop was disarmed on another")
	}
	i, last := t.index-1, len(q.heap)-1
	moved := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i != last {
		q.heap[i] = moved
		moved.index = i + 1
		q.up(i)
		q.down(moved.index - 1)
	}
	t.index, t.queue = 0, nil
	return true
}

func (q *queue) pop() *Timer {
	t := q.heap[0]
	q.remove(t)
	return t
}

func (q *queue) up(i int) {
	t := q.heap[i]
	for i > 0 {
		parent := (i - 1) / arity
		p := q.heap[parent]
		if !t.key.less(&p.key) {
			break
		}
		q.heap[i] = p
		p.index = i + 1
		i = parent
	}
	q.heap[i] = t
	t.index = i + 1
}

func (q *queue) down(i int) {
	t := q.heap[i]
	for {
		first := arity*i + 1
		if first >= len(q.heap) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(q.heap)); c++ {
			if q.heap[c].key.less(&q.heap[least].key) {
				least = c
			}
		}
		if !q.heap[least].key.less(&t.key) {
			break
		}
		q.heap[i] = q.heap[least]
		q.heap[i].index = i + 1
		i = least
	}
	q.heap[i] = t
	t.index = i + 1
}
