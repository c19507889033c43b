//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
)

// When a node's shapers are read next, in wall time. Where packets wait, when half of the longest queue may be gone, within
// watchLeast and watchMost; where packets pass without waiting, after watchMoving; where none do, after watchStill. Reading
// takes about one part in watchShare of the time, all nodes together: it must not become the load.
const (
	watchLeast  = 8 * time.Millisecond
	watchMost   = 50 * time.Millisecond
	watchMoving = 50 * time.Millisecond
	watchStill  = 250 * time.Millisecond
	watchShare  = 40
)

// shaperWatch reads the shapers of all ports again and again, and tallies for each how much of its rate it gave
// while packets waited.
type shaperWatch struct {
	f     *Fabric
	stop  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	nodes    []*watchedNode
	tallies  map[topo.PortRef]*shaperTally
	err      error
	readings uint64
	spent    time.Duration // on reading
}

type watchedNode struct {
	*node
	conn    *tc.Conn
	ports   []watchedPort
	next    time.Time     // when to read
	cost    time.Duration // of a reading that nobody delayed
	lasts   time.Duration // the longest queue
	moving  bool
	rested  bool   // the last pause made up for what reading costs
	changes uint64 // of the fabric, at the last reading
}

type watchedPort struct {
	*shaperTally
	name  string
	index int // of the interface
	link  int // of the topology
}

// disturbances counts changes to what ports are: no time across one says anything of a shaper.
type disturbances struct{ atomic.Uint64 }

func (d *disturbances) note() { d.Add(1) }

// watchShapers starts to watch.
func watchShapers(f *Fabric) (*shaperWatch, error) {
	w := &shaperWatch{f: f, stop: make(chan struct{}), tallies: map[topo.PortRef]*shaperTally{}}
	for i := range f.Topology().Nodes {
		n := &watchedNode{node: f.nodes[f.Topology().Nodes[i].Name]}
		if n.foreign() || f.engine != nil { // the engine's ports know themselves
			continue
		}
		if err := n.ns.Do(func() (err error) { n.conn, err = tc.Open(); return err }); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: watch the shapers: %w", n.name, err), w.close())
		}
		for _, p := range f.Plan().Ports(n.name) {
			l, _ := n.ns.Link(p.Ref.Port)
			t := &shaperTally{rate: wallRate(f.Plan().Link(p.Ref).Rate, f.cfg.Dilation)}
			w.tallies[p.Ref] = t
			n.ports = append(n.ports, watchedPort{t, p.Ref.Port, l.Index, p.Link})
		}
		w.nodes = append(w.nodes, n)
	}
	w.ended.Go(w.run)
	return w, nil
}

func (w *shaperWatch) close() error {
	close(w.stop)
	w.ended.Wait()
	var errs []error
	for _, n := range w.nodes {
		errs = append(errs, n.conn.Close())
	}
	return errors.Join(errs...)
}

func (w *shaperWatch) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-timer.C:
		}
		timer.Reset(time.Until(w.turn()))
	}
}

// turn reads the node whose turn it is and says when the next one's is.
func (w *shaperWatch) turn() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.nodes) == 0 {
		return time.Now().Add(time.Hour)
	}
	if n := w.first(); !n.next.After(time.Now()) {
		begin := time.Now()
		w.read(n)
		end := time.Now()
		n.cost = costOf(n.cost, end.Sub(begin))
		w.spent += end.Sub(begin)
		w.readings++
		pause := n.pause(w.waiting())
		n.next = end.Add(pause)
		for _, p := range n.ports {
			p.until(pause)
		}
	}
	return w.first().next
}

// costOf is what a reading costs, by the estimate so far and how long another took. Most of what takes long waits for a
// processor and costs nothing: a busy machine must not be watched less, so short ones are believed at once.
func costOf(before, took time.Duration) time.Duration {
	if before == 0 || took < before {
		return took
	}
	return before + (min(took, 2*before)-before)/32
}

func (w *shaperWatch) first() *watchedNode {
	first := w.nodes[0]
	for _, n := range w.nodes {
		if n.next.Before(first.next) {
			first = n
		}
	}
	return first
}

// waiting is how many nodes have packets waiting.
func (w *shaperWatch) waiting() (n time.Duration) {
	for _, x := range w.nodes {
		if x.lasts >= 2*watchLeast {
			n++
		}
	}
	return n
}

// pause is how long to wait before the node is read again, if so many nodes have packets waiting. Where a queue does not last
// for as long as reading should rest, two readings come soon after each other, and then the rest.
func (n *watchedNode) pause(waiting time.Duration) time.Duration {
	rest := watchShare * n.cost * max(waiting, 1)
	soon := min(max(n.lasts/2, watchLeast), watchMost)
	switch {
	case n.lasts < 2*watchLeast && !n.moving:
		n.rested = true
		return max(rest, watchStill)
	case n.lasts < 2*watchLeast:
		n.rested = true
		return max(rest, watchMoving)
	case soon >= rest || n.rested:
		n.rested = soon >= rest
		return soon
	default:
		n.rested = true
		return rest
	}
}

// read takes a reading of a node's ports.
func (w *shaperWatch) read(n *watchedNode) {
	changes := w.f.disturbed.Load()
	before := time.Now()
	roots, err := n.conn.Roots()
	at := before.Add(time.Since(before) / 2)
	if err != nil {
		w.err = fmt.Errorf("%s: watch the shapers: %w", n.name, err)
		roots = nil
	}
	n.lasts, n.moving = 0, false
	for _, p := range n.ports {
		s, ok := roots[p.index]
		if !ok {
			p.known = false
			continue
		}
		n.moving = n.moving || s.Bytes > p.last.bytes
		undisturbed := changes == n.changes && w.f.whole(n.node, p)
		p.take(portReading{at, s.Bytes, s.Packets, s.QueueBytes}, undisturbed && changes == w.f.disturbed.Load())
		n.lasts = max(n.lasts, p.lasts())
	}
	n.changes = changes
}

// whole says that a port is as it was declared at first: no fault slows it or has its link down.
func (f *Fabric) whole(n *node, p watchedPort) bool {
	return n.ports.declaration(p.name).rate() == p.rate && f.inject.cutBy(p.link) == ""
}

// forget begins anew.
func (w *shaperWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readings, w.spent = 0, 0
	for _, t := range w.tallies {
		t.forget()
	}
}

// seen is a port's tally.
func (w *shaperWatch) seen(port topo.PortRef) shaperTally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.tallies[port]
}

// effort is how often a node was read, and how long that took.
func (w *shaperWatch) effort() (readings uint64, spent time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.readings, w.spent, w.err
}
