//go:build linux

package soft

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// lateness is how late frames were handed to the kernel, in wall time, counted by powers of two. One goroutine
// adds, any reads.
type lateness struct {
	most   atomic.Int64
	counts [48]atomic.Uint64 // by how many bits the nanoseconds have
}

func (l *lateness) add(d time.Duration) {
	d = max(d, 0)
	if int64(d) > l.most.Load() {
		l.most.Store(int64(d))
	}
	l.counts[min(bits.Len64(uint64(d)), len(l.counts)-1)].Add(1)
}

// latenessCounts is a lateness as it was at a moment.
type latenessCounts struct {
	most   time.Duration
	counts [48]uint64
}

func (l *lateness) read() (c latenessCounts) {
	c.most = time.Duration(l.most.Load())
	for i := range l.counts {
		c.counts[i] = l.counts[i].Load()
	}
	return c
}

// since is what came after an earlier reading; the most is that of all time.
func (c latenessCounts) since(earlier latenessCounts) latenessCounts {
	for i := range c.counts {
		c.counts[i] -= earlier.counts[i]
	}
	return c
}

// beyond is how many of how many were later than d, to the power of two below.
func (c latenessCounts) beyond(d time.Duration) (late, all uint64) {
	first := bits.Len64(uint64(d))
	for i, n := range c.counts {
		all += n
		if i > first {
			late += n
		}
	}
	return late, all
}
