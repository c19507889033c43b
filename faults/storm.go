package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Storm draws faults at random, all under the run's seed and the storm's name: when each begins, what it is, which one of the targets that
// At selects it strikes, how bad it is and how long it lasts. They may all miss.
type Storm struct {
	Kinds    []Kind        `yaml:"kinds"`           // those that are drawn from, alike; default StormKinds
	Rate     PerSecond     `yaml:"rate,required"`   // faults a second of fabric time, on average
	Duration time.Duration `yaml:"duration"`        // of the storm; every fault is healed by its end
	Each     time.Duration `yaml:"each"`            // how long a fault lasts, on average; default Duration/10
	Budget   int           `yaml:"budget,nonzero"`  // so many faults at most; default 1000
	AtOnce   int           `yaml:"at_once,nonzero"` // so many in force at the same time at most; default no limit
}

// StormKinds are what a storm draws from where it doesn't say.
func StormKinds() []Kind {
	return []Kind{Loss, Delay, Reorder, Duplicate, Corrupt, BitErrors, RateLimit, LinkDown}
}

// draws has what a storm can make, and how bad: ranges are wide, small values as likely as large ones.
var draws = map[Kind]func(*Spec, *dice, *topo.Topology){
	Loss:      func(s *Spec, d *dice, _ *topo.Topology) { s.Probability = share(d, 1e-3, 0.1) },
	Duplicate: func(s *Spec, d *dice, _ *topo.Topology) { s.Probability = share(d, 1e-3, 0.1) },
	Corrupt:   func(s *Spec, d *dice, _ *topo.Topology) { s.Probability = share(d, 1e-3, 0.1) },
	BitErrors: func(s *Spec, d *dice, _ *topo.Topology) { s.BER = BitErrorRate(d.between(1e-9, 1e-6)) },
	Delay: func(s *Spec, d *dice, _ *topo.Topology) {
		s.Delay = span(d, time.Microsecond, 100*time.Microsecond)
		s.Jitter = time.Duration(float64(s.Delay) * d.unit())
	},
	Reorder: func(s *Spec, d *dice, _ *topo.Topology) {
		s.Probability, s.Delay = share(d, 1e-3, 0.1), span(d, time.Microsecond, 50*time.Microsecond)
	},
	RateLimit: func(s *Spec, d *dice, t *topo.Topology) {
		rate := 100 * topo.Gbps
		for i := range t.Links {
			rate = min(rate, t.Links[i].Rate)
		}
		s.Rate = max(topo.Rate(float64(rate)*d.between(0.05, 0.8)), 1)
	},
	LinkDown:       func(*Spec, *dice, *topo.Topology) {},
	BlackHole:      func(*Spec, *dice, *topo.Topology) {},
	Unidirectional: func(s *Spec, d *dice, _ *topo.Topology) { s.Direction = []Direction{Egress, Ingress}[d.upTo(2)] },
	MTUShrink:      func(s *Spec, d *dice, _ *topo.Topology) { s.MTU = topo.Bytes(d.between(200, 4000)) },
	ECNOff:         func(*Spec, *dice, *topo.Topology) {},
	PFCOff:         func(*Spec, *dice, *topo.Topology) {},
	BufferAlpha:    func(s *Spec, d *dice, _ *topo.Topology) { s.Alpha = topo.Factor(d.between(1.0/64, 8)) },
	WatchdogOff:    func(*Spec, *dice, *topo.Topology) {},
	StuckQueue:     func(s *Spec, d *dice, _ *topo.Topology) { s.Priorities = Priorities{uint8(d.upTo(8))} },
	Reboot:         func(s *Spec, d *dice, _ *topo.Topology) { s.Down = span(d, 10*time.Microsecond, time.Millisecond) },
	PFCStorm:       func(s *Spec, d *dice, _ *topo.Topology) { s.Duty = share(d, 0.1, 1) },
	SlowDMA:        func(s *Spec, d *dice, _ *topo.Topology) { s.Rate = topo.Rate(d.between(1e9, 100e9)) },
	MTTThrash:      func(s *Spec, d *dice, _ *topo.Topology) { s.Entries = 1 + d.upTo(64) },
	RNR:            func(*Spec, *dice, *topo.Topology) {},
	AckDelay:       func(s *Spec, d *dice, _ *topo.Topology) { s.Delay = span(d, time.Microsecond, 200*time.Microsecond) },
	CNPOff:         func(*Spec, *dice, *topo.Topology) {},
	ProcessPause:   func(*Spec, *dice, *topo.Topology) {},
	SlowClock:      func(s *Spec, d *dice, _ *topo.Topology) { s.Speed = share(d, 0.5, 0.99) },
	GPUStraggler:   func(s *Spec, d *dice, _ *topo.Topology) { s.Delay = span(d, time.Microsecond, 100*time.Microsecond) },
}

func share(d *dice, a, b float64) topo.Fraction { return topo.Fraction(d.between(a, b)) }

func span(d *dice, a, b time.Duration) time.Duration {
	return time.Duration(d.between(float64(a), float64(b))).Round(10 * time.Nanosecond)
}

func (s *Storm) kinds() []Kind {
	if len(s.Kinds) == 0 {
		return StormKinds()
	}
	return s.Kinds
}

func (s *Storm) validate(in *Spec) error {
	var errs []error
	wrong := func(key, format string, args ...any) { errs = append(errs, strict.At(key, format, args...)) }
	for i, k := range s.Kinds {
		at := fmt.Sprintf("kinds[%d]", i)
		switch d := DefOf(k); {
		case d == nil:
			errs = append(errs, strict.At(at, "%w", errors.Unwrap(k.unknown())))
		case draws[k] == nil:
			wrong(at, "a storm draws no %s: give it as a fault of its own", k)
		case in.Direction != "" && d.Target != TargetDirection || in.OneWay && d.Target != TargetDirection:
			wrong(at, "a %s strikes no direction of a link, and the storm has one", k)
		}
	}
	if s.Rate <= 0 {
		wrong("rate", "must be above 0, such as 5/ms")
	}
	if s.Duration < 10*shortest {
		wrong("duration", "must be at least %v", 10*shortest)
	}
	if s.Each < 0 || s.Each > s.Duration {
		wrong("each", "must be at most the storm's duration")
	}
	if n := float64(s.Rate) * s.Duration.Seconds(); s.Budget == 0 && n > maxMade {
		wrong("rate", "that would be some %.0f faults: give a budget of at most %d", n, maxMade)
	}
	if s.Budget < 0 || s.Budget > maxMade {
		wrong("budget", "must be from 1 to %d", maxMade)
	}
	if s.AtOnce < 0 {
		wrong("at_once", "must be at least 1")
	}
	if in.Random != 0 {
		errs = append(errs, strict.At("", "a storm takes one target for each of its faults: random has no meaning"))
	}
	return errors.Join(errs...)
}

// tries is how often a fault that can't be beside those in force is drawn anew, before the storm goes on without it.
const tries = 16

// storm draws the faults, in the order in which they begin.
func (s *Spec) storm(scope Scope) ([]Spec, error) {
	st, kinds := s.Storm, s.Storm.kinds()
	d := &dice{seed: Seed(scope.Seed, "storm", s.Name)}
	targets := map[Kind][]Target{}
	for i, k := range kinds {
		all, err := Aim(&Spec{Name: s.Name, Kind: k, At: s.At, Direction: s.Direction, OneWay: s.OneWay}, scope)
		if err != nil {
			return nil, strict.Under(fmt.Sprintf("storm.kinds[%d]", i), err)
		}
		targets[k] = all
	}
	each := cmp.Or(st.Each, st.Duration/10)
	budget := cmp.Or(st.Budget, 1000)
	var out []Spec
	var open []placed // begin before the present one, in force or over
	for at := 0.0; len(out) < budget; {
		at += d.exponential() / float64(st.Rate) * 1e9
		if at >= float64(st.Duration-shortest) {
			break
		}
		start := time.Duration(at)
		open = slices.DeleteFunc(open, func(p placed) bool { return p.end <= start })
		if st.AtOnce > 0 && len(open) >= st.AtOnce {
			continue
		}
		for range tries {
			k := kinds[d.upTo(len(kinds))]
			t := targets[k][d.upTo(len(targets[k]))]
			f := t.Spec(Spec{Kind: k, MayMiss: true})
			draws[k](&f, d, scope.Topology)
			length := min(max(time.Duration(float64(each)*d.exponential()), shortest), st.Duration-start)
			if f.Down > 0 { // it comes back by itself, within the storm
				f.Down = min(f.Down, length)
			}
			if slices.ContainsFunc(open, func(p placed) bool { return p.refuses(k, t) }) {
				continue
			}
			f.Name = fmt.Sprintf("%s/%d", s.Name, len(out)+1)
			f.Schedule = Schedule{At: start + s.Schedule.At, For: length, When: s.Schedule.When}
			open = append(open, placed{k, t, start + length})
			out = append(out, f)
			break
		}
	}
	return out, nil
}

// placed is a fault of a storm that is in force.
type placed struct {
	kind   Kind
	target Target
	end    time.Duration
}

func (p placed) refuses(k Kind, t Target) bool {
	return p.target.Overlaps(t) && Compose(p.kind, k) != nil
}
