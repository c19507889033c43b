package loop

// Halt makes a loop stand still: from the moment at which it hears of that it handles nothing until Resume is called. What becomes due or arrives meanwhile waits, and
// is handled when it resumes, in the order in which it was due. done runs on the loop from once the other stands still. It must be called on the loop
// from, which is another one, and not again before the loop has resumed. It says whether loops of this kind can.
func Halt(from, to Loop, done func()) bool {
	switch t := to.(type) {
	case *Node:
		f, ok := from.(*Node)
		if !ok || f.p.v != t.p.v || f == t {
			return false
		}
		f.p.postAt(f, t, f.p.now.Add(f.p.v.lookahead), func() {
			t.still = true
			t.p.postAt(t, f, t.p.now.Add(t.p.v.lookahead), done)
		})
	case *Real:
		t.halt(func() { from.Post(done) })
	default:
		return false
	}
	return true
}

// Resume lets a loop go on that stands still. done runs on the loop from once it does, and once all that was due before is handled.
func Resume(from, to Loop, done func()) {
	switch t := to.(type) {
	case *Node:
		f := from.(*Node)
		f.p.urge(f, t, f.p.now.Add(f.p.v.lookahead), func() { t.p.postAt(t, f, t.p.now.Add(t.p.v.lookahead), done) })
	case *Real:
		t.resume()
		t.Post(func() { from.Post(done) })
	}
}

// urge is postAt to a node that stands still, which it wakes.
func (p *part) urge(from, to *Node, at Time, fn func()) {
	o := &posted{fn: fn, p: to.p}
	o.Fire, o.urgent = o.run, true
	from.seq++
	p.send(from, to, entry{at: at, sub: uint64(from.id), seq: from.seq, t: &o.Timer})
}

// rouse wakes a node, at the time for which it is ready. What was due before happens then.
func (p *part) rouse(n *Node) {
	n.sortIn()
	n.still, n.floor = false, p.ready[0].at
}

// park puts back what a node that has come to stand still was about to handle.
func (n *Node) park() {
	for e := n.due.top(); e != nil; e = n.due.top() {
		n.arrivals.insert(*e)
		n.due.next++
	}
}

// Halted says whether the loop stands still. It may be called from any goroutine.
func (r *Real) Halted() bool { return r.halted.Load() }

// halt stops the goroutine once it has handled what was posted before.
func (r *Real) halt(standing func()) {
	again := make(chan struct{})
	r.mu.Lock()
	r.again = again
	r.mu.Unlock()
	r.Post(func() {
		r.halted.Store(true)
		standing()
		<-again
		r.now = max(r.now, r.read())
		r.back = r.now
		r.halted.Store(false)
	})
}

func (r *Real) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again != nil {
		close(r.again)
		r.again = nil
	}
}
