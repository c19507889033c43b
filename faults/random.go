package faults

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Seed is the source of randomness for a purpose: the run's seed, and words that say what for.
func Seed(seed uint64, words ...string) uint64 {
	h := sha256.New()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	for i, w := range words {
		if i > 0 {
			h.Write([]byte{0})
		}
		h.Write([]byte(w))
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// Draw is a random number: a function of seed, purpose and ordinal (SplitMix64: Steele, Lea and Flood 2014, figure 15).
// Backends draw for packets in the same way.
func Draw(seed, purpose, ordinal uint64) uint64 {
	const gamma, mixA, mixB = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	z := seed + purpose*mixA + (ordinal+1)*gamma
	z = (z ^ z>>30) * mixA
	z = (z ^ z>>27) * mixB
	return z ^ z>>31
}

// dice draws one number after the other.
type dice struct{ seed, n uint64 }

func (d *dice) next() uint64 {
	d.n++
	return Draw(d.seed, 0, d.n-1)
}

// upTo is a number from 0 to n−1; n must be above 0. Of 2^64 draws fewer than n are unfair.
func (d *dice) upTo(n int) int { return int(d.next() % uint64(n)) }

// unit is above 0 and below 1.
func (d *dice) unit() float64 { return (float64(d.next()>>11) + 0.5) / (1 << 53) }

// between is even on a logarithmic scale.
func (d *dice) between(a, b float64) float64 { return a * math.Pow(b/a, d.unit()) }

// exponential has mean 1.
func (d *dice) exponential() float64 { return -math.Log(d.unit()) }

// choose takes k of n numbers, in order: every choice is as likely as the others.
func (d *dice) choose(k, n int) []int {
	out := make([]int, 0, k)
	for i := range n { // Knuth, The Art of Computer Programming, 3.4.2, algorithm S
		if d.upTo(n-i) < k-len(out) {
			out = append(out, i)
		}
	}
	return out
}
