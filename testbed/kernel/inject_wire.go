//go:build linux

package kernel

import (
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/topo"
)

// impairment is a fault as a cable's. Times become wall times.
func (in *injector) impairment(s *faults.Spec, from topo.PortRef) (cable.Impairment, error) {
	wall := in.f.cfg.Dilation.Wall
	imp := cable.Impairment{ID: s.Name, Seed: in.seed(s.Name, from)}
	p := float64(s.Probability)
	switch s.Kind {
	case faults.Loss:
		switch {
		case s.EveryNth > 0:
			imp.Stage = cable.NthLoss{N: uint32(s.EveryNth)}
		case s.GE != nil:
			imp.Stage = cable.BurstLoss{P: float64(s.GE.P), R: float64(s.GE.R), LossBad: float64(s.GE.LossBad), LossGood: float64(s.GE.LossGood)}
		default:
			imp.Stage = cable.RandomLoss{P: p}
		}
	case faults.Delay:
		imp.Delay = cable.Delay{Delay: wall(s.Delay), Jitter: wall(s.Jitter), Distribution: s.Distribution}
	case faults.Reorder:
		imp.Stage = cable.Overtake{P: p, Gap: uint32(s.Gap)}
		imp.Delay = cable.Delay{Delay: wall(s.Delay)}
	case faults.Duplicate:
		imp.Stage = cable.Duplicate{P: p}
	case faults.Corrupt:
		imp.Stage = cable.Corrupt{P: p}
	default:
		return imp, fmt.Errorf("the kernel backend has no fault of kind %q", s.Kind)
	}
	return imp, nil
}

// impaired is a fault on one direction of a cable.
type impaired struct {
	f    *Fabric
	from topo.PortRef
	what cable.Impairment

	before  uint64 // packets through the delay line when a pure delay was applied
	final   uint64 // hits when it was healed
	applied bool
	counted bool // final is set
	healed  bool
}

// possible looks at the fault alone on its cable.
func (e *impaired) possible() error {
	return e.on(cable.Wire{Delay: e.f.cfg.Dilation.Wall(e.f.Plan().Link(e.from).Delay)})
}

// allowed looks at it beside the faults that are there.
func (e *impaired) allowed() error {
	w, err := e.f.cables.Wire(e.from)
	if err != nil {
		return err
	}
	return e.on(w)
}

func (e *impaired) on(w cable.Wire) error {
	if err := w.With(e.what).Check(); err != nil {
		return fmt.Errorf("%s: %w", e.from, err)
	}
	return nil
}

func (e *impaired) apply() error {
	if e.what.Stage == nil {
		s, err := e.f.cables.DelayLine(e.from)
		if err != nil {
			return err
		}
		e.before = s.Packets
	}
	err := e.f.cables.Change(e.from, func(w cable.Wire) cable.Wire { return w.With(e.what) })
	e.applied = err == nil
	return err
}

func (e *impaired) verify() error { return e.f.cables.Verify(e.from) }

// hits are the packets that the stage acted on, or for a pure delay those that the delay line
// has let go since.
func (e *impaired) hits() (uint64, error) {
	if e.counted {
		return e.final, nil
	}
	if e.what.Stage != nil {
		c, err := e.f.cables.Counts(e.from, e.what.ID)
		return c.Hits, err
	}
	s, err := e.f.cables.DelayLine(e.from)
	return s.Packets - e.before, err
}

func (e *impaired) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	// Counted once: a second try must not stumble over a stage that is gone already.
	if !e.counted {
		n, err := e.hits()
		if err != nil {
			return err
		}
		e.final, e.counted = n, true
	}
	err := e.f.cables.Change(e.from, func(w cable.Wire) cable.Wire { return w.Without(e.what.ID) })
	e.healed = err == nil
	return err
}

func (e *impaired) clean() error {
	w, err := e.f.cables.Wire(e.from)
	if err != nil {
		return err
	}
	for _, i := range w.Impairments {
		if i.ID == e.what.ID {
			return fmt.Errorf("%s: %s is still on the cable", e.from, i.ID)
		}
	}
	return e.f.cables.Verify(e.from)
}
