package asic

import (
	"math/bits"
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Settings are those in force.
func (s *Switch) Settings() Settings { return s.settings }

// Apply validates settings and puts them in force, from the next frame on. With an error nothing
// changes. Frames that wait stay where they are, even where less room is left than they take.
func (s *Switch) Apply(n Settings) error {
	if err := n.Validate(s.config); err != nil {
		return &SettingsError{s.name, err}
	}
	now := s.loop.Now()
	s.settings = n
	s.delayRoutes()
	var known []*table
	for i := range s.ports {
		p, ps := &s.ports[i], n.PortSettings(i)
		t := ps.compile(&s.config[i])
		if k := slices.IndexFunc(known, func(k *table) bool { return *k == *t }); k >= 0 {
			t = known[k] // one for all that are alike stays in the cache
		} else {
			known = append(known, t)
		}
		p.table = t
		p.pauser.Quanta, p.pauser.Global = ps.PFC.Quanta, ps.PFC.SendPause
	}
	s.memory.shared = n.Shared(s.config)
	s.memory.recount()
	s.spread.mode, s.spread.gap, s.spread.priorities = n.Balance.Mode, n.Balance.FlowletGap, n.Balance.Priorities
	if n.Balance.Mode == ECMP {
		s.spread.priorities = 0
	}
	s.hashSeed = s.ownSeed
	if n.Balance.HashSeed != nil {
		s.hashSeed = *n.Balance.HashSeed
	}
	s.rightSeed = n.Balance.RightSeed
	for i := range s.ports {
		s.ports[i].reconsider(now)
	}
	s.resume(now)
	if n.Sample > 0 && !s.sampler.timer.Armed() {
		s.loop.Arm(&s.sampler.timer, now.Add(n.Sample))
	}
	return nil
}

// reconsider brings a port in line with new settings.
func (p *port) reconsider(now loop.Time) {
	p.watchBefore(now)
	var wanted uint8
	for i := range p.groups {
		if p.groups[i].xoff {
			wanted |= p.table.sends[i]
		}
	}
	p.unpause(now, p.pauser.Paused()&^wanted)
	p.pause(now, wanted)
	cfg := &p.sw.settings.Watchdog
	for rest := p.watch.storms; rest != 0 && cfg.Detect == 0; rest &= rest - 1 {
		p.calm(now, uint8(bits.TrailingZeros8(rest)))
	}
	p.regate()
	p.watchAfter(now)
	p.serve(now)
}
