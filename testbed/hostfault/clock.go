package hostfault

import (
	"fmt"
	"math"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo/strict"
)

// trueTime is a clock's speed that is right, in billionths.
const trueTime = 1_000_000_000

// slowClock is a host whose clock, and its NICs', runs slow. It is set right when the fault heals.
type slowClock struct {
	in   *Injector
	host string
	l    loop.Loop
	ppb  int64

	before, late uint64 // timers, on the host's loop
	on           bool
}

func (in *Injector) slowClock(spec *faults.Spec, host string) (effect, error) {
	if in.cfg.NICs.Of(host).Process {
		return nil, strict.At("at", "%s: its NICs have a process of their own, with timers that nobody else reaches (leave out nics.process)", host)
	}
	c := &slowClock{in: in, host: host, ppb: max(1, int64(math.Round(float64(spec.Speed)*trueTime)))}
	if s := in.seats[host]; s != nil {
		c.l = s.loop
	}
	return c, nil
}

func (c *slowClock) set(ppb int64) error {
	if !loop.SetClock(c.l, ppb) {
		return fmt.Errorf("%s: its clock can't be set", c.host)
	}
	return nil
}

func (c *slowClock) apply(done func(error)) {
	c.in.on(c.l, func() error {
		_, c.before = loop.Clock(c.l)
		err := c.set(c.ppb)
		c.on = err == nil
		return err
	}, done)
}

func (c *slowClock) verify(done func(error)) {
	c.in.on(c.l, func() error { return c.is(c.ppb) }, done)
}

func (c *slowClock) clean(done func(error)) {
	c.in.on(c.l, func() error { return c.is(trueTime) }, done)
}

func (c *slowClock) is(want int64) error {
	if ppb, _ := loop.Clock(c.l); ppb != want {
		return fmt.Errorf("%s: its clock runs at %d billionths of the true time, not %d", c.host, ppb, want)
	}
	return nil
}

func (c *slowClock) hits(done func(uint64, error)) {
	var n uint64
	c.in.on(c.l, func() error {
		if c.on {
			_, c.late = loop.Clock(c.l)
		}
		n = c.late - c.before
		return nil
	}, func(err error) { done(n, err) })
}

func (c *slowClock) heal(done func(error)) {
	c.in.on(c.l, func() error {
		if !c.on {
			return nil
		}
		_, c.late = loop.Clock(c.l)
		c.on = false
		return c.set(trueTime)
	}, done)
}
