package loop

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats is how well a real loop has kept up, in wall time. The keep-up check compares the
// lateness with what the fabric's dilation makes of its smallest timer.
type Stats struct {
	Posted uint64    // callbacks posted and run
	Late   Histogram // how long after their time timers fired; those armed for a time past don't count
	Run    Histogram // how long callbacks, posted and timed, ran
}

// Since is what happened after an earlier snapshot of the same loop. The maxima are those
// of the whole time: they can't be split.
func (s Stats) Since(earlier Stats) Stats {
	return Stats{
		Posted: s.Posted - earlier.Posted,
		Late:   s.Late.since(&earlier.Late),
		Run:    s.Run.since(&earlier.Run),
	}
}

// Each power of two of nanoseconds has 8 buckets, so a percentile is at most 12.5 % too
// high. The last bucket takes everything from 2^43 ns (2.4 hours) on.
const (
	subBits = 3
	buckets = (43 - subBits + 1) << subBits
)

// Histogram counts durations in buckets that grow with the duration.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	Max   time.Duration

	counts [buckets]uint64
}

// Percentile is a bound that p percent (0 to 100) of the durations don't exceed: the upper
// edge of their bucket, at most 12.5 % above the true value and never above Max. It is zero
// when nothing was counted.
func (h *Histogram) Percentile(p float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank := max(uint64(p/100*float64(h.Count)+0.999999), 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(upperEdge(i), h.Max)
		}
	}
	return h.Max
}

// Mean is the average duration, zero when nothing was counted.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

func (h *Histogram) since(earlier *Histogram) Histogram {
	out := Histogram{Count: h.Count - earlier.Count, Sum: h.Sum - earlier.Sum, Max: h.Max}
	for i := range h.counts {
		out.counts[i] = h.counts[i] - earlier.counts[i]
	}
	return out
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	return min(shift<<subBits+int(v>>shift), buckets-1)
}

// upperEdge is the largest duration that falls in bucket i.
func upperEdge(i int) time.Duration {
	if i < 1<<subBits {
		return time.Duration(i)
	}
	shift := i>>subBits - 1
	return time.Duration((uint64(1<<subBits+i&(1<<subBits-1))+1)<<shift - 1)
}

// counter is a histogram that one goroutine writes and any reads.
type counter struct {
	count, sum, max atomic.Int64
	counts          [buckets]atomic.Uint64
}

func (c *counter) add(d time.Duration) {
	c.count.Add(1)
	c.sum.Add(int64(d))
	if int64(d) > c.max.Load() {
		c.max.Store(int64(d))
	}
	c.counts[bucketOf(d)].Add(1)
}

func (c *counter) snapshot() Histogram {
	h := Histogram{Sum: time.Duration(c.sum.Load()), Max: time.Duration(c.max.Load())}
	for i := range c.counts {
		h.counts[i] = c.counts[i].Load()
		h.Count += h.counts[i]
	}
	return h
}

type recorder struct {
	posted    atomic.Uint64
	late, run counter
}

func (r *recorder) snapshot() Stats {
	return Stats{Posted: r.posted.Load(), Late: r.late.snapshot(), Run: r.run.snapshot()}
}
