package workloads

import (
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

// percentiles are worked out on a scratch histogram.
func (l *latencies) percentiles(scratch *hdrhistogram.Histogram) Percentiles {
	scratch.Reset()
	l.addTo(scratch)
	return percentiles(scratch)
}
