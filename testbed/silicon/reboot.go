package silicon

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
)

// reboot is a switch that is off for a time: it loses all that waits in it and all pauses, its ports and those across its links have no
// carrier, and routes go round it. Then it comes back by itself, or earlier where the fault heals.
type reboot struct {
	in   *Injector
	name string
	node string
	port *Port  // any of the switch's: where it is switched off and on
	cuts []*cut // of its links
	down time.Duration

	// On the control loop.
	routes  loop.Timer
	links   []int
	without bool // routes are without its links
	// On the switch's loop.
	timer  loop.Timer
	isOff  bool
	struck bool
}

func (in *Injector) reboot(s *faults.Spec, node string) *reboot {
	e := &reboot{in: in, name: s.Name, node: node, down: s.Down}
	for _, p := range in.plan.Ports(node) {
		own := in.port(p.Ref)
		if e.port == nil {
			e.port = own
		}
		e.links = append(e.links, p.Link)
		e.cuts = append(e.cuts, &cut{in: in, name: s.Name, link: p.Link, ref: p.Ref, ends: [2]*Port{own, in.port(p.Peer)}, period: s.Down, downFor: s.Down, once: true})
	}
	return e
}

func (e *reboot) possible() error {
	if len(e.links) == 0 {
		return fmt.Errorf("%s: it has no port", e.node)
	}
	return nil
}

func (e *reboot) allowed() error {
	if by, off := e.in.off[e.node]; off {
		return fmt.Errorf("%s: fault %s reboots it already", e.node, by)
	}
	return nil
}

func (e *reboot) sw() *Switch { return e.in.routing.switches[e.node] }

// claim makes routes go round the switch until it is back.
func (e *reboot) claim() {
	e.in.off[e.node] = e.name
	e.in.routing.SetLinks(e.links, false)
	e.without = true
	e.routes.Fire = e.back
	e.in.ctl.Arm(&e.routes, e.in.ctl.Now().Add(e.down))
}

// back gives routes the switch's links again.
func (e *reboot) back() {
	if e.without {
		e.without = false
		e.in.routing.SetLinks(e.links, true)
	}
}

func (e *reboot) release() {
	delete(e.in.off, e.node)
	e.in.ctl.Disarm(&e.routes)
	e.back()
}

// ports are both ends of all its links, the one first where the switch's power is.
func (e *reboot) ports() (all []*Port) {
	for _, c := range e.cuts {
		all = append(all, c.ends[:]...)
	}
	return all
}

func (e *reboot) each(p *Port, do func(*cut) error) error {
	for _, c := range e.cuts {
		if c.ends[0] == p || c.ends[1] == p {
			return do(c)
		}
	}
	return nil
}

func (e *reboot) apply(p *Port) error {
	if p == e.port {
		e.sw().SetPower(false)
		e.isOff, e.struck = true, true
		e.timer.Fire = e.boot
		p.Loop.Arm(&e.timer, p.Loop.Now().Add(e.down))
	}
	return e.each(p, func(c *cut) error { return c.apply(p) })
}

// boot switches it on again.
func (e *reboot) boot() {
	if e.isOff {
		e.isOff = false
		e.sw().SetPower(true)
	}
}

func (e *reboot) verify(p *Port) error {
	if p == e.port && (!e.struck || e.sw().Powered() == e.isOff) {
		return fmt.Errorf("%s: its power is on: %v", e.node, e.sw().Powered())
	}
	return e.each(p, func(c *cut) error { return c.verify(p) })
}

func (e *reboot) hits(p *Port) uint64 {
	if p == e.port && e.struck {
		return 1
	}
	return 0
}

func (e *reboot) heal(p *Port) {
	if p == e.port {
		p.Loop.Disarm(&e.timer)
		e.boot()
	}
	_ = e.each(p, func(c *cut) error { c.heal(p); return nil })
}

func (e *reboot) clean(p *Port) error {
	if p == e.port && !e.sw().Powered() {
		return fmt.Errorf("%s: it is still off", e.node)
	}
	return e.each(p, func(c *cut) error { return c.clean(p) })
}
