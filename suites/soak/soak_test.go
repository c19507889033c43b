package soak

import (
	"context"
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
	longest = flag.Duration("time", 0, "stop after so long (0: not before all were run)")
)

// TestRandomScenariosViolateNothing is what `make soak` runs longer. A violation names its seed: -args -runs 1 -seed N.
func TestRandomScenariosViolateNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if *longest > 0 {
		ctx, cancel = context.WithTimeout(ctx, *longest)
		defer cancel()
	}
	var wg sync.WaitGroup
	var next, done, failed, packets, passed, hits atomic.Int64
	begun := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for ctx.Err() == nil && failed.Load() < 10 {
				i := next.Add(1) - 1
				if i >= int64(*runs) {
					return
				}
				below, err := os.MkdirTemp(dir, "")
				if err != nil {
					t.Error(err)
					return
				}
				r, err := Twice(context.WithoutCancel(ctx), *first+uint64(i), below, nil)
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
	if done.Load() == 0 || passed.Load() < done.Load()/2 || packets.Load() == 0 {
		t.Errorf("of %d scenarios %d passed: they are worse than meant", done.Load(), passed.Load())
	}
}
