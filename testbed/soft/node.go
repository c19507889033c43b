//go:build linux

package soft

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/soft/packet"
	"github.com/rocebed/rocebed/topo"
)

// node is what soft-hosts and soft-switches have in common: a loop that waits in its sockets.
type node struct {
	name     string
	kind     topo.Kind
	dilation loop.Dilation
	epoch    time.Time
	loop     *loop.Real
	poller   *packet.Poller
	frames   link.Pool
	ports    []*port
	quiet    []closer

	halted atomic.Bool // it stands still, for a fault
	atHalt []uint64    // what had found no room before

	offset time.Duration // of the real-time clock to the wall time since the epoch
	active []*port       // those with a frame that came in
	first  int           // of active

	// failed is why the node stopped waiting for its sockets; it is checked by KeepUp.
	failed atomic.Pointer[error]
}

type closer interface{ Close() error }

// portConfig is what a port is made of.
type portConfig struct {
	plan topo.PlanPort
	link *topo.Link
	// delay is how long frames are held here because they are on the link.
	delay loop.Duration
	// room is how many bytes of frames the kernel keeps for the port.
	room int
	// open opens the port's socket.
	open func(packet.Options) (*packet.Socket, error)
	// number, set for ports of a switch, gives the fabric's number of the port with an address. A host's
	// port takes RoCE and pause frames alone.
	number func(roce.Addr) uint32
	// fromHost says that the far end is a host, whose own stack sends as it likes.
	fromHost bool
}

// newNode opens the sockets of a node. Nothing runs before start.
func newNode(name string, kind topo.Kind, cpu int, d loop.Dilation, epoch time.Time, ports []portConfig) (_ *node, err error) {
	made := &node{name: name, kind: kind, dilation: d, epoch: epoch}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	if made.poller, err = packet.NewPoller(name, cpu); err != nil {
		return nil, err
	}
	for i, c := range ports {
		opt := packet.Options{MTU: c.link.MTU, Room: c.room}
		if c.number == nil {
			opt.Filter = packet.RoCE
		}
		sock, err := c.open(opt)
		if err != nil {
			return nil, err
		}
		p := &port{node: made, index: uint16(i), sock: sock, ref: c.plan.Ref, mac: roce.MAC(c.plan.MAC), delay: c.delay, lineRate: faster(c.link.Rate), fromHost: c.fromHost, number: c.number}
		made.ports = append(made.ports, p)
		if err := made.poller.Add(sock); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// faster is a rate by a sixteenth: a line that frames come in by at most, so that what a late sender has made up for catches
// up here, too.
func faster(r topo.Rate) int64 { return int64(r) + int64(r)/16 }

// start runs the node. What takes the frames of its ports must be set; it may use the loop when ready is called.
func (n *node) start() {
	n.loop = loop.NewRealWith(n.dilation, n.epoch, n)
}

// Name is the topology's name for the node.
func (n *node) Name() string { return n.name }

// Kind is what the node is made of.
func (n *node) Kind() topo.Kind { return n.kind }

// Close ends the node's loop and closes its sockets. Its namespace is the testbed's.
func (n *node) Close(context.Context) error { return n.close() }

// stop ends the node's loop. Stopping twice is no error.
func (n *node) stop() {
	if n.loop != nil {
		n.loop.Close()
	}
}

func (n *node) close() error {
	n.stop()
	var errs []error
	for _, p := range n.ports {
		errs = append(errs, p.sock.Close())
	}
	for _, q := range n.quiet {
		errs = append(errs, q.Close())
	}
	n.quiet = nil
	if n.poller != nil {
		errs = append(errs, n.poller.Close())
		n.poller = nil
	}
	return errors.Join(errs...)
}

// now is the wall time since the epoch.
func (n *node) now() time.Duration { return time.Since(n.epoch) }

// Wait implements loop.Source: it sends what is due, gives the kernel its slots back, and waits for frames, for what is
// due or comes in next, and for as long as the loop has nothing to do.
func (n *node) Wait(limit time.Duration) {
	now := n.now()
	next := time.Duration(-1)
	sooner := func(at time.Duration) {
		if at >= 0 && (next < 0 || at < next) {
			next = at
		}
	}
	for _, p := range n.ports {
		sooner(p.flush(now))
		p.giveBack()
		sooner(p.coming())
	}
	if next >= 0 {
		if wait := max(0, next-n.now()); limit < 0 || wait < limit {
			limit = wait
		}
	}
	if err := n.poller.Wait(limit); err != nil {
		n.failed.CompareAndSwap(nil, &err)
		time.Sleep(time.Millisecond) // nothing can be waited for any more; the loop lives on until it is closed
	}
}

// Gather implements loop.Source.
func (n *node) Gather() {
	// The kernel stamps frames by the real-time clock, which may be set at any time.
	real := time.Duration(time.Now().UnixNano())
	n.offset = real - n.now()
	n.active = n.active[:0]
	for _, p := range n.ports {
		if p.look() {
			n.active = append(n.active, p)
		}
	}
}

// Next implements loop.Source: the first of the frames that came in at any port.
func (n *node) Next() (at loop.Time, ok bool) {
	n.first = -1
	for i, p := range n.active {
		if n.first < 0 || loop.Time(p.arrived.first().due) < at {
			n.first, at = i, loop.Time(p.arrived.first().due)
		}
	}
	return at, n.first >= 0
}

// Handle implements loop.Source: it takes the frame that Next spoke of.
func (n *node) Handle() {
	p := n.active[n.first]
	if !p.take() {
		n.active[n.first] = n.active[len(n.active)-1]
		n.active = n.active[:len(n.active)-1]
	}
}

// End implements loop.Source.
func (n *node) End() { n.poller.Release() }

// Wake implements loop.Source.
func (n *node) Wake() { n.poller.Wake() }
