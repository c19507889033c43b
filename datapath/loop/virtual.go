package loop

import (
	"math"
	"sync"
	"sync/atomic"
)

// Virtual is a scheduler in virtual time that several nodes share.
//
// Events happen in the order of (time, node, port, source, the source's own count), which
// no insertion order changes: a node counts what it arms, posts and sends itself, and what
// it does follows from the events it sees. Nothing gets from one node to another in less than
// the look-ahead. So what happens depends on the nodes' numbers and programs alone.
//
// Without options Run handles one event after the other in just that order, on the goroutine
// that calls it. With Workers it goes by windows: all events from the next one's time on up to
// less than a look-ahead later. Within a window no node can hear of another, so each handles
// its events in one go, in that same order, and the nodes in whatever order or at once: each
// sees the same events at the same times as without windows. That is faster on one core, too,
// because a node's memory stays in the cache. What callbacks of different nodes share, though,
// they then see in another order (and need locks for, with more than one worker).
//
// Step handles single events in the exact order in either case.
type Virtual struct {
	lookahead Duration
	now       Time
	nodes     map[uint32]*Node
	parts     []*part
	partition func(node uint32) int
	workers   int // 0: event by event
	between   []func()
	round     uint // windows so far, for the mailboxes
	size      uint64
	parallel  atomic.Bool // several goroutines are in a window
	crew      atomic.Pointer[crew]

	mu     sync.Mutex
	posted atomic.Bool // there is something in the inbox
	inbox  []request
	spare  []request
}

// never is after everything: a timer for then does not fire.
const never Time = math.MaxInt64

// Option is a choice about how virtual time is run. None of them changes what happens on a node.
type Option func(*Virtual)

// Workers makes Run and RunUntil go by windows, on n goroutines (1 or more; one of them the
// caller's). How many changes no outcome: windows and the places where stop is asked are the same.
func Workers(n int) Option {
	if n < 1 {
		panic("loop: virtual time needs a worker")
	}
	return func(v *Virtual) { v.workers = n }
}

// Partition says which nodes stay together: of gives a node's partition, a small number from 0
// on, the same each time. A partition is one goroutine's at a time. Without it all nodes are
// one partition when there is one worker, else they are dealt out by their numbers.
func Partition(of func(node uint32) int) Option {
	return func(v *Virtual) { v.partition = of }
}

// NewVirtual makes a scheduler at time zero. The look-ahead is the shortest time that
// anything takes from one node to another; it must be positive.
func NewVirtual(lookahead Duration, opts ...Option) *Virtual {
	if lookahead <= 0 {
		panic("loop: the look-ahead of virtual time must be positive")
	}
	v := &Virtual{lookahead: lookahead, nodes: map[uint32]*Node{}}
	for _, o := range opts {
		o(v)
	}
	if v.partition == nil {
		n := uint32(max(v.workers, 1))
		v.partition = func(node uint32) int { return int(node % n) }
	}
	return v
}

// Node returns the view of the node with this number, which orders events of one time. Nodes
// are made between runs.
func (v *Virtual) Node(id uint32) *Node {
	n := v.nodes[id]
	if n == nil {
		i := v.partition(id)
		for len(v.parts) <= i {
			v.parts = append(v.parts, &part{v: v, now: v.now, last: v.now, mailed: never})
			for _, p := range v.parts {
				p.grow(len(v.parts))
			}
		}
		n = &Node{p: v.parts[i], id: id, index: int32(i), next: never, timers: queue{track: true}}
		v.parts[i].add(n)
		v.nodes[id] = n
	}
	return n
}

// LookAhead is the shortest time that anything takes from one node to another.
func (v *Virtual) LookAhead() Duration { return v.lookahead }

// Between has fn run after each window, before the next begins, while no callback runs: the
// place to even out what partitions hold, such as pools. Without Workers it is not called.
func (v *Virtual) Between(fn func()) { v.between = append(v.between, fn) }

// Now is the time of the last event handled, or where RunUntil left the clock. In a callback
// the node's own Now is meant.
func (v *Virtual) Now() Time { return v.now }

// Handled counts the events handled so far, in windows the ones that are over.
func (v *Virtual) Handled() (n uint64) {
	for _, p := range v.parts {
		n += p.handled
	}
	return n
}

// Step handles the next event and says whether there was one.
func (v *Virtual) Step() bool {
	v.takePosts(nil)
	p := v.first()
	if p == nil {
		return false
	}
	v.now = max(v.now, p.ready[0].at)
	for _, q := range v.parts {
		q.now = v.now
	}
	p.step()
	return true
}

// Run handles events until stop, asked before each one, says so or none is left. It says
// whether it was stopped. With Workers it asks before each window, when no callback runs.
func (v *Virtual) Run(stop func() bool) bool {
	if v.workers > 0 {
		return v.windows(stop, never-1)
	}
	for !stop() {
		if !v.Step() {
			return stop()
		}
	}
	return true
}

// RunUntil handles all events up to a time, that time included, and leaves the clock there.
func (v *Virtual) RunUntil(t Time) {
	t = min(t, never-1)
	if v.workers > 0 {
		v.windows(func() bool { return false }, t)
	} else {
		for v.next() <= t {
			v.Step()
		}
	}
	v.now = max(v.now, t)
	v.agree()
}

// Next is when the next event is, and whether there is one.
func (v *Virtual) Next() (Time, bool) {
	at := v.next()
	return at, at != never
}

// next is when the next event is, never when there is none.
func (v *Virtual) next() Time {
	v.takePosts(nil)
	at := never
	for _, p := range v.parts {
		at = min(at, p.mailed)
		if len(p.ready) > 0 {
			at = min(at, p.ready[0].at)
		}
	}
	return at
}

// first is the partition that has the next event, nil when there is none.
func (v *Virtual) first() (first *part) {
	for _, p := range v.parts {
		if len(p.ready) > 0 && p.ready[0].at != never && (first == nil || p.ready[0].less(&first.ready[0])) {
			first = p
		}
	}
	return first
}

// agree makes the clocks of all partitions the common one.
func (v *Virtual) agree() {
	for _, p := range v.parts {
		v.now = max(v.now, p.last)
	}
	for _, p := range v.parts {
		p.now, p.last = v.now, v.now
	}
}
