package rnic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

// pace is the rate limiter of a queue pair: its reaction point, and what the packets sent so far still
// have to wait off. It counts what a packet takes on the line, so that a flow at line rate isn't slower than one
// without a limiter. Who didn't send when it might have may catch up a packet, so that waiting for one's turn on the
// line costs no rate, and no more.
type pace struct {
	rp   dcqcn.RP
	rate dcqcn.Rate // at which owed is paid off since at
	at   loop.Time
	owed int64 // bits · 10^9: rates are bits a second, times nanoseconds
	save int64 // how much may be paid ahead: what the last packet took
}

// settle does what became due at the reaction point up to now, and pays off what was owed till then.
func (c *pace) settle(now loop.Time) {
	c.rp.OnTimer(now)
	if c.rp.Rate() != c.rate {
		c.pay(now)
		c.rate = c.rp.Rate()
	}
}

// pay pays off what can be up to a time.
func (c *pace) pay(now loop.Time) {
	if now <= c.at {
		return
	}
	if span := int64(now - c.at); span < (c.owed+c.save)/int64(c.rate) {
		c.owed -= int64(c.rate) * span
	} else {
		c.owed = -c.save
	}
	c.at = now
}

// span is how many nanoseconds what is owed takes.
func (c *pace) span() int64 {
	if c.owed <= 0 {
		return 0
	}
	return (c.owed + int64(c.rate) - 1) / int64(c.rate)
}

// next is when the next packet may start.
func (c *pace) next(now loop.Time) loop.Time {
	c.settle(now)
	if !c.rp.Limited() {
		return now
	}
	return c.at + loop.Time(c.span())
}

// wake is when a sender that waits until a time should look again: the rate may change before.
func (c *pace) wake(at loop.Time) loop.Time {
	if t, ok := c.rp.NextTimer(); ok {
		return min(at, t)
	}
	return at
}

// sent notes a packet of n bytes (its Len) that starts at a time.
func (c *pace) sent(now, start loop.Time, n int32) {
	c.rp.OnSent(now, dcqcn.Bytes(n))
	c.pay(start)
	c.rate = c.rp.Rate()
	c.save = int64(max(n, link.MinLen)+link.Overhead) * 8 * int64(time.Second)
	c.owed += c.save
}

// onCNP takes a congestion notification.
func (c *pace) onCNP(now loop.Time) {
	c.settle(now)
	c.rp.OnCNP(now)
	c.settle(now)
}
