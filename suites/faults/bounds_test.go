package faults_test

import (
	"fmt"
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// risk is how often a right implementation would fall out of the bounds, over all seeds: they are of 99.9 %, two-sided. The seed is fixed, so a row that
// passes passes always.
const risk = 0.001

// atMost is the probability of k successes or fewer in n trials.
func atMost(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(choose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}

// choose is the logarithm of n over k.
func choose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// shares are the shares that k successes of n trials leave possible: Clopper and Pearson's interval (Biometrika 26, 1934).
func shares(k, n int, alpha float64) (low, high float64) {
	solve := func(below func(p float64) bool) float64 {
		a, b := 0.0, 1.0
		for range 60 {
			if m := (a + b) / 2; below(m) {
				a = m
			} else {
				b = m
			}
		}
		return (a + b) / 2
	}
	if k > 0 {
		low = solve(func(p float64) bool { return 1-atMost(k-1, n, p) < alpha/2 })
	}
	high = 1
	if k < n {
		high = solve(func(p float64) bool { return atMost(k, n, p) >= alpha/2 })
	}
	return low, high
}

// expectShare fails unless k of n are what a share p may come to.
func expectShare(what string, k, n int, p float64) {
	GinkgoHelper()
	Expect(n).To(BeNumerically(">", 0), what)
	low, high := shares(k, n, risk)
	if p < low || p > high {
		Fail(fmt.Sprintf("%s: %d of %d, so that the share is from %.5f to %.5f, 99.9 times in 100: it was to be %.5f", what, k, n, low, high, p))
	}
}

var _ = Describe("the bounds", func() {
	It("are the binomial distribution's, and Clopper and Pearson's", func() {
		Expect(atMost(2, 10, 0.5)).To(BeNumerically("~", 56.0/1024, 1e-12))
		Expect(atMost(0, 20, 0.1)).To(BeNumerically("~", math.Pow(0.9, 20), 1e-12))
		Expect(atMost(50, 6400, 0.01)).To(And(BeNumerically(">", 0.02), BeNumerically("<", 0.06)))
		for _, known := range []struct {
			k, n      int
			low, high float64
		}{{0, 10, 0, 0.30850}, {5, 10, 0.18709, 0.81291}, {10, 10, 0.69150, 1}, {1, 100, 0.00025, 0.05446}} {
			low, high := shares(known.k, known.n, 0.05)
			Expect(low).To(BeNumerically("~", known.low, 1e-5), "%+v", known)
			Expect(high).To(BeNumerically("~", known.high, 1e-5), "%+v", known)
		}
	})
})
