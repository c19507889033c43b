package workloads

import (
	"math"
	"testing"
)

// Each flow's goodput is whole messages of the time after the warm-up, and what was over before and after that is in its bytes alone.
func TestGoodputLeavesTheWarmUpOut(t *testing.T) {
	res := newBench(t, 3, 1, 1).pass("[{name: w, kind: incast, from: [h1, h2], to: [h3], size: 4KiB, duration: 40ms, warm_up: 30ms}]")
	var sum float64
	for _, f := range res.Flows {
		messages := f.GoodputBps / 8 * 10e-3 / 4096
		if math.Abs(messages-math.Round(messages)) > 1e-6 || messages < 1 || messages >= float64(f.Messages) {
			t.Errorf("%v→%v: %v bit/s are %v messages in 10 ms; it sent %d in all", f.Src, f.Dst, f.GoodputBps, messages, f.Messages)
		}
		sum += f.GoodputBps
	}
	if sum != res.GoodputBps {
		t.Errorf("flows of %v bit/s in all make a workload of %v", sum, res.GoodputBps)
	}
}
