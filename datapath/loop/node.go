package loop

import "fmt"

// Node is one node's view of virtual time: its Loop.
type Node struct {
	// What others touch who send here, in one cache line.
	p     *part
	next  Time // of its first event, never when there is none
	inbox []entry
	place int32  // among the partition's nodes
	index int32  // of the partition
	id    uint32 // its number
	seq   uint64 // counts what the node causes
	still bool   // it handles nothing until something urgent arrives
	clock *clock // nil: it is right
	late  uint64 // timers that have ended late because it wasn't
	floor Time   // when it last went on: what was due before happened then

	timers   queue
	arrivals queue
	due      batch
}

// ID is the node's number.
func (n *Node) ID() uint32 { return n.id }

// Partition is the number of the node's partition: nodes of one never run at the same time.
func (n *Node) Partition() int { return int(n.index) }

// Now implements Loop.
func (n *Node) Now() Time {
	if n.clock != nil {
		return n.clock.local(n.p.now)
	}
	return n.p.now
}

// Arm implements Loop. It panics when another node's callback calls it.
func (n *Node) Arm(t *Timer, at Time) {
	p := n.p
	if p.running != n {
		n.outside("Arm")
	}
	n.seq++
	due := at
	if n.clock != nil {
		at = n.clock.true(at)
	}
	e := entry{at: max(at, p.now), sub: uint64(n.id), seq: n.seq, t: t}
	if t.queue == &n.timers {
		n.timers.move(e)
	} else {
		if t.queue != nil {
			n.drop(t)
		}
		n.timers.push(e)
	}
	if n.clock != nil {
		t.late = at > p.now
		t.at = max(due, n.clock.local(p.now))
	}
	if p.running == nil {
		p.settle(n)
	}
}

// Disarm implements Loop. It panics when another node's callback calls it.
func (n *Node) Disarm(t *Timer) bool {
	if n.p.running != n {
		n.outside("Disarm")
	}
	if t.queue == nil {
		return false
	}
	n.drop(t)
	if n.p.running == nil {
		n.p.settle(n)
	}
	return true
}

// drop takes an armed timer out.
func (n *Node) drop(t *Timer) {
	switch t.queue {
	case &n.timers:
		n.timers.remove(t)
	case &n.arrivals:
		if n.due.remove(t) {
			return
		}
		n.sortIn()
		n.arrivals.remove(t)
	default:
		panic(errElsewhere)
	}
}

// Send makes t fire on another node, as something that arrives at its port (0 or more). It
// must be called by n. It panics when that is sooner than the look-ahead: the order of
// events would then depend on how they are spread over cores.
func (n *Node) Send(to *Node, port uint16, at Time, t *Timer) {
	p := n.p
	if p.running != n {
		n.outside("Send")
	}
	if n.clock != nil {
		at = n.clock.true(at)
	}
	if to == n {
		at = max(at, p.now)
	} else if at < p.now.Add(p.v.lookahead) {
		panic(fmt.Sprintf("loop: node %d sends to node %d for %v at %v, within the look-ahead %v", n.id, to.id, at, p.now, p.v.lookahead))
	}
	if t.queue != nil {
		n.drop(t)
	}
	n.seq++
	p.send(n, to, entry{at: at, sub: (1+uint64(port))<<32 | uint64(n.id), seq: n.seq, t: t})
}

// outside lets through what is done between runs.
func (n *Node) outside(call string) {
	if r := n.p.running; r != nil {
		panic(fmt.Sprintf("loop: %s on node %d by a callback of node %d: use Post or Send", call, n.id, r.id))
	}
}

// sortIn sorts in what has arrived.
func (n *Node) sortIn() {
	for i := range n.inbox {
		n.arrivals.insert(n.inbox[i])
	}
	n.inbox = n.inbox[:0]
}

// first is the queue with the node's next event but those of the batch, nil when there is none.
// The inbox is left aside.
func (n *Node) first() *queue {
	t, a := &n.timers, &n.arrivals
	switch {
	case len(a.heap) == 0:
		if len(t.heap) == 0 {
			return nil
		}
		return t
	case len(t.heap) == 0 || a.heap[0].less(&t.heap[0]):
		return a
	}
	return t
}
