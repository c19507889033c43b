package faults

import (
	"errors"
	"slices"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Kinds lists the fault kinds.
func Kinds() []Kind {
	return []Kind{Loss, Delay, Reorder, Duplicate, Corrupt, RateLimit, LinkDown, LinkFlap}
}

// Distributions lists the jitter distributions; the empty one is uniform.
func Distributions() []string { return []string{"uniform", "normal", "pareto", "paretonormal"} }

// uses says which keys a kind may have, besides those that every fault has.
var uses = map[Kind][]string{
	Loss:      {"probability", "every_nth", "gilbert_elliott"},
	Delay:     {"delay", "jitter", "distribution"},
	Reorder:   {"probability", "delay", "gap"},
	Duplicate: {"probability"},
	Corrupt:   {"probability"},
	RateLimit: {"rate"},
	LinkDown:  {},
	LinkFlap:  {"period", "down"},
}

// Validate says what is wrong with the fault on its own, whatever the topology. Every
// problem is a strict.PathError whose path is the key; several are joined.
func (s *Spec) Validate() error {
	v := &validator{spec: s}
	if s.Name == "" {
		v.wrong("name", "a fault needs a name")
	}
	if len(s.At) == 0 {
		v.wrong("at", "says where the fault strikes: ports (\"leaf1:eth0\", \"leaf*:*\"), links (\"leaf1-spine2\") or nodes")
	}
	for _, sel := range s.At {
		if err := checkPattern(sel); err != nil {
			v.wrong("at", "%w", err)
		}
	}
	switch s.Direction {
	case "", Egress, Ingress, Both:
	default:
		v.wrong("direction", "%q is no direction%s", s.Direction, strict.DidYouMean(string(s.Direction), []string{string(Egress), string(Ingress), string(Both)}))
	}
	if allowed, ok := uses[s.Kind]; ok {
		v.unused(allowed)
		v.kind()
	} else {
		v.wrong("kind", "%q is no kind of fault%s", s.Kind, strict.DidYouMean(string(s.Kind), kindNames()))
	}
	if err := s.Schedule.validate(); err != nil {
		v.errs = append(v.errs, strict.Under("schedule", err))
	}
	return errors.Join(v.errs...)
}

type validator struct {
	spec *Spec
	errs []error
}

func (v *validator) wrong(key, format string, args ...any) {
	v.errs = append(v.errs, strict.At(key, format, args...))
}

// unused refuses keys that the kind doesn't use.
func (v *validator) unused(allowed []string) {
	s := v.spec
	for _, k := range []struct {
		key string
		set bool
	}{
		{"probability", s.Probability != 0},
		{"every_nth", s.EveryNth != 0},
		{"gilbert_elliott", s.GE != nil},
		{"delay", s.Delay != 0},
		{"jitter", s.Jitter != 0},
		{"distribution", s.Distribution != ""},
		{"gap", s.Gap != 0},
		{"rate", s.Rate != 0},
		{"period", s.Period != 0},
		{"down", s.Down != 0},
	} {
		if k.set && !slices.Contains(allowed, k.key) {
			v.wrong(k.key, "a %s fault doesn't use it", s.Kind)
		}
	}
}

func (v *validator) kind() {
	s := v.spec
	switch s.Kind {
	case Loss:
		v.loss()
	case Delay:
		if v.positive("delay", s.Delay); s.Jitter < 0 || s.Jitter > s.Delay {
			v.wrong("jitter", "must be between 0 and the delay (%v)", s.Delay)
		}
		if s.Distribution != "" {
			if !slices.Contains(Distributions(), s.Distribution) {
				v.wrong("distribution", "%q is no distribution%s", s.Distribution, strict.DidYouMean(s.Distribution, Distributions()))
			} else if s.Jitter == 0 {
				v.wrong("distribution", "needs a jitter")
			}
		}
	case Reorder:
		v.positive("delay", s.Delay)
		v.share("probability", s.Probability)
		if s.Gap < 0 {
			v.wrong("gap", "must not be negative")
		}
	case Duplicate, Corrupt:
		v.share("probability", s.Probability)
	case RateLimit:
		if s.Rate == 0 {
			v.wrong("rate", "a rate fault needs what the link still carries, such as 10Gbps (for nothing at all there is down)")
		}
	case LinkDown:
		v.bothWays()
	case LinkFlap:
		v.bothWays()
		if v.positive("period", s.Period) && s.Period < shortest {
			v.wrong("period", "must be at least %v: no link flaps faster", shortest)
		}
		if v.positive("down", s.Down); s.Period > 0 && s.Down >= s.Period {
			v.wrong("down", "must be shorter than the period (%v)", s.Period)
		}
	}
}

func (v *validator) loss() {
	s := v.spec
	models := 0
	for _, set := range []bool{s.Probability != 0, s.EveryNth != 0, s.GE != nil} {
		if set {
			models++
		}
	}
	switch {
	case models == 0:
		v.wrong("probability", "a loss fault needs one of probability, every_nth and gilbert_elliott")
	case models > 1:
		v.wrong("probability", "a loss fault takes only one of probability, every_nth and gilbert_elliott")
	}
	if s.Probability != 0 {
		v.share("probability", s.Probability)
	}
	if s.EveryNth < 0 {
		v.wrong("every_nth", "must be at least 1 (every packet)")
	}
	if ge := s.GE; ge != nil {
		v.share("gilbert_elliott.p", ge.P)
		v.share("gilbert_elliott.r", ge.R)
		for _, f := range []struct {
			key   string
			share topo.Fraction
		}{{"gilbert_elliott.loss_bad", ge.LossBad}, {"gilbert_elliott.loss_good", ge.LossGood}} {
			if !(f.share >= 0 && f.share <= 1) {
				v.wrong(f.key, "must be between 0%% and 100%%")
			}
		}
		if ge.LossBad == 0 && ge.LossGood == 0 {
			v.wrong("gilbert_elliott.loss_bad", "nothing is lost in either state")
		}
	}
}

func (v *validator) share(key string, f topo.Fraction) {
	if !(f > 0 && f <= 1) {
		v.wrong(key, "must be above 0%% and at most 100%%")
	}
}

// shortest is the least period with which a fault may come back, fabric time.
const shortest = time.Microsecond

// positive refuses times that are not above 0, and says whether this one is.
func (v *validator) positive(key string, d time.Duration) bool {
	if d <= 0 {
		v.wrong(key, "a %s fault needs a time above 0, such as 10us", v.spec.Kind)
	}
	return d > 0
}

func (v *validator) bothWays() {
	if d := v.spec.Direction; d == Egress || d == Ingress {
		v.wrong("direction", "a link goes down in both directions (for one direction use loss with probability 100%%)")
	}
}

func (s Schedule) validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	if s.At < 0 {
		wrong("at", "must not be negative")
	}
	if s.For < 0 {
		wrong("for", "must not be negative")
	}
	switch {
	case s.Every < 0:
		wrong("every", "must not be negative")
	case s.Every > 0 && s.Every < shortest:
		wrong("every", "must be at least %v: no fault comes and goes faster", shortest)
	case s.Every > 0 && s.For == 0:
		wrong("for", "a fault that comes back needs to say how long it stays")
	case s.Every > 0 && s.For >= s.Every:
		wrong("every", "must be longer than for (%v), or the fault never heals in between", s.For)
	}
	if s.Count < 0 {
		wrong("count", "must not be negative")
	}
	if s.Count > 0 && s.Every == 0 {
		wrong("count", "needs every")
	}
	return errors.Join(errs...)
}

func kindNames() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return names
}
