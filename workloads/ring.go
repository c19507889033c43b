package workloads

import (
	"encoding/binary"
	"math"
)

// ring is the schedule of a ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms for clusters of workstations", 2009), cut into slices so that steps overlap.
//
// The buffer is n chunks. In each of the first n−1 steps (reduce-scatter) a rank sends one
// chunk to the next rank, which adds it to its own; in each of the last n−1 (all-gather) it
// sends a finished chunk, which the next rank keeps. A chunk is k slices; the message that
// carries one is a unit, numbered by step, then slice. What a rank sends in a step is the
// chunk it received in the step before: so unit u can go as soon as unit u−k has come in.
type ring struct{ n, k int }

// newRing cuts chunks of elements into slices of at most about slice bytes.
func newRing(n, elements, slice int) ring {
	least := elements / n
	most := (elements + n - 1) / n
	k := min((most*4+slice-1)/slice, least)
	return ring{n, max(k, 1)}
}

func (r ring) units() int         { return 2 * (r.n - 1) * r.k }
func (r ring) reduces(u int) bool { return u/r.k < r.n-1 }

// chunk is the chunk that a rank sends as unit u.
func (r ring) chunk(rank, u int) int {
	step := u / r.k
	if step >= r.n-1 {
		step -= r.n // the all-gather begins with the chunk after one's own, and goes on downwards
	}
	return ((rank-step)%r.n + r.n) % r.n
}

// elements is the part of a buffer of count elements that unit u of a rank carries.
func (r ring) elements(rank, u, count int) (from, to int) {
	lo, hi := r.chunkRange(r.chunk(rank, u), count)
	j := u % r.k
	return lo + j*(hi-lo)/r.k, lo + (j+1)*(hi-lo)/r.k
}

func (r ring) chunkRange(c, count int) (from, to int) { return c * count / r.n, (c + 1) * count / r.n }

// summand is what the ranks of an all-reduce contribute: element i of rank r is base + r·step,
// both drawn from the seed, so the sum over n ranks is n·base + step·n(n−1)/2. As int32 all of
// it wraps around; as float32 the values are whole and so small (base < 2^15, step < 2^7,
// at most 128 ranks) that every sum in any order is exact.
type summand struct {
	key  uint64
	kind DataType
	n    uint32
}

func newSummand(seed uint64, workload string, iteration uint64, kind DataType, n int) summand {
	return summand{streamKey(seed, workload, "summand", int(iteration)), kind, uint32(n)}
}

func (s summand) parts(i int) (base, step uint32) {
	w := mix64(s.key + uint64(i)*golden)
	if s.kind == Float32 {
		return uint32(w) & (1<<15 - 1), uint32(w>>32) & (1<<7 - 1)
	}
	return uint32(w), uint32(w >> 32)
}

// value is rank r's element i, as its four bytes hold it.
func (s summand) value(r uint32, i int) uint32 {
	base, step := s.parts(i)
	return s.encode(base + r*step)
}

// sum is the sum over all ranks.
func (s summand) sum(i int) uint32 {
	base, step := s.parts(i)
	return s.encode(s.n*base + step*(s.n*(s.n-1)/2))
}

func (s summand) encode(v uint32) uint32 {
	if s.kind == Float32 {
		return math.Float32bits(float32(v))
	}
	return v
}

// add adds src's elements to dst's.
func (s summand) add(dst, src []byte) {
	if s.kind == Float32 {
		for len(dst) >= 4 && len(src) >= 4 {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(math.Float32frombits(binary.LittleEndian.Uint32(dst))+math.Float32frombits(binary.LittleEndian.Uint32(src))))
			dst, src = dst[4:], src[4:]
		}
		return
	}
	for len(dst) >= 4 && len(src) >= 4 {
		binary.LittleEndian.PutUint32(dst, binary.LittleEndian.Uint32(dst)+binary.LittleEndian.Uint32(src))
		dst, src = dst[4:], src[4:]
	}
}

// fill writes rank r's elements from i on.
func (s summand) fill(dst []byte, r uint32, i int) {
	for ; len(dst) >= 4; dst, i = dst[4:], i+1 {
		binary.LittleEndian.PutUint32(dst, s.value(r, i))
	}
}

// check compares results from element i on: how many are wrong, and the first of them.
func (s summand) check(got []byte, i int) (wrong, first int) {
	for first = -1; len(got) >= 4; got, i = got[4:], i+1 {
		if binary.LittleEndian.Uint32(got) != s.sum(i) {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	return wrong, first
}
