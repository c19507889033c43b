package hostfault

import (
	"errors"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// sub is a part of a fault that the fabric's own injector makes.
type sub struct {
	in      *Injector
	spec    faults.Spec
	a       fabric.Applied // nil: it isn't in force yet
	healed  bool
	waiting []func(error) // for the end of healing; nil: it isn't under way
}

// back makes an injector's answer come on the control loop.
func (s *sub) back(done func(error)) func(error) {
	return func(err error) { s.in.cfg.Control.Post(func() { done(err) }) }
}

func (s *sub) apply(done func(error)) {
	s.in.cfg.Fabric.Injector().Apply(s.spec, func(a fabric.Applied, err error) {
		s.in.cfg.Control.Post(func() { s.a = a; done(err) })
	})
}

func (s *sub) verify(done func(error)) { s.a.Verify(s.back(done)) }

func (s *sub) clean(done func(error)) {
	if s.a == nil {
		done(nil)
		return
	}
	s.a.VerifyClean(s.back(done))
}

func (s *sub) hits(done func(uint64, error)) {
	s.a.Hits(func(n uint64, err error) { s.in.cfg.Control.Post(func() { done(n, err) }) })
}

// heal may be called while it is healing already.
func (s *sub) heal(done func(error)) {
	switch {
	case s.healed || s.a == nil:
		done(nil)
	case s.waiting != nil:
		s.waiting = append(s.waiting, done)
	default:
		s.waiting = []func(error){done}
		s.a.Heal(s.back(func(err error) {
			all := s.waiting
			s.waiting, s.healed = nil, err == nil
			for _, done := range all {
				done(err)
			}
		}))
	}
}

// reset is a NIC that loses its queue pairs, and its port for a while.
type reset struct {
	effect      // the queue pairs
	link   *sub // nil: its port stays up
	down   time.Duration
	err    error // of the port's coming up again
}

func (r *reset) apply(done func(error)) {
	r.effect.apply(func(err error) {
		if err != nil || r.link == nil {
			done(err)
			return
		}
		r.link.apply(func(err error) {
			if err == nil {
				loop.After(r.link.in.cfg.Control, r.down, func() { r.link.heal(func(err error) { r.err = err }) })
			}
			done(err)
		})
	})
}

func (r *reset) verify(done func(error)) {
	r.effect.verify(func(err error) {
		if err != nil || r.link == nil || r.link.healed || r.link.waiting != nil {
			done(err)
			return
		}
		r.link.verify(done)
	})
}

func (r *reset) heal(done func(error)) {
	if r.link == nil {
		r.effect.heal(done)
		return
	}
	r.link.heal(func(lerr error) {
		r.effect.heal(func(err error) { done(errors.Join(lerr, err)) })
	})
}

func (r *reset) clean(done func(error)) {
	if r.link == nil {
		r.effect.clean(done)
		return
	}
	r.link.clean(func(lerr error) {
		r.effect.clean(func(err error) { done(errors.Join(lerr, err, r.err)) })
	})
}
