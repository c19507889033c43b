package workloads

import (
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// fewLatencies is how many an end keeps as they are. A histogram is 254 KiB, and an all-pairs
// workload over 64 NICs has 4,032 ends that want one.
const fewLatencies = 1 << 12

// latencies are how long an end's messages took.
type latencies struct {
	few  []int64
	many *hdrhistogram.Histogram // of all, once they are no longer few
}

func (l *latencies) record(d time.Duration) {
	ns := max(int64(d), 1)
	if l.many == nil {
		if len(l.few) < fewLatencies {
			l.few = append(l.few, ns)
			return
		}
		many := newHistogram()
		l.addTo(many)
		l.many, l.few = many, nil
	}
	_ = l.many.RecordValue(ns)
}

// addTo adds them to a histogram.
func (l *latencies) addTo(h *hdrhistogram.Histogram) {
	if l.many != nil {
		h.Merge(l.many)
		return
	}
	for _, ns := range l.few {
		_ = h.RecordValue(ns)
	}
}

// percentiles are what a histogram of them says; of many they are worked out on a scratch one.
func (l *latencies) percentiles(scratch *hdrhistogram.Histogram) Percentiles {
	if l.many == nil {
		return percentilesOfFew(l.few)
	}
	scratch.Reset()
	l.addTo(scratch)
	return percentiles(scratch)
}

// percentilesOfFew sorts the values. A histogram's tens of thousands of counts would be gone through seven times
// for a handful of them, at each of an all-to-all's thousands of ends.
func percentilesOfFew(ns []int64) Percentiles {
	if len(ns) == 0 {
		return Percentiles{}
	}
	slices.Sort(ns)
	n := len(ns)
	at := func(quantile float64) int64 {
		rank := min(max(int(quantile/100*float64(n)+0.5), 1), n)
		v, width := bucketOf(ns[rank-1])
		return v + width - 1
	}
	p := Percentiles{Count: uint64(n), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100)}
	p.Min, _ = bucketOf(ns[0])
	for i := 0; i < n; {
		v, width := bucketOf(ns[i])
		first := i
		for i < n && ns[i] < v+width {
			i++
		}
		p.Mean += float64(i-first) * float64(v+width/2) / float64(n)
	}
	return p
}

// bucketOf is the values that newHistogram's three digits don't tell from one: where they begin, and how many.
func bucketOf(ns int64) (from, width int64) {
	const subBuckets = 11 // bits: 2048 is the first power of two that holds twice 10³
	shift := max(bits.Len64(uint64(ns))-subBuckets, 0)
	return ns >> shift << shift, 1 << shift
}
