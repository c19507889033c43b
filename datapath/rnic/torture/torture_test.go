package torture

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

var (
	runs    = flag.Int("runs", 2000, "how many random runs to make")
	first   = flag.Uint64("seed", 1, "the first run's seed")
	longest = flag.Duration("time", 0, "begin no run after so long (0: all are run)")
)

// TestRandomRunsViolateNothing is what `make soak` runs longer. A violation names its seed: -runs 1 -seed N.
func TestRandomRunsViolateNothing(t *testing.T) {
	var wg sync.WaitGroup
	var next, done, failed, packets, exhausted, retransmitted atomic.Uint64
	begun := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var r Runner
			for {
				i := next.Add(1) - 1
				if i >= uint64(*runs) || failed.Load() > 10 || *longest > 0 && time.Since(begun) > *longest {
					return
				}
				res, err := r.Do(*first+i, Options{})
				if err != nil {
					failed.Add(1)
					t.Error(err)
					continue
				}
				done.Add(1)
				packets.Add(res.Packets)
				retransmitted.Add(res.Counters[0].RetransmittedPackets + res.Counters[1].RetransmittedPackets)
				if res.Exhausted {
					exhausted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d runs in %v: %.0f a second, %d packets, %d sent again, %d runs used their retries up", done.Load(), time.Since(begun).Round(time.Millisecond),
		float64(done.Load())/time.Since(begun).Seconds(), packets.Load(), retransmitted.Load(), exhausted.Load())
	if n := exhausted.Load(); n > done.Load()/5000+1 {
		t.Errorf("%d of %d runs used their retries up: the wire is worse than meant", n, done.Load())
	}
}

func TestASeedDeterminesARun(t *testing.T) {
	for seed := uint64(1); seed <= 150; seed++ {
		var once, again Runner
		a, err := once.Do(seed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Do(seed, Options{}); err != nil || a != b {
			t.Fatalf("seed %d, once: %+v\nand again: %+v, %v", seed, a, b, err)
		}
	}
}
