package loop

import (
	"fmt"
	"sync"
)

// Virtual is a scheduler in virtual time that several nodes share. Whoever calls Step, Run
// or RunUntil is the one goroutine on which all callbacks of all nodes run.
//
// Events happen in the order of (time, node, port, source, the source's own count), which
// no insertion order changes: a node counts what it arms, posts and sends itself, and what
// it does follows from the events it sees. So a result depends on the nodes' numbers and
// programs alone, and the same events can be handled by several cores if nodes that are
// closer than the look-ahead are not split.
//
// Posts from one goroutine are taken in the order in which they were made: those made
// between runs happen at the current time, those made by a callback to its own node at the
// same time and to another node after the look-ahead. Posts of a second goroutine while
// events are being handled are safe, but their place among the events is not determined.
type Virtual struct {
	lookahead Duration
	now       Time
	events    queue
	nodes     map[uint32]*Node
	running   *Node
	handled   uint64
	free      []*posted

	mu    sync.Mutex
	inbox []request
	spare []request
}

type request struct {
	to *Node
	fn func()
}

// posted is a post that has its place among the events.
type posted struct {
	Timer
	v  *Virtual
	fn func()
}

// NewVirtual makes a scheduler at time zero. The look-ahead is the shortest time that
// anything takes from one node to another; it must be positive.
func NewVirtual(lookahead Duration) *Virtual {
	if lookahead <= 0 {
		panic("loop: the look-ahead of virtual time must be positive")
	}
	return &Virtual{lookahead: lookahead, nodes: map[uint32]*Node{}}
}

// Node is one node's view of virtual time: its Loop.
type Node struct {
	v   *Virtual
	id  uint32
	seq uint64 // counts what the node causes
}

// Node returns the view of the node with this number, which orders events of one time.
func (v *Virtual) Node(id uint32) *Node {
	n := v.nodes[id]
	if n == nil {
		n = &Node{v: v, id: id}
		v.nodes[id] = n
	}
	return n
}

// LookAhead is the shortest time that anything takes from one node to another.
func (v *Virtual) LookAhead() Duration { return v.lookahead }

// Now is the time of the event being handled, or of the last one.
func (v *Virtual) Now() Time { return v.now }

// Handled counts the events handled so far.
func (v *Virtual) Handled() uint64 { return v.handled }

// Step handles the next event and says whether there was one.
func (v *Virtual) Step() bool {
	v.takePosts()
	if v.events.len() == 0 {
		return false
	}
	t := v.events.pop()
	v.now = max(v.now, t.key.at)
	v.running = v.nodes[t.key.node]
	v.handled++
	t.Fire()
	v.takePosts()
	v.running = nil
	return true
}

// Run handles events until stop, asked before each one, says so or none is left. It says
// whether it was stopped.
func (v *Virtual) Run(stop func() bool) bool {
	for !stop() {
		if !v.Step() {
			return stop()
		}
	}
	return true
}

// RunUntil handles all events up to a time, that time included, and leaves the clock there.
func (v *Virtual) RunUntil(t Time) {
	for {
		v.takePosts()
		if v.events.len() == 0 || v.events.top().key.at > t {
			break
		}
		v.Step()
	}
	v.now = max(v.now, t)
}

// takePosts gives what was posted its place among the events.
func (v *Virtual) takePosts() {
	v.mu.Lock()
	batch := v.inbox
	v.inbox = v.spare[:0]
	v.mu.Unlock()
	for i, r := range batch {
		batch[i] = request{}
		at, source := v.now, r.to
		if v.running != nil && v.running != r.to {
			at, source = v.now.Add(v.lookahead), v.running
		}
		p := v.newPosted()
		p.fn = r.fn
		source.seq++
		v.events.set(&p.Timer, key{at: at, node: r.to.id, source: source.id, seq: source.seq})
	}
	v.spare = batch[:0]
}

func (v *Virtual) newPosted() *posted {
	if n := len(v.free); n > 0 {
		p := v.free[n-1]
		v.free = v.free[:n-1]
		return p
	}
	p := &posted{v: v}
	p.Fire = p.run
	return p
}

func (p *posted) run() {
	fn := p.fn
	p.fn = nil
	p.v.free = append(p.v.free, p)
	fn()
}

// ID is the node's number.
func (n *Node) ID() uint32 { return n.id }

// Now implements Loop.
func (n *Node) Now() Time { return n.v.now }

// Arm implements Loop. It panics when another node's callback calls it.
func (n *Node) Arm(t *Timer, at Time) {
	n.own("Arm")
	n.seq++
	n.v.events.set(t, key{at: max(at, n.v.now), node: n.id, source: n.id, seq: n.seq})
}

// Disarm implements Loop. It panics when another node's callback calls it.
func (n *Node) Disarm(t *Timer) bool {
	n.own("Disarm")
	return n.v.events.remove(t)
}

// Post implements Loop; Virtual says in which order posts run.
func (n *Node) Post(fn func()) {
	n.v.mu.Lock()
	n.v.inbox = append(n.v.inbox, request{n, fn})
	n.v.mu.Unlock()
}

// Send makes t fire on another node, as something that arrives at its port (0 or more). It
// must be called by n. It panics when that is sooner than the look-ahead: the order of
// events would then depend on how they are spread over cores.
func (n *Node) Send(to *Node, port uint16, at Time, t *Timer) {
	n.own("Send")
	if to != n && at < n.v.now.Add(n.v.lookahead) {
		panic(fmt.Sprintf("loop: node %d sends to node %d for %v at %v, within the look-ahead %v", n.id, to.id, at, n.v.now, n.v.lookahead))
	}
	n.seq++
	n.v.events.set(t, key{at: at, node: to.id, port: 1 + uint32(port), source: n.id, seq: n.seq})
}

func (n *Node) own(call string) {
	if r := n.v.running; r != nil && r != n {
		panic(fmt.Sprintf("loop: %s on node %d by a callback of node %d: use Post or Send", call, n.id, r.id))
	}
}
