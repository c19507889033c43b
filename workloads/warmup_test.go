package workloads

import (
	"math"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Each flow's goodput is whole messages of the time after the warm-up, and what was over before and after that is in its bytes alone.
func TestGoodputLeavesTheWarmUpOut(t *testing.T) {
	v := loop.NewVirtual(time.Microsecond)
	b := benchOn(t, 3, 1, 1, func(host int) loop.Loop { return v.Node(uint32(host)) })
	e, err := NewEngine(b.cfg, specs(t, "[{name: w, kind: incast, from: [h1, h2], to: [h3], size: 4KiB, duration: 400us, warm_up: 300us}]"))
	if err != nil {
		t.Fatal(err)
	}
	var r *Report
	e.Start(func(done *Report) { r = done })
	if !v.Run(func() bool { return r != nil }) || !r.Passed() {
		t.Fatalf("%+v", r)
	}
	res := r.Results[0]
	var sum float64
	for _, f := range res.Flows {
		messages := f.GoodputBps / 8 * 100e-6 / 4096
		// Nothing is in the way of a flow, so that a quarter of the time has a quarter of its messages, but for those under way at its ends.
		if math.Abs(messages-math.Round(messages)) > 1e-6 || math.Abs(messages-float64(f.Messages)/4) > 2 {
			t.Errorf("%v→%v: %v bit/s are %v messages in 100 µs; it sent %d in all, in 400 µs", f.Src, f.Dst, f.GoodputBps, messages, f.Messages)
		}
		sum += f.GoodputBps
	}
	if sum != res.GoodputBps {
		t.Errorf("flows of %v bit/s in all make a workload of %v", sum, res.GoodputBps)
	}
}
