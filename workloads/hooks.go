package workloads

import (
	"fmt"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Watcher hears of every end of a queue pair that an engine makes, on the loop of the end's NIC: once it is open and before anything is posted,
// and before it is closed.
type Watcher interface {
	Opened(*End)
	Closed(*End)
}

// End is an end of a queue pair to whoever runs the engine and takes from its program what it would do. Its methods are for the loop of its NIC,
// between Opened and Closed.
type End struct {
	Workload string
	Flow     int // in the workload, as in its results
	Port     topo.PortRef
	d        *end
}

// QP is the end's queue pair.
func (e *End) QP() verbs.QP { return e.d.qp }

// Open says whether the end is between Opened and Closed.
func (e *End) Open() bool { return e.d.handle == e }

// Connected says whether its queue pair knows its peer.
func (e *End) Connected() bool { return e.d.peer.qpn != 0 }

// HoldReceives keeps the program from posting receives: those that become due are counted in held, and posted once it is
// called with nil. What is posted already stays.
func (e *End) HoldReceives(held *uint64) error {
	e.d.held = held
	if held != nil || len(e.d.due) == 0 {
		return nil
	}
	due := e.d.due
	e.d.due = nil
	if err := e.d.qp.PostRecv(due...); err != nil {
		return e.d.wrap(fmt.Errorf("post the receives that were held back: %w", err))
	}
	return nil
}

// ReceivesHeld says whether receives are kept back.
func (e *End) ReceivesHeld() bool { return e.d.held != nil }

// postRecv posts receives, unless they are held back.
func (d *end) postRecv(wrs []verbs.RecvWR) error {
	if d.held == nil {
		return d.qp.PostRecv(wrs...)
	}
	*d.held += uint64(len(wrs))
	d.due = append(d.due, wrs...)
	return nil
}

// opened tells who watches.
func (d *end) opened() {
	if d.nic.watch != nil {
		d.handle = &End{d.cfg.workload, d.cfg.flow, d.nic.Port, d}
		d.nic.watch.Opened(d.handle)
	}
}

func (d *end) closing() {
	if d.handle != nil {
		d.nic.watch.Closed(d.handle)
		d.handle = nil
	}
}
