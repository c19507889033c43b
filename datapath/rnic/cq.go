package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// compQueue is a completion queue. Each completion is visible from its time on; those times don't go back.
type compQueue struct {
	object
	ring    ring[completion]
	depth   int
	timer   loop.Timer // runs when what was asked for becomes visible
	armed   armed
	broken  bool
	onEvent func(verbs.CQ)
}

type completion struct {
	wc        verbs.WC
	at        loop.Time
	solicited bool
}

// armed is what a queue's owner wants to hear of.
type armed uint8

const (
	forNothing armed = iota
	forSolicited
	forAny
)

// CreateCQ implements verbs.Device.
func (d *Device) CreateCQ(depth int, onEvent func(verbs.CQ), done func(verbs.CQ, error)) {
	op := fmt.Sprintf("create CQ of %d entries", depth)
	var err error
	switch {
	case d.closed:
		err = ErrClosed
	case depth < 1 || depth > maxCQE:
		err = fmt.Errorf("%w: 1 to %d are possible", ErrInvalid, maxCQE)
	}
	if err != nil {
		answer[verbs.CQ](d, op, nil, err, done)
		return
	}
	c := &compQueue{object: object{dev: d}, depth: depth, onEvent: onEvent}
	c.timer.Fire = c.wake
	answer[verbs.CQ](d, op, c, nil, done)
}

// Destroy implements verbs.CQ.
func (c *compQueue) Destroy(done func(error)) {
	c.kill("destroy CQ", func() { c.dev.loop.Disarm(&c.timer) }, done)
}

// Poll implements verbs.CQ.
func (c *compQueue) Poll(wcs []verbs.WC) int {
	if c.dead || c.dev.closed {
		return 0
	}
	now := c.dev.loop.Now()
	n := 0
	for n < len(wcs) && c.ring.len() > 0 {
		e := c.ring.at(c.ring.head)
		if e.at > now {
			break
		}
		wcs[n] = e.wc
		n++
		c.ring.head++
	}
	return n
}

// ReqNotify implements verbs.CQ.
func (c *compQueue) ReqNotify(solicitedOnly bool) error {
	if err := c.ok(); err != nil {
		return c.dev.fail("request notification", err)
	}
	if !solicitedOnly {
		c.armed = forAny
	} else if c.armed == forNothing {
		c.armed = forSolicited
	}
	// What is in the queue and not yet visible is news.
	now := c.dev.loop.Now()
	for i := c.ring.tail; i != c.ring.head; i-- {
		e := c.ring.at(i - 1)
		if e.at <= now {
			break
		}
		c.announce(e)
	}
	return nil
}

// announce sees to it that the owner hears of a completion if it wants to.
func (c *compQueue) announce(e *completion) {
	if c.armed == forAny || c.armed == forSolicited && e.solicited {
		if !c.timer.Armed() || e.at < c.timer.At() {
			c.dev.loop.Arm(&c.timer, e.at)
		}
	}
}

func (c *compQueue) wake() {
	if c.armed != forNothing && !c.dead && !c.dev.closed {
		c.armed = forNothing
		if c.onEvent != nil {
			c.onEvent(c)
		}
	}
}

// push adds a completion that is visible from a time on. A queue that has no room left is broken for
// good (11.6.3.2), and push says so.
func (c *compQueue) push(wc *verbs.WC, at loop.Time, solicited bool) bool {
	if c.dead || c.broken {
		return !c.broken
	}
	if int(c.ring.len()) >= c.depth {
		c.broken = true
		c.dev.event(verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: c})
		return false
	}
	if n := c.ring.len(); n > 0 {
		at = max(at, c.ring.at(c.ring.tail-1).at)
	}
	e := c.ring.add()
	e.wc, e.at, e.solicited = *wc, at, solicited
	c.announce(e)
	return true
}

// drop forgets the completions of a QP: it was reset or destroyed (11.2.5.2).
func (c *compQueue) drop(num uint32) {
	kept := c.ring.head
	for i := c.ring.head; i != c.ring.tail; i++ {
		e := c.ring.at(i)
		if e.wc.QPN != num {
			*c.ring.at(kept) = *e
			kept++
		}
	}
	c.ring.tail = kept
}
