package workloads

import (
	"math"
	"testing"
)

// simulate runs the schedule over n buffers, every unit at the first moment its rule allows.
func simulate(t *testing.T, n, count, slice int, s summand) [][]byte {
	t.Helper()
	r := newRing(n, count, slice)
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, count*4)
		s.fill(bufs[i], uint32(i), 0)
	}
	sent := make([]int, n) // also: received by the next
	for moved := true; moved; {
		moved = false
		for rank := range n {
			u := sent[rank]
			came := sent[(rank+n-1)%n]
			if u >= r.units() || u >= r.k+came {
				continue
			}
			from, to := r.elements(rank, u, count)
			src, dst := bufs[rank][from*4:to*4], bufs[(rank+1)%n][from*4:to*4]
			if r.reduces(u) {
				s.add(dst, src)
			} else {
				copy(dst, src)
			}
			sent[rank]++
			moved = true
		}
	}
	for rank := range n {
		if sent[rank] != r.units() {
			t.Fatalf("%d ranks, %d elements, slices of %d: rank %d stopped at unit %d of %d", n, count, slice, rank, sent[rank], r.units())
		}
	}
	return bufs
}

func TestTheRingGivesEveryRankTheClosedForm(t *testing.T) {
	for _, kind := range []DataType{Int32, Float32} {
		for _, n := range []int{2, 3, 4, 7, 8, 16} {
			for _, count := range []int{n, n + 1, 100, 1023} {
				for _, slice := range []int{4, 20, 64, 1 << 20} {
					if count < n {
						continue
					}
					s := newSummand(1, "w", 0, kind, n)
					for rank, buf := range simulate(t, n, count, slice, s) {
						if wrong, first := s.check(buf, 0); wrong > 0 {
							t.Fatalf("%s, %d ranks, %d elements, slices of %d: rank %d has %d wrong, the first is %d", kind, n, count, slice, rank, wrong, first)
						}
					}
				}
			}
		}
	}
}

// A unit may not be larger than the slots it goes to, and every chunk is sent whole.
func TestUnitsCoverTheBufferAndFitTheirSlots(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		for _, count := range []int{n, 57, 4096, 10007} {
			for _, slice := range []int{4, 256, 1 << 16} {
				if count < n {
					continue
				}
				r := newRing(n, count, slice)
				covered := 0
				for u := range r.units() / 2 { // a rank's reduce-scatter sends every chunk but one
					from, to := r.elements(0, u, count)
					if size := (to - from) * 4; size > max(slice, 8) || size <= 0 {
						t.Fatalf("%d ranks, %d elements, slices of %d: unit %d has %d bytes", n, count, slice, u, size)
					}
					covered += to - from
				}
				from, to := r.chunkRange(r.chunk(0, r.units()/2), count)
				if covered+to-from != count {
					t.Fatalf("%d ranks, %d elements: %d are sent, and the chunk of %d is kept", n, count, covered, to-from)
				}
			}
		}
	}
}

// The closed form is what adding in any order gives, float32 included.
func TestSumsAreExactInAnyOrder(t *testing.T) {
	const n = maxRanks
	s := newSummand(3, "w", 9, Float32, n)
	for i := range 2000 {
		var up, down float32
		for r := range uint32(n) {
			up += math.Float32frombits(s.value(r, i))
			down += math.Float32frombits(s.value(n-1-r, i))
		}
		want := math.Float32frombits(s.sum(i))
		if up != want || down != want {
			t.Fatalf("element %d: upwards %v, downwards %v, closed form %v", i, up, down, want)
		}
	}
}

func TestAMissingOrDoubledContributionIsSeen(t *testing.T) {
	for _, kind := range []DataType{Int32, Float32} {
		s := newSummand(3, "w", 0, kind, 8)
		buf, one := make([]byte, 4096), make([]byte, 4096)
		for r := range uint32(8) {
			s.fill(one, r, 0)
			s.add(buf, one)
		}
		if wrong, _ := s.check(buf, 0); wrong != 0 {
			t.Fatalf("%s: the right sum has %d wrong elements", kind, wrong)
		}
		s.add(buf, one)
		if wrong, _ := s.check(buf, 0); wrong < 1000 {
			t.Errorf("%s: the last rank added twice leaves only %d of 1024 elements wrong", kind, wrong)
		}
	}
}
