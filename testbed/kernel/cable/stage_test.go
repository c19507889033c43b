//go:build linux

package cable

import (
	"bytes"
	"math/bits"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

// frame is an IPv4 UDP frame of n bytes in all.
func frame(n int) []byte {
	f := make([]byte, n)
	f[12], f[13], f[14] = 0x08, 0x00, 0x45
	return f
}

// each runs the stage on one packet after the other and says which came out how.
func each(t *testing.T, m Model, seed uint64, packets int, in []byte, see func(i int, verdict int32, out []byte)) Counts {
	t.Helper()
	// No hop leads on from here, so what a stage lets go ends nowhere.
	f, err := newForwarder(1)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer f.Close()
	s, err := newStage(f, m, seed, 1)
	if err != nil {
		t.Fatalf("%#v: %+v", m, err)
	}
	defer s.Close()
	for i := range packets {
		v, out, err := s.prog.Test(in)
		if err != nil {
			t.Fatal(err)
		}
		see(i, int32(v), out)
	}
	c, err := s.Counts()
	if err != nil {
		t.Fatal(err)
	}
	if c.Seen != uint64(packets) {
		t.Errorf("%#v: saw %d packets of %d", m, c.Seen, packets)
	}
	return c
}

func TestEveryNthLossDropsExactlyEveryNth(t *testing.T) {
	testneed.Root(t)
	for _, n := range []uint32{1, 2, 5, 256} {
		c := each(t, NthLoss{n}, 7, 600, frame(100), func(i int, v int32, _ []byte) {
			if dropped := v == verdictDrop; dropped != ((i+1)%int(n) == 0) {
				t.Fatalf("every %d: packet %d dropped: %v", n, i+1, dropped)
			}
		})
		if c.Hits != uint64(600/n) {
			t.Errorf("every %d of 600: counted %d", n, c.Hits)
		}
	}
}

func TestRandomLossHitsTheOrdinalsThatTheSeedSays(t *testing.T) {
	testneed.Root(t)
	for _, p := range []float64{0.001, 0.01, 0.5, 1} {
		want := uint64(0)
		c := each(t, RandomLoss{p}, 42, 5000, frame(100), func(i int, v int32, _ []byte) {
			lose := p == 1 || draw(42, drawHit, uint64(i)) < threshold(p)
			if lose {
				want++
			}
			if lose != (v == verdictDrop) {
				t.Fatalf("loss %v: packet %d: verdict %d, by the seed it is lost: %v", p, i, v, lose)
			}
		})
		if c.Hits != want {
			t.Errorf("loss %v: counted %d, dropped %d", p, c.Hits, want)
		}
	}
}

// The kernel's program against the same chain in Go, and the chain against its own mean.
func TestBurstLossIsTheGilbertElliottChain(t *testing.T) {
	testneed.Root(t)
	l := BurstLoss{P: 0.02, R: 0.2, LossBad: 0.8, LossGood: 0.01}
	bad, lost, run, runs := false, 0, 0, 0
	const packets = 20000
	each(t, l, 9, packets, frame(100), func(i int, v int32, _ []byte) {
		p, change := l.LossGood, l.P
		if bad {
			p, change = l.LossBad, l.R
		}
		lose := draw(9, drawHit, uint64(i)) < threshold(p)
		if draw(9, drawTransition, uint64(i)) < threshold(change) {
			bad = !bad
		}
		if lose != (v == verdictDrop) {
			t.Fatalf("packet %d: verdict %d, by the chain it is lost: %v", i, v, lose)
		}
		if lose {
			lost++
			if run == 0 {
				runs++
			}
			run = 1
		} else {
			run = 0
		}
	})
	mean := (l.LossBad*l.P + l.LossGood*l.R) / (l.P + l.R)
	if got := float64(lost) / packets; got < mean*0.8 || got > mean*1.2 {
		t.Errorf("lost %.4f of the packets, expected about %.4f", got, mean)
	}
	if float64(lost)/float64(runs) < 1.5 {
		t.Errorf("%d losses in %d runs: not in bursts", lost, runs)
	}
}

func TestCorruptionFlipsOneBitBehindTheUDPHeader(t *testing.T) {
	testneed.Root(t)
	in := frame(14 + 20 + 8 + 40)
	var hit [40 * 8]int
	c := each(t, Corrupt{1}, 3, 3000, in, func(i int, v int32, out []byte) {
		if v != verdictNowhere {
			t.Fatalf("packet %d: verdict %d", i, v)
		}
		flipped := 0
		for at := range in {
			if x := in[at] ^ out[at]; x != 0 {
				flipped += bits.OnesCount8(x)
				if at < 42 {
					t.Fatalf("packet %d: byte %d is a header's", i, at)
				}
				hit[(at-42)*8+bits.TrailingZeros8(x)]++
			}
		}
		if flipped != 1 {
			t.Fatalf("packet %d: %d bits flipped", i, flipped)
		}
	})
	if c.Hits != 3000 {
		t.Errorf("counted %d of 3000", c.Hits)
	}
	for bit, n := range hit {
		if n == 0 {
			t.Errorf("bit %d was never flipped in 3000 packets", bit)
		}
	}
}

func TestCorruptionLeavesAloneWhatItCannotHit(t *testing.T) {
	testneed.Root(t)
	arp := make([]byte, 60)
	arp[12], arp[13] = 0x08, 0x06
	for _, in := range [][]byte{arp, frame(14 + 20 + 8)} {
		c := each(t, Corrupt{1}, 3, 10, in, func(i int, v int32, out []byte) {
			if v != verdictNowhere || !bytes.Equal(in, out) {
				t.Errorf("%x: verdict %d, became %x", in, v, out)
			}
		})
		if c.Hits != 0 {
			t.Errorf("%x: counted %d hits", in, c.Hits)
		}
	}
}

func TestOvertakingKeepsItsGap(t *testing.T) {
	testneed.Root(t)
	// A redirect in a test run reports TC_ACT_REDIRECT (7).
	for _, gap := range []uint32{0, 1, 5} {
		last := -1 << 30
		each(t, Overtake{P: 0.5, Gap: gap}, 1, 1000, frame(100), func(i int, v int32, _ []byte) {
			if v != 7 {
				return
			}
			if i-last < int(gap) {
				t.Fatalf("gap %d: packets %d and %d were both let past", gap, last, i)
			}
			last = i
		})
		if last < 0 {
			t.Errorf("gap %d: nothing was let past", gap)
		}
	}
}

func TestSenselessParametersAreRefused(t *testing.T) {
	for _, m := range []Model{RandomLoss{0}, RandomLoss{1.5}, NthLoss{0}, BurstLoss{P: 0.1, R: 0.1}, BurstLoss{P: 0, R: 1, LossBad: 1}, Corrupt{-1}, Duplicate{0}, Overtake{P: 2}} {
		if err := m.check(); err == nil {
			t.Errorf("%#v was taken", m)
		}
	}
}
