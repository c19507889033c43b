package loop

import "sync/atomic"

// part is the nodes of one partition, ordered by when each has its next event. One goroutine
// at a time has it.
type part struct {
	v       *Virtual
	now     Time  // of the event being handled
	floor   Time  // the running node's
	last    Time  // the latest of those so far
	running *Node // whose event it is; nil between events
	handled uint64

	nodes []*Node
	ready []turn  // heap of all nodes
	place []int32 // of node i in ready
	idle  []*posted
	posts []request // by the running node's callback, where several workers run

	// What is for nodes of other partitions: written in one round, taken by them in the next.
	mail   [2][][]letter // by round and partition
	mailed Time          // the earliest of this round's
	taken  atomic.Uint32 // the last window of the crew that a worker has begun
	_      [64]byte      // the next partition's memory is another core's
}

// turn is when a node is next. It says all that ordering needs, so that sifting stays within
// a few cache lines whatever the nodes are.
type turn struct {
	at   Time
	id   uint32
	node int32
}

func (a *turn) less(b *turn) bool { return a.at < b.at || a.at == b.at && a.id < b.id }

// letter is an event for a node of another partition.
type letter struct {
	to *Node
	e  entry
}

// add puts a new node in, which has no events.
func (p *part) add(n *Node) {
	n.place = int32(len(p.nodes))
	p.nodes = append(p.nodes, n)
	p.place = append(p.place, int32(len(p.ready)))
	p.ready = append(p.ready, turn{at: never, id: n.id, node: n.place})
	p.up(len(p.ready) - 1)
}

// grow makes mailboxes for n partitions.
func (p *part) grow(n int) {
	for i := range p.mail {
		for len(p.mail[i]) < n {
			p.mail[i] = append(p.mail[i], nil)
		}
	}
}

// send gives an event of n to a node, wherever that is.
func (p *part) send(n, to *Node, e entry) {
	if e.t.Fire == nil && e.t.Do == nil {
		panic("loop: a timer was sent before its Fire was set")
	}
	e.t.at, e.t.queue = e.at, &to.arrivals
	switch {
	case to == p.running:
		to.arrivals.insert(e)
	case to.p != p && p.v.parallel.Load():
		box := &p.mail[p.v.round&1][to.index]
		*box = append(*box, letter{to, e})
		p.mailed = min(p.mailed, e.at)
	default:
		to.p.put(to, e)
	}
}

// put gives an event to a node of the partition that is not running.
func (p *part) put(to *Node, e entry) {
	to.inbox = append(to.inbox, e)
	if e.at < to.next && (!to.still || e.t.urgent) {
		to.next = e.at
		i := int(p.place[to.place])
		p.ready[i].at = e.at
		p.up(i)
	}
}

// takeMail takes what other partitions left in a round.
func (p *part) takeMail(index int, round uint) {
	for _, from := range p.v.parts {
		box := from.mail[round&1][index]
		for i := range box {
			p.put(box[i].to, box[i].e)
			box[i] = letter{}
		}
		from.mail[round&1][index] = box[:0]
	}
}

// step handles the partition's next event.
func (p *part) step() {
	n := p.nodes[p.ready[0].node]
	if n.sortIn(); n.still {
		p.rouse(n)
	}
	p.running, p.floor = n, n.floor
	p.handle(n.first())
	p.v.takePosts(n)
	p.running = nil
	p.settle(n)
}

// window handles all events up to a time, that time included, node by node: alone, or with
// other partitions on other goroutines.
func (p *part) window(last Time, alone bool) {
	for len(p.ready) > 0 && p.ready[0].at <= last {
		n := p.nodes[p.ready[0].node]
		if n.still {
			p.rouse(n)
		}
		rest := n.gather(last)
		p.running, p.floor = n, n.floor
		for !n.still && p.advance(n, last) {
			if alone {
				p.v.takePosts(n)
			} else if len(p.posts) > 0 {
				p.takeOwn(n)
			}
		}
		if p.running = nil; n.still {
			n.park()
		}
		p.rank(n, rest)
	}
}

// advance handles the first event of a node up to a time, and says whether there was one.
func (p *part) advance(n *Node, last Time) bool {
	q := n.first()
	if e := n.due.top(); e != nil && (q == nil || e.less(&q.heap[0])) {
		p.begin(e.at)
		n.due.pop().run()
		return true
	}
	if q == nil || q.heap[0].at > last {
		return false
	}
	p.handle(q)
	return true
}

func (p *part) begin(at Time) {
	p.now = max(at, p.floor)
	p.last = max(p.last, p.now)
	p.handled++
}

func (p *part) handle(q *queue) {
	p.begin(q.heap[0].at)
	t := q.pop()
	if t.late {
		p.expired(t)
	}
	t.run()
}

// expired counts a timer that has ended late.
func (p *part) expired(t *Timer) {
	if t.late = false; p.running.clock != nil {
		p.running.late++
	}
}

// settle puts a node where its next event belongs.
func (p *part) settle(n *Node) {
	n.sortIn()
	p.rank(n, never)
}

// rank is settle for one whose inbox holds nothing before rest.
func (p *part) rank(n *Node, rest Time) {
	n.next = rest
	if q := n.first(); q != nil {
		n.next = min(rest, q.heap[0].at)
	}
	if n.still {
		n.next = never
	}
	i := int(p.place[n.place])
	was := p.ready[i].at
	p.ready[i].at = n.next
	if n.next < was {
		p.up(i)
	} else {
		p.down(i)
	}
}

func (p *part) up(i int) {
	h, e := p.ready, p.ready[i]
	for i > 0 {
		parent := (i - 1) / arity
		if !e.less(&h[parent]) {
			break
		}
		h[i] = h[parent]
		p.place[h[i].node] = int32(i)
		i = parent
	}
	h[i] = e
	p.place[e.node] = int32(i)
}

func (p *part) down(i int) {
	h, e := p.ready, p.ready[i]
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
		p.place[h[i].node] = int32(i)
		i = least
	}
	h[i] = e
	p.place[e.node] = int32(i)
}
