package link

import "github.com/rocebed/rocebed/datapath/loop"

// Queue is frames in order. The zero value is empty.
type Queue struct {
	head, tail *Frame
	n          int
	bytes      int64
}

// Len is how many frames wait, Bytes their Len together.
func (q *Queue) Len() int { return q.n }

// Bytes is the Len of all frames together.
func (q *Queue) Bytes() int64 { return q.bytes }

// Head is the frame that is next, nil when there is none.
func (q *Queue) Head() *Frame { return q.head }

// Push puts a frame at the end.
func (q *Queue) Push(f *Frame) {
	if q.tail == nil {
		q.head = f
	} else {
		q.tail.next = f
	}
	q.tail = f
	q.n++
	q.bytes += int64(f.Len)
}

// Pop takes the frame that is next, nil when there is none.
func (q *Queue) Pop() *Frame {
	f := q.head
	if f == nil {
		return nil
	}
	if q.head = f.next; q.head == nil {
		q.tail = nil
	} else {
		loop.Prefetch(&q.head.Timer) // it has waited, and is next
	}
	f.next = nil
	q.n--
	q.bytes -= int64(f.Len)
	return f
}
