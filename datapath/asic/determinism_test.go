package asic

import (
	"encoding/binary"
	"hash/fnv"
	"testing"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
)

func TestTheSameSeedGivesTheSameFramesAtTheSameTimes(t *testing.T) {
	play := func(seed uint64) uint64 {
		h := fnv.New64a()
		w := randomWorld(t, seed)
		check := w.onSend
		w.onSend = func(port int, f *link.Frame, at loop.Time) {
			var b [24]byte
			binary.LittleEndian.PutUint64(b[:], uint64(at))
			binary.LittleEndian.PutUint64(b[8:], uint64(port)<<32|uint64(f.Packet.BTH.PSN))
			binary.LittleEndian.PutUint64(b[16:], uint64(f.Kind)<<32|uint64(f.Len)<<8|uint64(f.TrafficClass))
			_, _ = h.Write(b[:])
			check(port, f, at)
		}
		w.play(200 * us)
		return h.Sum64()
	}
	seen := map[uint64]uint64{}
	for seed := range uint64(10) {
		sum := play(seed)
		if play(seed) != sum {
			t.Errorf("seed %d: two results", seed)
		}
		if other, ok := seen[sum]; ok {
			t.Errorf("seeds %d and %d: one result", seed, other)
		}
		seen[sum] = seed
	}
}

func TestASteadyStateAllocatesNothing(t *testing.T) {
	for name, tune := range map[string]func(*Config){
		"ecmp": lossy, "spray": spreadBy(SprayRound, 3), "adaptive": spreadBy(Adaptive, 3), "flowlet": spreadBy(Flowlet, 3), "lossless": static(3000, 1000),
	} {
		b := newBench(t, 4, 100*gig, tune)
		b.quiet = true
		at := 10 * us
		b.run(at)
		step := func() {
			for range 6 {
				b.give(0, b.frame(1, 26, 1000))
				b.give(2, b.flow(3))
			}
			at += 10 * us
			b.run(at)
		}
		step()
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations for 12 frames", name, n)
		}
		b.accounts()
	}
}
