package hostfault

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
)

// unready is a NIC at which programs post no receives: those that become due wait until it heals.
type unready struct {
	in   *Injector
	spec *faults.Spec
	at   topo.PortRef
	b    *bench
	held uint64 // receives, on the NIC's loop
}

// meant says whether a fault with workload and flows is about an end.
func meant(s *faults.Spec, e *workloads.End) bool {
	return s.Workload == "" || s.Workload == e.Workload && s.Flows.Has(uint32(e.Flow))
}

func (u *unready) apply(done func(error)) {
	u.in.on(u.b.loop, func() error {
		u.b.rnr = u
		for _, e := range u.b.ends {
			if meant(u.spec, e) {
				_ = e.HoldReceives(&u.held) // holding back can't fail
			}
		}
		return nil
	}, done)
}

func (u *unready) verify(done func(error)) {
	u.in.on(u.b.loop, func() error { return u.hold(u.b.rnr == u, true) }, done)
}

func (u *unready) clean(done func(error)) {
	u.in.on(u.b.loop, func() error { return u.hold(u.b.rnr == nil, false) }, done)
}

// hold says where receives are not held back as they should be.
func (u *unready) hold(right, want bool) error {
	if !right {
		return fmt.Errorf("%s: whether receives are posted is not as this fault left it", u.at)
	}
	for _, e := range u.b.ends {
		if meant(u.spec, e) && e.ReceivesHeld() != want {
			return fmt.Errorf("%s: workload %s, flow %d: receives are held back: %v, want %v", u.at, e.Workload, e.Flow, !want, want)
		}
	}
	return nil
}

func (u *unready) hits(done func(uint64, error)) {
	var n uint64
	u.in.on(u.b.loop, func() error { n = u.held; return nil }, func(err error) { done(n, err) })
}

// heal posts what was held back.
func (u *unready) heal(done func(error)) {
	u.in.on(u.b.loop, func() error {
		if u.b.rnr != u { // it is healed, or never came into force
			return nil
		}
		u.b.rnr = nil
		var errs []error
		for _, e := range u.b.ends {
			if meant(u.spec, e) {
				errs = append(errs, e.HoldReceives(nil))
			}
		}
		return errors.Join(errs...)
	}, done)
}
