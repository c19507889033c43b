//go:build linux

package kernel

import (
	"fmt"

	"github.com/rocebed/rocebed/topo"
)

// slow is a link that carries less in one direction: its sender's shaper is slower.
type slow struct {
	f    *Fabric
	name string
	from topo.PortRef
	rate topo.Rate // wall

	full    topo.Rate // before
	before  uint64    // packets through the shaper when it was applied
	final   uint64
	applied bool
	healed  bool
}

func (e *slow) ports() (*ports, error) {
	n := e.f.nodes[e.from.Node]
	if n == nil {
		return nil, fmt.Errorf("%s: no such node", e.from)
	}
	return n.ports, nil
}

// possible compares the rate with the link's.
func (e *slow) possible() error {
	port, _ := e.f.Plan().Port(e.from)
	d, err := e.f.declared(port, e.f.Plan().Node(e.from.Node))
	if err != nil {
		return err
	}
	if e.rate >= d.rate() {
		return fmt.Errorf("%s: the link carries no more than the fault leaves it (%v, %v of wall time)", e.from, e.f.Plan().Link(e.from).Rate, d.rate())
	}
	if err := d.withRate(e.rate).Check(); err != nil {
		return fmt.Errorf("%s: at a dilation of %v: %w", e.from, e.f.cfg.Dilation, err)
	}
	return nil
}

// allowed refuses a link that another fault slows.
func (e *slow) allowed() error {
	p, err := e.ports()
	if err != nil {
		return err
	}
	if p.declaration(e.from.Port).rate() != wallRate(e.f.Plan().Link(e.from).Rate, e.f.cfg.Dilation) {
		return fmt.Errorf("%s: its rate is limited by another fault already", e.from)
	}
	return nil
}

func (e *slow) apply() error {
	if err := e.possible(); err != nil {
		return err
	}
	if err := e.allowed(); err != nil {
		return err
	}
	p, err := e.ports()
	if err != nil {
		return err
	}
	if e.before, err = p.sent(e.from.Port); err != nil {
		return err
	}
	e.full = p.declaration(e.from.Port).rate()
	e.f.disturbed.note()
	defer e.f.disturbed.note()
	err = p.change(e.from.Port, func(d declaration) declaration { return d.withRate(e.rate) })
	e.applied = err == nil
	return err
}

func (e *slow) verify() error {
	p, err := e.ports()
	if err != nil {
		return err
	}
	if r := p.declaration(e.from.Port).rate(); r != e.rate {
		return fmt.Errorf("%s: its declared rate is %v, not %v", e.from, r, e.rate)
	}
	return p.verify(e.from.Port)
}

// hits are the packets that went through the slower shaper.
func (e *slow) hits() (uint64, error) {
	if e.healed {
		return e.final, nil
	}
	p, err := e.ports()
	if err != nil {
		return 0, err
	}
	n, err := p.sent(e.from.Port)
	return n - e.before, err
}

func (e *slow) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	p, err := e.ports()
	if err != nil {
		return err
	}
	e.f.disturbed.note()
	defer e.f.disturbed.note()
	if err := p.change(e.from.Port, func(d declaration) declaration { return d.withRate(e.full) }); err != nil {
		return err
	}
	e.final, e.healed = n, true
	return nil
}

func (e *slow) clean() error {
	p, err := e.ports()
	if err != nil {
		return err
	}
	if r := p.declaration(e.from.Port).rate(); r != e.full {
		return fmt.Errorf("%s: its declared rate is %v, not %v", e.from, r, e.full)
	}
	return p.verify(e.from.Port)
}
