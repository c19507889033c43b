package loop

// request is a post that has no place among the events yet.
type request struct {
	to *Node
	fn func()
}

// posted is a post that has.
type posted struct {
	Timer
	fn func()
	p  *part // that it runs in
}

// Post implements Loop. Posts from one goroutine are taken in the order in which they were made:
// those made between runs happen at the current time, those made by a callback to its own
// node at the same time and to another node after the look-ahead. Posts of a second goroutine
// while events are being handled are safe, but their place among the events is not determined.
func (n *Node) Post(fn func()) {
	v := n.p.v
	if v.parallel.Load() {
		if c := v.crew.Load(); c != nil {
			if p := c.caller(); p != nil {
				p.posts = append(p.posts, request{n, fn})
				return
			}
		}
	}
	v.mu.Lock()
	v.inbox = append(v.inbox, request{n, fn})
	v.posted.Store(true)
	v.mu.Unlock()
}

// Cross runs fn on the loop to, at a time that is at least the look-ahead away. It must be called
// on the loop from; one that knows who calls spares virtual time finding it out.
func Cross(from, to Loop, at Time, fn func()) {
	f, ok := from.(*Node)
	t, ok2 := to.(*Node)
	if !ok || !ok2 || f.p.v != t.p.v {
		due := TrueTime(from, at)
		to.Post(func() { to.Arm(&Timer{Fire: fn}, shown(to, due)) })
		return
	}
	f.p.postAt(f, t, max(at, f.p.now.Add(f.p.v.lookahead)), fn)
}

// takePosts gives what was posted its place among the events: after those that the running
// node caused, when one runs.
func (v *Virtual) takePosts(running *Node) {
	if v.posted.Load() {
		v.takeInbox(running)
	}
}

func (v *Virtual) takeInbox(running *Node) {
	v.mu.Lock()
	batch := v.inbox
	v.inbox = v.spare[:0]
	v.posted.Store(false)
	v.mu.Unlock()
	for i, r := range batch {
		batch[i] = request{}
		r.to.p.post(running, r.to, r.fn)
	}
	v.spare = batch[:0]
}

// takeOwn is takePosts where several workers run, for those of the partition's own callbacks.
func (p *part) takeOwn(running *Node) {
	for i, r := range p.posts {
		p.posts[i] = request{}
		p.post(running, r.to, r.fn)
	}
	p.posts = p.posts[:0]
}

// post makes fn an event, by the node whose callback runs, or from outside.
func (p *part) post(from, to *Node, fn func()) {
	switch from {
	case nil:
		p.postAt(to, to, p.v.now, fn)
	case to:
		p.postAt(from, to, p.now, fn)
	default:
		p.postAt(from, to, from.p.now.Add(p.v.lookahead), fn)
	}
}

func (p *part) postAt(from, to *Node, at Time, fn func()) {
	o := p.newPosted()
	o.fn, o.p = fn, to.p
	from.seq++
	from.p.send(from, to, entry{at: at, sub: uint64(from.id), seq: from.seq, t: &o.Timer})
}

// idlePosts is how many posts a partition keeps for the next ones. Those between partitions may all
// go one way.
const idlePosts = 1024

func (p *part) newPosted() *posted {
	if n := len(p.idle); n > 0 {
		o := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return o
	}
	o := &posted{}
	o.Fire = o.run
	return o
}

func (o *posted) run() {
	fn, p := o.fn, o.p
	o.fn, o.p = nil, nil
	if len(p.idle) < idlePosts {
		p.idle = append(p.idle, o)
	}
	fn()
}
