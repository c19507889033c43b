package workloads

import (
	"testing"
	"time"
)

func TestFewLatenciesAndManyGiveWhatAHistogramOfAllGives(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 999, fewLatencies, fewLatencies + 1, 3 * fewLatencies} {
		all, scratch := newHistogram(), newHistogram()
		var l latencies
		for i := range n {
			d := time.Duration(mix64(uint64(i)) % uint64(time.Second) >> (i % 30)) // of all sizes, with equal ones among them
			l.record(d)
			if err := all.RecordValue(max(int64(d), 1)); err != nil {
				t.Fatal(err)
			}
		}
		_ = scratch.RecordValue(7) // what another end left
		if got, want := l.percentiles(scratch), percentiles(all); got != want {
			t.Errorf("%d latencies: %+v, want %+v", n, got, want)
		}
		if n <= fewLatencies && l.many != nil {
			t.Errorf("%d latencies took a histogram", n)
		}
	}
}
