package loop

import (
	"math/rand"
	"slices"
	"testing"
	"time"
)

func TestBucketsCoverEveryDurationOnce(t *testing.T) {
	for i := range buckets - 1 {
		edge := upperEdge(i)
		if bucketOf(edge) != i || bucketOf(edge+1) != i+1 {
			t.Fatalf("bucket %d ends at %d, but %d is in %d and %d in %d", i, edge, edge, bucketOf(edge), edge+1, bucketOf(edge+1))
		}
	}
}

func TestPercentileIsAtMostAnEighthTooHigh(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var c counter
	var all []time.Duration
	for range 5000 {
		d := time.Duration(rng.ExpFloat64() * float64(time.Millisecond))
		c.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	h := c.snapshot()
	for _, p := range []float64{0, 1, 50, 90, 99, 99.9, 100} {
		want := all[max(int(p/100*5000+0.999999), 1)-1]
		got := h.Percentile(p)
		if got < want || float64(got) > float64(want)*1.125+1 {
			t.Errorf("p%v: %v, truly %v", p, got, want)
		}
	}
	if h.Max != all[4999] || h.Count != 5000 {
		t.Errorf("max %v of %d, truly %v of 5000", h.Max, h.Count, all[4999])
	}
}

func TestStatsSinceCountsOnlyWhatCameAfter(t *testing.T) {
	var r recorder
	r.late.add(time.Second)
	before := r.snapshot()
	r.late.add(time.Microsecond)
	if got := r.snapshot().Since(before).Late; got.Count != 1 || got.Percentile(100) > 2*time.Microsecond {
		t.Errorf("%d, p100 %v", got.Count, got.Percentile(100))
	}
}
