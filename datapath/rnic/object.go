package rnic

import (
	"fmt"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// object is what all objects of a device have.
type object struct {
	dev  *Device
	dead bool
	uses int // objects that refer to it
}

// ok says why a call on the object fails.
func (o *object) ok() error {
	switch {
	case o.dev.closed:
		return ErrClosed
	case o.dead:
		return ErrDead
	}
	return nil
}

// kill destroys the object when nothing refers to it, after which undo has taken back what it held.
func (o *object) kill(op string, undo func(), done func(error)) {
	err := o.ok()
	if err == nil && o.uses > 0 {
		err = fmt.Errorf("%w by %d others", ErrInUse, o.uses)
	}
	if err == nil {
		o.dead = true
		undo()
	}
	o.dev.fails(op, err, done)
}

type pd struct{ object }

// AllocPD implements verbs.Device.
func (d *Device) AllocPD(done func(verbs.PD, error)) {
	if d.closed {
		answer[verbs.PD](d, "allocate PD", nil, ErrClosed, done)
		return
	}
	answer[verbs.PD](d, "allocate PD", &pd{object{dev: d}}, nil, done)
}

// Dealloc implements verbs.PD.
func (p *pd) Dealloc(done func(error)) { p.kill("deallocate PD", func() {}, done) }

// ah is an address handle.
type ah struct {
	object
	pd   *pd
	path path
}

// CreateAH implements verbs.PD.
func (p *pd) CreateAH(attr verbs.AHAttr, done func(verbs.AH, error)) {
	op := fmt.Sprintf("create address handle to %v", attr.DGID)
	err := p.ok()
	if err == nil {
		err = p.dev.checkAH(&attr)
	}
	if err != nil {
		answer[verbs.AH](p.dev, op, nil, err, done)
		return
	}
	h := &ah{object: object{dev: p.dev}, pd: p}
	h.path.set(p.dev, &attr)
	p.uses++
	answer[verbs.AH](p.dev, op, h, nil, done)
}

// Destroy implements verbs.AH.
func (h *ah) Destroy(done func(error)) {
	h.kill("destroy address handle", func() { h.pd.uses-- }, done)
}
