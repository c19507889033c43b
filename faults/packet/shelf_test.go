package packet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// A packet that is held for k is overtaken by exactly k of its flow, as long as nothing else is held.
func TestAHeldPacketIsOvertakenByExactlySoMany(t *testing.T) {
	for k := uint16(1); k < 20; k++ {
		var s Shelf[int]
		var out []int
		s.Put(1, k, 0)
		for i := 1; i <= 30; i++ {
			flow := uint32(1)
			if i%3 == 0 {
				flow = 2 // another's
			}
			out = append(out, i)
			s.Pass(flow, func(n int) { out = append(out, n) })
		}
		overtook := 0
		for _, n := range out[:slices.Index(out, 0)] {
			if n%3 != 0 {
				overtook++
			}
		}
		if overtook != int(k) || s.Len() != 0 {
			t.Errorf("held for %d: %d overtook it: %v", k, overtook, out)
		}
	}
}

// Whatever is held, nothing is lost and nothing is doubled, and of each packet no fewer than asked overtake it.
func TestTheShelfLosesNothing(t *testing.T) {
	for seed := range uint64(500) {
		rng := newRand(seed)
		var s Shelf[int]
		var out []int
		behind := map[int]int{} // how many of its flow have gone on when it was put there
		wants := map[int]int{}
		gone := [3]int{}
		flowOf := func(i int) uint32 { return uint32(i % 3) }
		pass := func(i int) { out = append(out, i); gone[flowOf(i)]++ }
		for i := range 200 {
			if rng.IntN(4) == 0 {
				k := 1 + rng.IntN(5)
				behind[i], wants[i] = gone[flowOf(i)], k
				id := s.Put(flowOf(i), uint16(k), i)
				if rng.IntN(10) == 0 {
					n, ok := s.Take(id)
					if !ok || n != i {
						t.Fatalf("seed %d: took %d, %v of %d", seed, n, ok, i)
					}
					delete(wants, i)
					pass(i)
					s.Pass(flowOf(i), func(n int) { release(t, &s, n, behind, wants, gone[:], flowOf); pass(n) })
				}
				continue
			}
			pass(i)
			s.Pass(flowOf(i), func(n int) { release(t, &s, n, behind, wants, gone[:], flowOf); pass(n) })
		}
		s.Drain(func(n int) { out = append(out, n) })
		slices.Sort(out)
		for i := range 200 {
			if i >= len(out) || out[i] != i {
				t.Fatalf("seed %d: packet %d was lost or doubled: %v", seed, i, out)
			}
		}
		if s.Len() != 0 || len(out) != 200 {
			t.Fatalf("seed %d: %d packets, %d on the shelf", seed, len(out), s.Len())
		}
	}
}

func release(t *testing.T, s *Shelf[int], n int, behind, wants map[int]int, gone []int, flowOf func(int) uint32) {
	t.Helper()
	if want, held := wants[n]; held && gone[flowOf(n)]-behind[n] < want {
		t.Fatalf("packet %d went on behind %d of its flow, and was held for %d", n, gone[flowOf(n)]-behind[n], want)
	}
}

func TestATakenPacketIsNotReleasedAgain(t *testing.T) {
	var s Shelf[string]
	id := s.Put(1, 1, "a")
	if got, ok := s.Take(id); !ok || got != "a" {
		t.Fatalf("took %q, %v", got, ok)
	}
	s.Pass(1, func(string) { t.Error("it was released all the same") })
	if _, ok := s.Take(id); ok {
		t.Error("it was taken twice")
	}
}

func TestAPacketThatIsReleasedCountsForThoseStillHeld(t *testing.T) {
	var s Shelf[string]
	var out []string
	s.Put(1, 2, "long")
	s.Put(1, 1, "short")
	s.Pass(1, func(n string) { out = append(out, n) })
	if !slices.Equal(out, []string{"short", "long"}) {
		t.Errorf("one packet released %q, want short, and by it long", out)
	}
}
