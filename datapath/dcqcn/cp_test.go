package dcqcn

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// counted counts what is drawn.
type counted struct {
	Source
	n int
}

func (c *counted) Uint64() uint64 { c.n++; return c.Source.Uint64() }

// bounds are what a binomial count of n trials stays within, 4.9 standard deviations: one
// in a million leaves them by chance.
func bounds(n int, p float64) (low, high float64) {
	mean, dev := float64(n)*p, 4.9*math.Sqrt(float64(n)*p*(1-p))
	return mean - dev, mean + dev
}

func TestMarksLieWithinBinomialBoundsOverTheWholeRange(t *testing.T) {
	const n = 20_000
	for _, profile := range []string{"paper", "ns3-rdma", "hpcc"} {
		m := named(t, profile).Marking
		source := &counted{Source: rand.NewPCG(7, 11)}
		c := CP{m, source}
		for _, q := range []Bytes{0, m.Kmin - 1, m.Kmin, m.Kmin + 1, m.Kmin + (m.Kmax-m.Kmin)/10, (m.Kmin + m.Kmax) / 2,
			m.Kmax - (m.Kmax-m.Kmin)/10, m.Kmax - 1, m.Kmax, m.Kmax + 1, 10 * m.Kmax} {
			want := float64(m.Pmax) * (float64(q) - float64(m.Kmin)) / float64(m.Kmax-m.Kmin)
			switch {
			case q <= m.Kmin:
				want = 0
			case q > m.Kmax:
				want = 1
			}
			if got := float64(c.Probability(q)); math.Abs(got-want) > 1e-15 {
				t.Errorf("%s: %v waiting: probability %v, want %v", profile, q, got, want)
			}
			marks := 0
			source.n = 0
			for range n {
				if c.Mark(q) {
					marks++
				}
			}
			if low, high := bounds(n, want); float64(marks) < low || float64(marks) > high {
				t.Errorf("%s: %v waiting: %d of %d marked, want %.0f to %.0f", profile, q, marks, n, low, high)
			}
			if certain := want == 0 || want == 1; certain != (source.n == 0) {
				t.Errorf("%s: %v waiting: probability %v drew %d times", profile, q, want, source.n)
			}
		}
	}
}

// Marks are independent: how often two in a row are marked is the square of how often one is.
func TestMarksAreIndependent(t *testing.T) {
	c := CP{Marking{0, 100, 1}, rand.NewPCG(3, 5)}
	const n = 100_000
	pairs, last := 0, false
	for range n {
		m := c.Mark(30)
		if m && last {
			pairs++
		}
		last = m
	}
	// Neighbouring pairs share a packet, which widens the bounds by less than sqrt(1+2p).
	low, high := bounds(n, 0.09)
	mean := (low + high) / 2
	if f := math.Sqrt(1 + 2*0.3); float64(pairs) < mean-(mean-low)*f || float64(pairs) > mean+(high-mean)*f {
		t.Errorf("%d pairs in %d, want about %.0f", pairs, n, mean)
	}
}

func TestAStepMarksAllAbove(t *testing.T) {
	c := CP{Marking{100, 100, 0.5}, nil}
	if c.Mark(100) || !c.Mark(101) {
		t.Error("kmin = kmax is no step")
	}
}

func TestACurveThatCannotBeIsRefused(t *testing.T) {
	for name, m := range map[string]Marking{"kmin": {2, 1, 0.5}, "pmax": {1, 2, 1.5}} {
		var wrong *ParamError
		if err := m.Validate(); !errors.As(err, &wrong) || wrong.Param != name {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if (Marking{1, 2, Fraction(math.NaN())}).Validate() == nil {
		t.Error("a probability that is no number was taken")
	}
}
