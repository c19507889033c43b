package soak

import (
	"flag"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/testbed/record"
)

func TestMain(m *testing.M) { testleak.Main(m) }

var (
	runs    = flag.Int("runs", 200, "how many random scenarios to run")
	first   = flag.Uint64("seed", 1, "the first one's seed")
	longest = flag.Duration("time", 0, "begin no scenario after so long (0: all are run)")
)

// TestRandomScenariosViolateNothing is what `make soak` runs longer. A violation names its seed: -args -runs 1 -seed N.
func TestRandomScenariosViolateNothing(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var next, done, failed, packets, passed, hits atomic.Int64
	begun := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(*runs) || failed.Load() > 10 || *longest > 0 && time.Since(begun) > *longest {
					return
				}
				below, err := os.MkdirTemp(dir, "")
				if err != nil {
					t.Error(err)
					return
				}
				r, err := Twice(t.Context(), *first+uint64(i), below, nil)
				_ = os.RemoveAll(below)
				if err != nil {
					failed.Add(1)
					t.Error(err)
					continue
				}
				done.Add(1)
				packets.Add(r.Count("sent_pkts", nil))
				hits.Add(r.Count("fault_hits", nil))
				if r.Summary.Verdict == record.Pass {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d scenarios twice in %v, %d packets each time, %d hit by faults; %d passed, the others used their retries up", done.Load(), time.Since(begun).Round(time.Millisecond),
		packets.Load(), hits.Load(), passed.Load())
	if passed.Load() <= done.Load()/2 || packets.Load() == 0 {
		t.Errorf("of %d scenarios %d passed: they are worse than meant", done.Load(), passed.Load())
	}
}
