package hostfault

import (
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// killed is queue pairs of a NIC that programs' own verbs move to the error state, where they stay.
type killed struct {
	in   *Injector
	spec *faults.Spec
	at   topo.PortRef
	b    *bench
	qps  []*workloads.End // on the NIC's loop
	n    uint64
}

// kill is what a qp-kill or a nic-reset does at a NIC. One that can resets itself.
func (in *Injector) kill(spec *faults.Spec, at topo.PortRef) (effect, error) {
	var qps effect = &killed{in: in, spec: spec, at: at, b: in.benches[at]}
	if spec.Kind == faults.QPKill {
		return qps, nil
	}
	part := *spec
	part.At, part.Random, part.Down, part.Schedule = []string{at.String()}, 0, 0, faults.Schedule{}
	if in.cfg.Fabric != nil && in.cfg.Fabric.Injector().Check(part) == nil {
		qps = &sub{in: in, spec: part}
	}
	r := &reset{effect: qps, down: spec.Down}
	if spec.Down > 0 {
		part.Kind = faults.LinkDown
		r.link = &sub{in: in, spec: part}
	}
	return r, nil
}

// back answers on the control loop, from the NIC's.
func (k *killed) back(done func(error)) func(error) {
	return func(err error) { k.in.cfg.Control.Post(func() { done(err) }) }
}

func (k *killed) apply(done func(error)) {
	k.b.loop.Post(func() {
		all := gather(k.back(done))
		for _, e := range k.b.ends {
			if !meant(k.spec, e) || !e.Connected() || e.QP().State() == verbs.Err {
				continue
			}
			answer := all.ask()
			e.QP().Modify(verbs.QPAttr{State: verbs.Err}, verbs.MaskState, func(err error) {
				if err == nil {
					k.n++
					k.qps = append(k.qps, e)
				} else {
					err = fmt.Errorf("%s: QP %#x: %w", k.at, e.QP().Num(), err)
				}
				answer(err)
			})
		}
		all.asked()
	})
}

// verify asks the NIC for the state of those that programs have not given up yet.
func (k *killed) verify(done func(error)) {
	k.b.loop.Post(func() {
		all := gather(k.back(done))
		for _, e := range k.qps {
			if !e.Open() {
				continue
			}
			answer := all.ask()
			e.QP().Query(func(a verbs.QPAttr, err error) {
				switch {
				case !e.Open(): // it was given up meanwhile
					err = nil
				case err != nil:
					err = fmt.Errorf("%s: QP %#x: query: %w", k.at, e.QP().Num(), err)
				case a.State != verbs.Err:
					err = fmt.Errorf("%s: QP %#x is in state %v, not %v", k.at, e.QP().Num(), a.State, verbs.Err)
				}
				answer(err)
			})
		}
		all.asked()
	})
}

func (k *killed) hits(done func(uint64, error)) {
	var n uint64
	k.in.on(k.b.loop, func() error { n = k.n; return nil }, func(err error) { done(n, err) })
}

// heal has nothing to undo: programs make themselves new queue pairs.
func (k *killed) heal(done func(error))  { done(nil) }
func (k *killed) clean(done func(error)) { done(nil) }
