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
	"github.com/rocebed/rocebed/testbed/linux"
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

	// failed is why the node stopped waiting for its sockets; it is checked by KeepUp.
	failed atomic.Pointer[error]
}

type closer interface{ Close() error }

// portConfig is what a port is made of.
type portConfig struct {
	plan topo.PlanPort
	link *topo.Link
	// room is how many bytes of frames the kernel keeps for the port.
	room int
	// number, set for ports of a switch, gives the fabric's number of the port with an address. A host's
	// port takes RoCE and pause frames alone.
	number func(roce.Addr) uint32
}

// newNode opens the sockets of a node. Nothing runs before start.
func newNode(n *topo.Node, kind topo.Kind, ns *linux.Namespace, cpu int, d loop.Dilation, epoch time.Time, ports []portConfig) (_ *node, err error) {
	made := &node{name: n.Name, kind: kind, dilation: d, epoch: epoch}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	if made.poller, err = packet.NewPoller(n.Name, cpu); err != nil {
		return nil, err
	}
	for i, c := range ports {
		opt := packet.Options{MTU: c.link.MTU, Room: c.room}
		if c.number == nil {
			opt.Filter = packet.RoCE
		}
		sock, err := packet.Open(ns, c.plan.Ref.Port, opt)
		if err != nil {
			return nil, err
		}
		p := &port{node: made, index: uint16(i), sock: sock, ref: c.plan.Ref, mac: roce.MAC(c.plan.MAC), delay: c.link.Delay, number: c.number}
		made.ports = append(made.ports, p)
		if err := made.poller.Add(sock); err != nil {
			return nil, err
		}
	}
	return made, nil
}

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

func (n *node) close() error {
	if n.loop != nil {
		n.loop.Close()
		n.loop = nil
	}
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
// due next, and for as long as the loop has nothing to do.
func (n *node) Wait(limit time.Duration) {
	now := n.now()
	next := time.Duration(-1)
	for _, p := range n.ports {
		if at := p.flush(now); at >= 0 && (next < 0 || at < next) {
			next = at
		}
		p.giveBack()
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

// Handle implements loop.Source: it takes what has come in.
func (n *node) Handle() {
	for _, p := range n.ports {
		p.receive()
	}
}

// Wake implements loop.Source.
func (n *node) Wake() { n.poller.Wake() }
