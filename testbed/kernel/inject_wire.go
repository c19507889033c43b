//go:build linux

package kernel

import (
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/kernel/cable"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// impairment is a fault as a cable's. Times become wall times.
func (in *injector) impairment(s *faults.Spec, from topo.PortRef) (cable.Impairment, error) {
	wall := in.f.cfg.Dilation.Wall
	imp := cable.Impairment{ID: s.Name, Seed: faults.Seed(in.f.cfg.Seed, s.Name, from.String())}
	p := float64(s.Probability)
	switch s.Kind {
	case faults.Loss:
		switch {
		case s.EveryNth > 0:
			imp.Model = cable.NthLoss{N: uint32(s.EveryNth)}
		case s.GE != nil:
			imp.Model = cable.BurstLoss{P: float64(s.GE.P), R: float64(s.GE.R), LossBad: float64(s.GE.LossBad), LossGood: float64(s.GE.LossGood)}
		default:
			imp.Model = cable.RandomLoss{P: p}
		}
	case faults.Delay:
		imp.Delay = cable.Delay{Delay: wall(s.Delay), Jitter: wall(s.Jitter), Distribution: s.Distribution}
	case faults.Reorder:
		if s.Window > 0 {
			if s.Window > 1<<16-1 {
				return imp, strict.At("window", "%d packets are more than %d", s.Window, 1<<16-1)
			}
			imp.Model = cable.Overtaken{P: p, Gap: uint32(s.Gap), Window: uint16(s.Window)}
			break
		}
		imp.Model = cable.Overtake{P: p, Gap: uint32(s.Gap)}
		imp.Delay = cable.Delay{Delay: wall(s.Delay)}
	case faults.Duplicate:
		imp.Model = cable.Duplicate{P: p}
	case faults.Corrupt:
		imp.Model = cable.Corrupt{P: p}
	case faults.BitErrors:
		imp.Model = cable.BitErrors{Rate: s.BER}
	case faults.MTUShrink:
		if whole := in.f.Plan().Link(from).MTU; int(s.MTU) >= whole {
			return imp, fmt.Errorf("%s: the link takes no longer packets than the fault leaves it (its MTU is %d)", from, whole)
		}
		imp.Model = cable.TooLong{MTU: int(s.MTU)}
	case faults.Unidirectional:
		imp.Model = cable.Sever{}
	case faults.BlackHole:
		imp.Model = cable.BlackHole{}
	case faults.AckDelay:
		prog, err := in.program(lateAcks(s.Delay), imp.Seed)
		if err != nil {
			return imp, err
		}
		imp.Model = cable.Events{Program: prog}
	case faults.Packets:
		if err := in.canTruncate(s.PacketEvents()); err != nil {
			return imp, err
		}
		prog, err := in.program(s.PacketEvents(), imp.Seed)
		if err != nil {
			return imp, err
		}
		imp.Model = cable.Events{Program: prog}
	default:
		return imp, lacks(s.Kind)
	}
	return imp, nil
}

func lacks(k faults.Kind) error {
	if why, ok := impossible[k]; ok {
		return errors.New(why)
	}
	return fmt.Errorf("the kernel backend has no fault of kind %q", k)
}

// has refuses faults that this backend doesn't make.
func has(s *faults.Spec) error {
	switch s.Kind {
	case faults.Loss, faults.Delay, faults.Duplicate, faults.Corrupt, faults.RateLimit, faults.LinkDown, faults.LinkFlap, faults.Packets,
		faults.Reorder, faults.BitErrors, faults.MTUShrink, faults.Unidirectional, faults.BlackHole, faults.AckDelay:
		return nil
	}
	if inSwitch(s.Kind) || inNIC(s.Kind) {
		return nil
	}
	return strict.At("kind", "%w", lacks(s.Kind))
}

// impaired is a fault on one direction of a cable.
type impaired struct {
	f    *Fabric
	from topo.PortRef
	what cable.Impairment

	before  uint64 // packets through the delay line when a pure delay was applied
	final   uint64 // hits when it was healed
	flaw    error  // what it could not do as it should have
	applied bool
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
	if mtu := e.f.Plan().Link(e.from).MTU; cable.Holds(e.what.Model) && mtu > cable.LongestHeld {
		return fmt.Errorf("%s: packets of up to %d bytes can be held back, and the link's MTU is %d", e.from, cable.LongestHeld, mtu)
	}
	return nil
}

// prepare loads what the fault needs, so that applying it takes no time.
func (e *impaired) prepare() (err error) {
	if e.what.Model != nil && e.what.Stage == nil {
		e.what.Stage, err = e.f.inject.stage(e.from, e.what)
	}
	return err
}

func (e *impaired) apply() (err error) {
	if err := e.allowed(); err != nil {
		return err
	}
	if err := e.prepare(); err != nil {
		return err
	}
	if e.what.Stage != nil {
		err = e.what.Stage.Reset()
		if err == nil {
			e.hear()
		}
	} else {
		var s tc.Stats
		s, err = e.f.cables.DelayLine(e.from)
		e.before = s.Packets
	}
	if err != nil {
		return err
	}
	err = e.f.cables.Change(e.from, func(w cable.Wire) cable.Wire { return w.With(e.what) })
	if e.applied = err == nil; !e.applied {
		e.deafen()
	}
	return err
}

func (e *impaired) verify() error { return e.f.cables.Verify(e.from) }

// hits are the packets that the stage acted on, or for a pure delay those that the delay line
// has let go since.
func (e *impaired) hits() (uint64, error) {
	if e.healed {
		return e.final, e.flaw
	}
	n, err := e.counted()
	if err == nil && e.what.Stage != nil {
		err = e.what.Stage.Err()
	}
	return n, err
}

func (e *impaired) counted() (uint64, error) {
	if e.what.Stage != nil {
		c, err := e.what.Stage.Counts()
		return c.Hits, err
	}
	s, err := e.f.cables.DelayLine(e.from)
	return s.Packets - e.before, err
}

// heal takes the fault off and then counts, so that no packet is hit and not counted.
func (e *impaired) heal() error {
	if e.healed || !e.applied {
		return nil
	}
	if err := e.f.cables.Change(e.from, func(w cable.Wire) cable.Wire { return w.Without(e.what.ID) }); err != nil {
		return err
	}
	e.deafen()
	if e.what.Stage != nil {
		if err := e.what.Stage.Settle(); err != nil {
			return fmt.Errorf("%s: %w", e.from, err)
		}
	}
	n, err := e.counted()
	if err != nil {
		return err
	}
	if e.what.Stage != nil {
		e.flaw = e.what.Stage.Err()
	}
	e.final, e.healed = n, true
	return nil
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
