package silicon

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// cut is a link that is down, or goes down and comes up again with a period: both ports lose their carrier. What
// is in their queues and on the wire is lost. No switch uses routes over it until it is mended.
type cut struct {
	in   *Injector
	name string
	link int
	ref  topo.PortRef
	ends [2]*Port

	period, downFor time.Duration // of a flap; else 0
	varies          bool          // its times vary about these, exponentially
	once            bool          // it comes up again after downFor, for good
	seed            uint64

	// Each end's, on its loop.
	at [2]cutEnd
	// On the control loop.
	control loop.Timer
	turns   uint64 // of the link's state so far
	down    bool
	over    bool
}

// cutEnd is what a cut does at one port.
type cutEnd struct {
	in     bool // in force
	down   bool
	fell   bool // it has been down
	turns  uint64
	before uint64 // losses of carrier
	timer  loop.Timer
}

func (e *cut) possible() error { return nil }

func (e *cut) allowed() error {
	if by, taken := e.in.cuts[e.link]; taken {
		return fmt.Errorf("%s: fault %s has the link down already", e.ref, by)
	}
	return nil
}

func (e *cut) ports() []*Port { return e.ends[:] }

// claim takes the link, and makes routing follow it from when its ports see it.
func (e *cut) claim() {
	e.in.cuts[e.link] = e.name
	e.over, e.turns = false, 0
	e.control.Fire = e.turn
	e.turn()
}

// turn is routing's side of the link going down or up.
func (e *cut) turn() {
	e.down = !e.down
	e.in.routing.SetLink(e.link, !e.down)
	e.next(&e.control, e.in.ctl, e.down, &e.turns)
}

// next sets a flap's timer for when the link's state ends that began now. Both ends and routing draw the same times.
func (e *cut) next(t *loop.Timer, l loop.Loop, down bool, turns *uint64) {
	if e.period == 0 || e.once && !down {
		return
	}
	lasts := e.downFor
	if !down {
		lasts = e.period - e.downFor
	}
	if e.varies {
		u := (float64(draw(e.seed, drawJitter, *turns)>>11) + 0.5) / (1 << 53)
		lasts = max(time.Duration(math.Round(-math.Log(u)*float64(lasts))), 1)
	}
	*turns++
	l.Arm(t, l.Now().Add(lasts))
}

func (e *cut) release() {
	delete(e.in.cuts, e.link)
	e.in.ctl.Disarm(&e.control)
	if e.down {
		e.down = false
		e.in.routing.SetLink(e.link, true)
	}
}

func (e *cut) end(p *Port) *cutEnd {
	if p == e.ends[0] {
		return &e.at[0]
	}
	return &e.at[1]
}

func (e *cut) apply(p *Port) error {
	c := e.end(p)
	*c = cutEnd{in: true, before: p.lost}
	c.timer.Fire = func() { e.set(p, c) }
	e.set(p, c)
	return nil
}

// set takes the carrier away, or gives it back.
func (e *cut) set(p *Port, c *cutEnd) {
	c.down = !c.down
	c.fell = true
	if p.SetCarrier(!c.down); c.down {
		p.cutBy = append(p.cutBy, e)
	} else {
		p.mendedBy(e)
	}
	e.next(&c.timer, p.Loop, c.down, &c.turns)
}

func (e *cut) verify(p *Port) error {
	c := e.end(p)
	switch {
	case !c.in || !c.fell:
		return fmt.Errorf("%s: it has not lost its carrier", p.Ref)
	case e.period == 0 && !p.Wire.IsCut():
		return fmt.Errorf("%s: its wire carries frames", p.Ref)
	}
	return nil
}

// hits are the losses of carrier that the port saw.
func (e *cut) hits(p *Port) uint64 { return p.lost - e.end(p).before }

func (e *cut) heal(p *Port) {
	c := e.end(p)
	if !c.in {
		return
	}
	p.Loop.Disarm(&c.timer)
	if c.down {
		c.down = false
		p.SetCarrier(true)
		p.mendedBy(e)
	}
	c.in = false
}

// clean allows for another fault that has the link down at the moment.
func (e *cut) clean(p *Port) error {
	switch {
	case e.end(p).down || slices.Contains(p.cutBy, e):
		return fmt.Errorf("%s: %s still has its link down", p.Ref, e.name)
	case p.down < len(p.cutBy) || p.Wire.IsCut() != (p.down > 0):
		return fmt.Errorf("%s: %d faults have its link down, and its wire is cut: %v", p.Ref, p.down, p.Wire.IsCut())
	}
	return nil
}
