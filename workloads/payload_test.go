package workloads

import (
	"math/rand/v2"
	"testing"
)

// Any cut of the stream is the same bytes, however it is cut and aligned.
func TestAStreamIsTheSameBytesHoweverItIsCut(t *testing.T) {
	s := NewStream(7, "w", 3)
	whole := make([]byte, 4096)
	s.Fill(whole, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		from := rng.IntN(len(whole))
		n := rng.IntN(len(whole) - from + 1)
		part := make([]byte, n)
		s.Fill(part, uint64(from))
		if string(part) != string(whole[from:from+n]) {
			t.Fatalf("bytes %d+%d differ from the whole's", from, n)
		}
		if bad := s.Check(part, uint64(from)); bad != -1 {
			t.Fatalf("bytes %d+%d: the check finds byte %d wrong", from, n, bad)
		}
		if n == 0 {
			continue
		}
		flip := rng.IntN(n)
		part[flip] ^= 1 << rng.IntN(8)
		if bad := s.Check(part, uint64(from)); bad != flip {
			t.Fatalf("bytes %d+%d: byte %d was flipped, the check found %d", from, n, flip, bad)
		}
	}
}

func TestPoisonDiffersFromTheStreamInEveryByte(t *testing.T) {
	s := NewStream(7, "w", 3)
	for _, off := range []uint64{0, 3, 8, 61} {
		good, poison := make([]byte, 203), make([]byte, 203)
		s.Fill(good, off)
		s.Poison(poison, off)
		for i := range good {
			if good[i] == poison[i] {
				t.Fatalf("offset %d: byte %d is the payload's", off, i)
			}
		}
	}
}

func TestStreamsOfDifferentFlowsSeedsAndNamesDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 2} {
		for _, name := range []string{"", "a", "b", "ab", "ba", "aa"} {
			for flow := range 64 {
				k := NewStream(seed, name, flow).key
				if was, ok := seen[k]; ok {
					t.Fatalf("seed %d workload %q flow %d has the stream of %s", seed, name, flow, was)
				}
				seen[k] = name
			}
		}
	}
	if streamKey(1, "ab", "c", 0) == streamKey(1, "a", "bc", 0) {
		t.Fatal("names that join to the same letters share a stream")
	}
}

// A payload must not look like itself a little further on, or a misplaced packet could pass.
func TestShiftedPayloadsAreCaughtAtOnce(t *testing.T) {
	s := NewStream(7, "w", 3)
	buf := make([]byte, 1024)
	for _, shift := range []uint64{1, 4, 8, 64, 256, 1024, 4096, 65536} {
		s.Fill(buf, shift)
		if bad := s.Check(buf, 0); bad < 0 || bad > 8 {
			t.Errorf("shifted by %d: first wrong byte at %d", shift, bad)
		}
	}
}

func TestAMovedOrChangedGuardIsBroken(t *testing.T) {
	g := make([]byte, guardLen+1)
	fillGuard(g[:guardLen])
	if bad := checkGuard(g[:guardLen]); bad != -1 {
		t.Fatalf("fresh guard broken at %d", bad)
	}
	if checkGuard(g[1:]) != 0 {
		t.Fatal("a shifted guard passes")
	}
	g[guardLen-1]++
	if bad := checkGuard(g[:guardLen]); bad != guardLen-1 {
		t.Fatalf("changed byte %d found at %d", guardLen-1, bad)
	}
}

func BenchmarkPayload(b *testing.B) {
	s := NewStream(7, "w", 3)
	buf := make([]byte, 64<<10)
	b.Run("fill", func(b *testing.B) {
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			s.Fill(buf, 0)
		}
	})
	b.Run("check", func(b *testing.B) {
		s.Fill(buf, 0)
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			if s.Check(buf, 0) != -1 {
				b.Fatal("wrong")
			}
		}
	})
}
