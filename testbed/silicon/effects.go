package silicon

import (
	"fmt"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// impairment is a fault as a wire's.
func (in *Injector) impairment(s *faults.Spec, from topo.PortRef) (Impairment, error) {
	imp := Impairment{ID: s.Name, Seed: faults.Seed(in.seed, s.Name, from.String())}
	p := float64(s.Probability)
	switch s.Kind {
	case faults.Loss:
		switch {
		case s.EveryNth > 0:
			imp.Model = NthLoss{N: uint64(s.EveryNth)}
		case s.GE != nil:
			imp.Model = BurstLoss{P: float64(s.GE.P), R: float64(s.GE.R), LossBad: float64(s.GE.LossBad), LossGood: float64(s.GE.LossGood)}
		default:
			imp.Model = RandomLoss{P: p}
		}
	case faults.Delay:
		imp.Delay = Delay{Delay: s.Delay, Jitter: s.Jitter, Distribution: s.Distribution}
	case faults.Reorder:
		if s.Window > 0 {
			if s.Window > 1<<16-1 {
				return imp, strict.At("window", "%d packets are more than %d", s.Window, 1<<16-1)
			}
			imp.Model = Overtaken{P: p, Gap: uint64(s.Gap), Window: uint16(s.Window)}
			break
		}
		imp.Model = Overtake{P: p, Gap: uint64(s.Gap)}
		imp.Delay = Delay{Delay: s.Delay}
	case faults.Duplicate:
		imp.Model = Duplicate{P: p}
	case faults.Corrupt:
		imp.Model = Corrupt{P: p}
	case faults.BitErrors:
		imp.Model = BitErrors{Rate: s.BER}
	case faults.MTUShrink:
		if whole := in.plan.Link(from).MTU; int(s.MTU) >= whole {
			return imp, fmt.Errorf("%s: the link takes no longer packets than the fault leaves it (its MTU is %d)", from, whole)
		}
		imp.Model = TooLong{MTU: int(s.MTU)}
	case faults.Unidirectional:
		imp.Model = Sever{}
	case faults.BlackHole:
		imp.Model = BlackHole{}
	default:
		return imp, lacks(s.Kind)
	}
	return imp, nil
}

func lacks(k faults.Kind) error {
	return fmt.Errorf("software NICs and switches have no fault of kind %q", k)
}

// has refuses faults that software nodes don't make.
func has(s *faults.Spec) error {
	switch s.Kind {
	case faults.Loss, faults.Delay, faults.Reorder, faults.Duplicate, faults.Corrupt, faults.BitErrors, faults.RateLimit, faults.MTUShrink, faults.LinkDown, faults.LinkFlap,
		faults.Unidirectional, faults.BlackHole, faults.Packets,
		faults.ECNOff, faults.ECNThresholds, faults.DSCPMap, faults.PFCOff, faults.PFCThresholds, faults.BufferAlpha, faults.BufferShrink, faults.WatchdogOff,
		faults.HashSeed, faults.StuckQueue, faults.CNPStarved, faults.RouteLate, faults.Reboot,
		faults.PFCStorm, faults.SlowDMA, faults.PCIeDowngrade, faults.MTTThrash, faults.NICReset, faults.QPKill, faults.AckDelay, faults.AckCoalesce,
		faults.CNPOff, faults.CNPCap, faults.DCQCNParams, faults.WrongGID:
		return nil
	}
	return strict.At("kind", "%w", lacks(s.Kind))
}

// impaired is a fault on one direction of a link.
type impaired struct {
	ref  topo.PortRef
	port *Port
	what Impairment
}

func (e *impaired) possible() error {
	if e.what.Model == nil {
		return nil
	}
	if err := e.what.Model.Check(); err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	return nil
}

func (e *impaired) allowed() error { return nil } // the wire says
func (e *impaired) claim()         {}
func (e *impaired) release()       {}
func (e *impaired) ports() []*Port { return []*Port{e.port} }

func (e *impaired) apply(p *Port) error {
	if err := p.Wire.Add(e.what); err != nil {
		return fmt.Errorf("%s: %w", e.ref, err)
	}
	return nil
}

func (e *impaired) verify(p *Port) error {
	switch got, _, _, there := p.Wire.Find(e.what.ID); {
	case !there:
		return fmt.Errorf("%s: %s is not on the link", e.ref, e.what.ID)
	case got != e.what:
		return fmt.Errorf("%s: on the link is %+v, not %+v", e.ref, got, e.what)
	}
	return nil
}

func (e *impaired) hits(p *Port) uint64 {
	_, _, hits, _ := p.Wire.Find(e.what.ID)
	return hits
}

func (e *impaired) heal(p *Port)        { p.Wire.Remove(e.what.ID) }
func (e *impaired) clean(p *Port) error { return p.clean(e.what.ID) }

// slow is a link that carries less in one direction: its sender's line is slower.
type slow struct {
	in   *Injector
	name string
	ref  topo.PortRef
	port *Port
	rate topo.Rate

	full   uint64
	before uint64 // frames through the wire when it was applied
}

func (e *slow) possible() error {
	if full := e.in.plan.Link(e.ref).Rate; e.rate >= full {
		return fmt.Errorf("%s: the link carries no more than the fault leaves it (%v)", e.ref, full)
	}
	return nil
}

func (e *slow) number() int { return e.in.plan.PortNumber(e.ref) }

func (e *slow) allowed() error {
	if by, taken := e.in.slowed[e.number()]; taken {
		return fmt.Errorf("%s: its rate is limited by fault %s already", e.ref, by)
	}
	return nil
}

func (e *slow) claim()         { e.in.slowed[e.number()] = e.name }
func (e *slow) release()       { delete(e.in.slowed, e.number()) }
func (e *slow) ports() []*Port { return []*Port{e.port} }

func (e *slow) apply(p *Port) error {
	e.full, e.before = p.end.Rate(), p.Wire.Passed()
	p.end.SetRate(uint64(e.rate))
	return nil
}

func (e *slow) verify(p *Port) error { return e.has(p, uint64(e.rate)) }
func (e *slow) clean(p *Port) error  { return e.has(p, e.full) }

func (e *slow) has(p *Port, want uint64) error {
	if r := p.end.Rate(); r != want {
		return fmt.Errorf("%s: its line's rate is %v, not %v", e.ref, topo.Rate(r), topo.Rate(want))
	}
	return nil
}

// hits are the packets that went through the slower line.
func (e *slow) hits(p *Port) uint64 { return p.Wire.Passed() - e.before }
func (e *slow) heal(p *Port)        { p.end.SetRate(e.full) }
