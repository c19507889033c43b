//go:build linux

package kernel

import (
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/agent"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// inNIC says whether a kind is of those in NICs that agents make.
func inNIC(k faults.Kind) bool {
	switch k {
	case faults.PFCStorm, faults.CNPOff, faults.CNPCap, faults.DCQCNParams:
		return true
	}
	return false
}

// ailing is what is wrong with the agent's half of an rxe-host's NIC.
type ailing struct {
	f     *Fabric
	ref   topo.PortRef
	turn  func(*agent.Faults)
	undo  func(*agent.Faults)
	count func(*agent.PortReading) uint64

	params *dcqcn.Params // in the place of the NIC's own; nil: they stay
	own    dcqcn.Params

	before, final   uint64
	applied, healed bool
}

// inNICs is plan for faults in NICs.
func (in *injector) inNICs(s *faults.Spec) ([]effect, error) {
	return in.aimed(s, func(n *topo.Node, at topo.PortRef) ([]effect, error) {
		if k := kindOf(n); k != topo.RxeHost {
			return nil, fmt.Errorf("%s is a %s, whose NICs aren't the kernel's", n.Name, k)
		}
		e, err := in.ailing(s, at)
		return []effect{e}, err
	})
}

func (in *injector) ailing(s *faults.Spec, at topo.PortRef) (*ailing, error) {
	e := &ailing{f: in.f, ref: at}
	cfg, link := &in.f.cfg, in.f.Plan().Link(at)
	if s.Kind == faults.PFCStorm {
		if !cfg.engine {
			return nil, strict.At("kind", "%s", "nobody obeys a pause: ports of switches have one queue without switches.pfc")
		}
		storm, err := silicon.StormOf(s, link.Rate)
		if err != nil {
			return nil, err
		}
		wall := agent.Storm{Priorities: storm.Priorities, Quanta: storm.Quanta, Every: cfg.Dilation.Wall(storm.Every)}
		e.turn, e.undo = func(f *agent.Faults) { f.Storm = wall }, func(f *agent.Faults) { f.Storm = agent.Storm{} }
		e.count = func(r *agent.PortReading) uint64 { return r.Stormed }
		return e, nil
	}
	own := cfg.dcqcn(at.Node)
	if own == nil {
		return nil, strict.At("kind", "%s has no DCQCN (give nics.dcqcn)", at.Node)
	}
	leftOut := func(r *agent.PortReading) uint64 { return r.NIC.CNPsLeftOut }
	switch s.Kind {
	case faults.CNPOff:
		e.turn, e.undo, e.count = func(f *agent.Faults) { f.MuteCNP = true }, func(f *agent.Faults) { f.MuteCNP = false }, leftOut
	case faults.CNPCap:
		gap := max(time.Duration(float64(time.Second)/float64(s.Frequency)), 1)
		e.turn, e.undo, e.count = func(f *agent.Faults) { f.CNPGap = gap }, func(f *agent.Faults) { f.CNPGap = 0 }, leftOut
	default:
		p, cnps, err := silicon.Retuned(s, *own, at, link, cfg.Dilation)
		if err != nil {
			return nil, err
		}
		e.own, _ = silicon.LeastRate(*own, link, cfg.Dilation)
		e.params = &p
		e.count = func(r *agent.PortReading) uint64 {
			n := r.NIC.RateChanges
			if cnps {
				n += r.NIC.CNPSent
			}
			return n
		}
	}
	return e, nil
}

func (e *ailing) possible() error { return nil }
func (e *ailing) allowed() error  { return nil } // faults.Together says

func (e *ailing) read() (*agent.PortReading, error) {
	told, err := e.f.agent.Read()
	if err != nil {
		return nil, err
	}
	r, ok := told.Ports[e.f.numbers[e.ref]]
	if !ok || r.NIC == nil && e.f.cfg.dcqcn(e.ref.Node) != nil {
		return nil, fmt.Errorf("%s: the agent knows nothing of it", e.ref)
	}
	return &r, nil
}

// set gives the NIC parameters, and the kernel the time between notices that follows from them.
func (e *ailing) set(p dcqcn.Params) error {
	err := e.f.nodes[e.ref.Node].ports.change(e.ref.Port, func(d declaration) declaration {
		to := *d.port
		to.Notice = e.f.cfg.Dilation.Wall(p.MinTimeBetweenCNPs)
		d.port = &to
		return d
	})
	if err == nil {
		err = e.f.agent.SetParams(e.f.numbers[e.ref], p)
	}
	return err
}

// change changes what is wrong with the NIC; what other faults have changed stays.
func (e *ailing) change(turn func(*agent.Faults)) error {
	r, err := e.read()
	if err != nil {
		return err
	}
	turn(&r.Faults)
	return e.f.agent.SetFaults(e.f.numbers[e.ref], r.Faults)
}

func (e *ailing) apply() error {
	r, err := e.read()
	if err != nil {
		return err
	}
	e.before = e.count(r)
	if e.params != nil {
		err = e.set(*e.params)
	} else {
		err = e.change(e.turn)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	e.applied = true
	return nil
}

// agrees reads back whether the NIC is as a change, or parameters, leave it.
func (e *ailing) agrees(turn func(*agent.Faults), params *dcqcn.Params) error {
	r, err := e.read()
	switch {
	case err != nil:
		return err
	case e.params != nil:
		if r.NIC.Params != *params {
			return fmt.Errorf("%s: its DCQCN has %+v, not %+v", e.ref, r.NIC.Params, *params)
		}
		return e.f.nodes[e.ref.Node].ports.verify(e.ref.Port)
	}
	want := r.Faults
	if turn(&want); r.Faults != want {
		return fmt.Errorf("%s: its faults are %+v, not %+v", e.ref, r.Faults, want)
	}
	return nil
}

func (e *ailing) verify() error { return e.agrees(e.turn, e.params) }

func (e *ailing) hits() (uint64, error) {
	if e.healed || !e.applied {
		return e.final, nil
	}
	r, err := e.read()
	if err != nil {
		return 0, err
	}
	return e.count(r) - e.before, nil
}

func (e *ailing) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	n, err := e.hits()
	if err != nil {
		return err
	}
	if e.params != nil {
		err = e.set(e.own)
	} else {
		err = e.change(e.undo)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	e.final, e.healed = n, true
	return nil
}

func (e *ailing) clean() error { return e.agrees(e.undo, &e.own) }
