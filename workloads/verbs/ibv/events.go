//go:build ibv && linux && cgo

package ibv

/*
#include "rb.h"
*/
import "C"

import (
	"unsafe"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// eventBatch is how many completion events are taken in one crossing into C.
const eventBatch = 64

// takeCQEvents runs on the poller. An event is acknowledged only after the queue that it
// names was looked up: until then that queue can't be destroyed, nor its address be used again.
func (d *device) takeCQEvents() {
	cqs := &d.events
	for {
		n := int(C.rb_get_cq_events(d.channel, &cqs[0], eventBatch))
		d.mu.Lock()
		for _, p := range cqs[:n] {
			if c, ok := d.elements[unsafe.Pointer(p)].(*cq); ok && !c.arrived {
				c.arrived = true
				d.arrived = append(d.arrived, c)
			}
		}
		d.schedule()
		d.mu.Unlock()
		for _, p := range cqs[:n] {
			C.ibv_ack_cq_events(p, 1)
		}
		if n < eventBatch {
			return
		}
	}
}

// takeAsyncEvents runs on the poller.
func (d *device) takeAsyncEvents() {
	var a C.struct_rb_async
	for C.rb_get_async_event(d.ctx, &a) == 0 {
		e := verbs.AsyncEvent{Type: verbs.AsyncEventType(a._type)}
		d.mu.Lock()
		known := true
		switch o := d.elements[a.element].(type) {
		case *qp:
			e.QP = o
		case *srq:
			e.SRQ = o
		case *cq:
			e.CQ = o
		default:
			known = a.element == nil
		}
		if known {
			d.async = append(d.async, e)
			d.schedule()
		}
		d.mu.Unlock()
		C.ibv_ack_async_event(&a.event)
	}
}

// schedule has the loop deliver what has arrived. The device must be locked.
func (d *device) schedule() {
	if !d.scheduled && (len(d.arrived) > 0 || len(d.async) > 0) {
		d.scheduled = true
		d.lp.Post(d.deliver)
	}
}

// deliverEvents runs on the loop.
func (d *device) deliverEvents() {
	d.mu.Lock()
	cqs, async := d.arrived, d.async
	d.arrived, d.delivered = d.delivered[:0], cqs
	d.async, d.scheduled = nil, false
	for _, c := range cqs {
		c.arrived = false
	}
	d.mu.Unlock()
	for _, e := range async {
		d.handleAsync(e)
	}
	for i, c := range cqs {
		cqs[i] = nil
		if !c.dead && !d.closed && c.onEvent != nil {
			c.onEvent(c)
		}
	}
}

func (d *device) handleAsync(e verbs.AsyncEvent) {
	switch e.Type {
	case verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventQPLastWQEReached:
		if q, ok := e.QP.(*qp); ok {
			q.state = verbs.Err
		}
	case verbs.EventGIDChange:
		call(d, d.queryGIDs, func(gids []verbs.GID, err error) {
			if err == nil {
				d.gids = gids
			}
		})
	case verbs.EventPortActive, verbs.EventPortErr:
		d.portAttr.Active = e.Type == verbs.EventPortActive
	}
	if d.onAsync != nil && !d.closed {
		d.onAsync(e)
	}
}
