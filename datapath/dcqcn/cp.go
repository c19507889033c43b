package dcqcn

import "errors"

// Marking is the congestion point's curve, on the bytes that wait in an egress queue: no mark
// up to Kmin, a probability that rises linearly to Pmax at Kmax, every packet above.
type Marking struct {
	Kmin Bytes    `yaml:"kmin"`
	Kmax Bytes    `yaml:"kmax"`
	Pmax Fraction `yaml:"pmax"`
}

// Validate checks the curve and returns a ParamError for each value that can't be, joined.
func (m Marking) Validate() error {
	var wrong []error
	if m.Kmin > m.Kmax {
		wrong = append(wrong, &ParamError{"kmin", m.Kmin, "it must not exceed kmax " + m.Kmax.String()})
	}
	if !(m.Pmax >= 0 && m.Pmax <= 1) {
		wrong = append(wrong, &ParamError{"pmax", m.Pmax, "give a share from 0% to 100%"})
	}
	return errors.Join(wrong...)
}

// Probability is that of a mark with so many bytes waiting.
func (m Marking) Probability(queue Bytes) Fraction {
	switch {
	case queue <= m.Kmin:
		return 0
	case queue > m.Kmax:
		return 1
	}
	return m.Pmax * Fraction(queue-m.Kmin) / Fraction(m.Kmax-m.Kmin)
}

// Source gives 64 random bits; the sources of math/rand/v2 do.
type Source interface{ Uint64() uint64 }

// CP marks packets of one queue. It is the curve and where its randomness comes from.
type CP struct {
	Marking
	Random Source
}

// Mark says whether a packet that meets so many waiting bytes is marked. Randomness is drawn
// only where the curve neither forbids nor demands a mark.
func (c *CP) Mark(queue Bytes) bool {
	p := c.Probability(queue)
	if p <= 0 || p >= 1 {
		return p >= 1
	}
	return Fraction(c.Random.Uint64()>>11)*0x1p-53 < p
}
