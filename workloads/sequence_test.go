package workloads

import (
	"math/rand/v2"
	"testing"
)

// Whatever order messages arrive in, within the window, each is counted exactly once: as
// arrived, late, duplicate or lost.
func TestEveryMessageIsCountedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		n := 1 + rng.IntN(3000)
		var q sequence
		var order []int
		want := map[int]int{}
		for m := range n {
			switch rng.IntN(10) {
			case 0: // lost
			case 1:
				order = append(order, m, m)
				want[m] = 2
			default:
				order = append(order, m)
				want[m] = 1
			}
		}
		for i := range order { // local disorder
			j := min(i+rng.IntN(20), len(order)-1)
			order[i], order[j] = order[j], order[i]
		}
		first, twice := map[uint64]int{}, 0
		for _, m := range order {
			got, how := q.arrive(uint32(m))
			if got != uint64(m) {
				t.Fatalf("message %d was taken for %d", m, got)
			}
			if how == again {
				twice++
			} else {
				first[got]++
			}
		}
		q.skip(uint64(n))
		if len(first) != len(want) || twice != len(order)-len(want) || q.lost != uint64(n-len(want)) {
			t.Fatalf("%d messages, %d arrivals of %d: %d first, %d again, %d lost", n, len(order), len(want), len(first), twice, q.lost)
		}
	}
}

func TestMessageNumbersGoOnBeyond32Bits(t *testing.T) {
	q := sequence{next: 1<<33 - 2}
	for i := range uint64(5) {
		m := 1<<33 - 2 + i
		if got, how := q.arrive(uint32(m)); got != m || how != fresh {
			t.Fatalf("message %#x was taken for %#x (order %d)", m, got, how)
		}
	}
	if got, how := q.arrive(1<<32 - 1); got != 1<<33-1 || how != again {
		t.Fatalf("an old message across the edge: %#x, order %d", got, how)
	}
}
