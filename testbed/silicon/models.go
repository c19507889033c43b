package silicon

import (
	"fmt"
	"math"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
)

// Model is what decides about single packets. Models are values that can be compared.
type Model interface {
	// Check says what of the parameters can't be.
	Check() error
	model() model
}

// verdict is what happens to a packet.
type verdict uint8

const (
	leave verdict = iota
	lose
	damage
	double
	overtake
	shelve
)

// model decides with what it needs at hand.
type model struct {
	order  int // packets are lost before they are changed, and changed before they are copied
	decide func(*stage, *link.Frame) verdict
}

func (m *model) is() bool { return m.decide != nil }

func order(s *stage) int { return s.model.order }

func (s *stage) decide(f *link.Frame) verdict { return s.model.decide(s, f) }

// RandomLoss drops each packet with a probability, independently.
type RandomLoss struct{ P float64 }

// NthLoss drops every nth packet exactly: the nth, the 2nth and so on since it was put on.
type NthLoss struct{ N uint64 }

// BurstLoss is the Gilbert-Elliott model: a packet is lost with the probability of the state that the wire is
// in, and then the state may change. It starts in the good state.
type BurstLoss struct {
	P, R              float64 // to the bad state, and back
	LossBad, LossGood float64
}

// Corrupt flips one bit of a share of the packets, somewhere behind the UDP header, where RoCE's own
// checks must catch it.
type Corrupt struct{ P float64 }

// Duplicate sends a copy of a share of the packets along with them.
type Duplicate struct{ P float64 }

// Overtake lets some packets past those that the impairment's delay holds: each with probability P, and no
// sooner than Gap packets after the last (0 or 1: any).
type Overtake struct {
	P   float64
	Gap uint64
}

// Overtaken lets Window packets past some: each with probability P, and no sooner than Gap packets after the last (0 or 1: any). All
// packets that go on count, whosever they are.
type Overtaken struct {
	P      float64
	Gap    uint64
	Window uint16
}

func (m RandomLoss) model() model {
	p := threshold(m.P)
	return model{1, func(s *stage, _ *link.Frame) verdict { return s.when(drawHit, p, lose) }}
}

func (m NthLoss) model() model {
	return model{1, func(s *stage, _ *link.Frame) verdict {
		if s.seen%m.N == 0 {
			return lose
		}
		return leave
	}}
}

func (m BurstLoss) model() model {
	bad, back, lossBad, lossGood := threshold(m.P), threshold(m.R), threshold(m.LossBad), threshold(m.LossGood)
	return model{1, func(s *stage, _ *link.Frame) verdict {
		if s.state == 0 {
			if s.draw(drawTransition) < bad {
				s.state = 1
			}
			return s.when(drawHit, lossGood, lose)
		}
		if s.draw(drawTransition) < back {
			s.state = 0
		}
		return s.when(drawHit, lossBad, lose)
	}}
}

func (m Corrupt) model() model {
	p := threshold(m.P)
	return model{2, func(s *stage, _ *link.Frame) verdict { return s.when(drawHit, p, damage) }}
}

func (m Duplicate) model() model {
	p := threshold(m.P)
	return model{3, func(s *stage, _ *link.Frame) verdict { return s.when(drawHit, p, double) }}
}

func (m Overtake) model() model { return spaced(m.P, m.Gap, overtake) }

func (m Overtaken) model() model { return spaced(m.P, m.Gap, shelve) }

// spaced is a verdict by lot, and no sooner than gap packets after the last.
func spaced(share float64, gap uint64, what verdict) model {
	p := threshold(share)
	return model{4, func(s *stage, _ *link.Frame) verdict {
		if gap > 1 {
			if s.state++; s.state < gap {
				return leave
			}
		}
		v := s.when(drawHit, p, what)
		if v == what {
			s.state = 0
		}
		return v
	}}
}

// Check implements Model.
func (m RandomLoss) Check() error { return checkShare("loss", m.P) }

// Check implements Model.
func (m NthLoss) Check() error {
	if m.N == 0 {
		return fmt.Errorf("every %d: not above 0", m.N)
	}
	return nil
}

// Check implements Model.
func (m BurstLoss) Check() error {
	if err := checkShare("p", m.P); err != nil {
		return err
	}
	if err := checkShare("r", m.R); err != nil {
		return err
	}
	if !(m.LossBad >= 0 && m.LossBad <= 1 && m.LossGood >= 0 && m.LossGood <= 1) || m.LossBad+m.LossGood == 0 {
		return fmt.Errorf("losses %v and %v are not between 0 and 1, or both 0", m.LossBad, m.LossGood)
	}
	return nil
}

// Check implements Model.
func (m Corrupt) Check() error { return checkShare("corruption", m.P) }

// Check implements Model.
func (m Duplicate) Check() error { return checkShare("duplication", m.P) }

// Check implements Model.
func (m Overtake) Check() error { return checkShare("reordering", m.P) }

// Check implements Model.
func (m Overtaken) Check() error {
	switch {
	case m.Window == 0:
		return fmt.Errorf("no packet would overtake: the window must be at least 1")
	case m.P >= 1 && m.Gap <= 1:
		return fmt.Errorf("with every packet held back none is left that could overtake: give a probability below 1, or a gap")
	}
	return checkShare("reordering", m.P)
}

func checkShare(name string, p float64) error {
	if !(p > 0 && p <= 1) {
		return fmt.Errorf("%s %v is not above 0 and at most 1", name, p)
	}
	return nil
}

// The purposes of random numbers, so that those of one packet are independent. They, and draw, are as on the
// kernel backend's cables: a fault of one seed hits the same ordinals there.
const (
	drawHit = iota
	drawTransition
	drawBit
	drawJitter
	drawJitter2
)

// draw is a random number of the packet that the stage looks at.
func (s *stage) draw(purpose uint64) uint64 { return draw(s.Seed, purpose, s.seen-1) }

// draw is a function of seed, purpose and a packet's ordinal from 0: SplitMix64 (Steele, Lea and Flood 2014,
// figure 15).
func draw(seed, purpose, ordinal uint64) uint64 {
	const gamma, mixA, mixB = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	z := seed + purpose*mixA + (ordinal+1)*gamma
	z = (z ^ z>>30) * mixA
	z = (z ^ z>>27) * mixB
	return z ^ z>>31
}

// threshold is the number below which a draw means yes: p × 2^64.
func threshold(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(math.Ldexp(p, 64))
}

// when is the verdict where the draw says so. A probability of 1 is a threshold that one draw in 2^64 misses: it is
// taken as always.
func (s *stage) when(purpose, below uint64, v verdict) verdict {
	if below == math.MaxUint64 || s.draw(purpose) < below {
		return v
	}
	return leave
}

// late is by how much the stage delays the packet that it looks at.
func (s *stage) late() time.Duration {
	d := &s.Delay
	if d.Jitter == 0 {
		return d.Delay
	}
	return max(d.Delay+time.Duration(math.Round(float64(d.Jitter)*s.deviate(d.Distribution))), 0)
}

// deviate draws from a distribution of mean 0: uniform over −1 to 1, the others of standard deviation 1, as
// netem's tables have them (iproute2, netem/normal.c, pareto.c with a = 3, paretonormal.c).
func (s *stage) deviate(distribution string) float64 {
	u := s.unit(drawJitter)
	switch distribution {
	case "normal":
		return normal(u, s.unit(drawJitter2))
	case "pareto":
		return pareto(u)
	case "paretonormal": // at equal quantiles
		return 0.25*math.Sqrt2*math.Erfinv(2*u-1) + 0.75*pareto(u)
	}
	return 2*u - 1
}

// unit is a draw above 0 and below 1.
func (s *stage) unit(purpose uint64) float64 {
	return (float64(s.draw(purpose)>>11) + 0.5) / (1 << 53)
}

// normal is Box and Muller's.
func normal(u, v float64) float64 { return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v) }

// pareto of a = 3 has mean 3/2 and variance 3/4.
func pareto(u float64) float64 { return (math.Pow(1-u, -1.0/3) - 1.5) / math.Sqrt(0.75) }
