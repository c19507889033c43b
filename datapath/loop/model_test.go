package loop

import "container/heap"

// model is the ordering contract of virtual time at its plainest: one heap of all events by
// (time, node, port, source, count), handled one at a time. What Virtual does is proved against it.
type model struct {
	lookahead Duration
	now       Time
	events    modelHeap
	nodes     map[uint32]*modelNode
	running   *modelNode
	handled   uint64
	inbox     []modelPost
}

type modelKey struct {
	at                 Time
	node, port, source uint32
	seq                uint64
}

type modelEvent struct {
	key   modelKey
	t     *Timer
	place int
}

type modelPost struct {
	to *modelNode
	fn func()
}

type modelNode struct {
	m     *model
	id    uint32
	seq   uint64
	armed map[*Timer]*modelEvent
}

type modelHeap []*modelEvent

func (h modelHeap) Len() int { return len(h) }
func (h modelHeap) Less(i, j int) bool {
	a, b := h[i].key, h[j].key
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
func (h modelHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i, j }
func (h *modelHeap) Push(x any)   { e := x.(*modelEvent); e.place = len(*h); *h = append(*h, e) }
func (h *modelHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

func (m *model) node(id uint32) *modelNode {
	if m.nodes[id] == nil {
		m.nodes[id] = &modelNode{m: m, id: id, armed: map[*Timer]*modelEvent{}}
	}
	return m.nodes[id]
}

func (m *model) set(to *modelNode, t *Timer, k modelKey) {
	if e := to.armed[t]; e != nil {
		e.key = k
		heap.Fix(&m.events, e.place)
		return
	}
	e := &modelEvent{key: k, t: t}
	to.armed[t] = e
	t.queue = new(queue) // for Armed
	heap.Push(&m.events, e)
}

func (m *model) takePosts() {
	batch := m.inbox
	m.inbox = nil
	for _, p := range batch {
		at, source := m.now, p.to
		if m.running != nil && m.running != p.to {
			at, source = m.now.Add(m.lookahead), m.running
		}
		source.seq++
		m.set(p.to, &Timer{Fire: p.fn}, modelKey{at: at, node: p.to.id, source: source.id, seq: source.seq})
	}
}

func (m *model) runUntil(t Time) {
	for m.takePosts(); len(m.events) > 0 && m.events[0].key.at <= t; m.takePosts() {
		e := heap.Pop(&m.events).(*modelEvent)
		m.now = e.key.at
		m.running = m.nodes[e.key.node]
		delete(m.running.armed, e.t)
		e.t.queue = nil
		m.handled++
		e.t.run()
		m.takePosts()
		m.running = nil
	}
	m.now = max(m.now, t)
}

func (n *modelNode) Now() Time { return n.m.now }

func (n *modelNode) Arm(t *Timer, at Time) {
	n.seq++
	n.m.set(n, t, modelKey{at: max(at, n.m.now), node: n.id, source: n.id, seq: n.seq})
}

func (n *modelNode) Disarm(t *Timer) bool {
	e := n.armed[t]
	if e == nil {
		return false
	}
	heap.Remove(&n.m.events, e.place)
	delete(n.armed, t)
	t.queue = nil
	return true
}

func (n *modelNode) Post(fn func()) { n.m.inbox = append(n.m.inbox, modelPost{n, fn}) }

func (n *modelNode) send(to *modelNode, port uint16, at Time, t *Timer) {
	n.seq++
	n.m.set(to, t, modelKey{at: max(at, n.m.now), node: to.id, port: 1 + uint32(port), source: n.id, seq: n.seq})
}

func (n *modelNode) cross(to *modelNode, at Time, fn func()) {
	n.seq++
	n.m.set(to, &Timer{Fire: fn}, modelKey{at: max(at, n.m.now.Add(n.m.lookahead)), node: to.id, source: n.id, seq: n.seq})
}
