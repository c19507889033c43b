package asic

import (
	"math/bits"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Depths is a histogram of how much waited in a queue, sample by sample. Its buckets are no wider than an
// eighth of what they hold.
type Depths struct {
	Samples uint64 // all, those of an empty queue included
	Sum     uint64 // of all samples, in bytes
	Max     int64
	// Buckets count the samples above 0; see Quantile.
	Buckets []uint64
}

// depthBuckets cover 2^40 bytes: eight buckets of one byte, then eight an octave.
const depthBuckets = 8 * (40 - 2)

// bucketOf is the bucket of n bytes, from 0 to 2^40; ends is the largest number in a bucket.
func bucketOf(n int64) int {
	if n < 8 {
		return int(n)
	}
	e := bits.Len64(uint64(n)) - 4 // so that n>>e is 8 to 15
	return 8*e + int(n>>e)
}

func bucketEnd(i int) int64 {
	if i < 16 {
		return int64(i)
	}
	e := i/8 - 1
	return (int64(i%8+8)+1)<<e - 1
}

// Mean is the mean depth in bytes; 0 without samples.
func (d *Depths) Mean() float64 {
	if d.Samples == 0 {
		return 0
	}
	return float64(d.Sum) / float64(d.Samples)
}

// Quantile is the depth in bytes that a share q of the samples, 0 to 1, doesn't exceed: at most an eighth too much.
func (d *Depths) Quantile(q float64) int64 {
	var busy uint64
	for _, n := range d.Buckets {
		busy += n
	}
	seen, want := d.Samples-busy, q*float64(d.Samples)
	if float64(seen) >= want {
		return 0
	}
	for i, n := range d.Buckets {
		if seen += n; float64(seen) >= want {
			return min(bucketEnd(i), d.Max)
		}
	}
	return d.Max
}

// sampler takes the depth of all queues every so often.
type sampler struct {
	timer   loop.Timer
	samples uint64
}

// sample takes one of every queue that holds something; the others' are the rest of all samples.
func (s *Switch) sample() {
	if s.settings.Sample <= 0 {
		return
	}
	s.sampler.samples++
	for i := range s.ports {
		p := &s.ports[i]
		for rest := p.waiting; rest != 0; rest &= rest - 1 {
			q := &p.queues[bits.TrailingZeros8(rest)]
			if q.depths == nil {
				q.depths = &Depths{Buckets: make([]uint64, depthBuckets)}
			}
			n := q.frames.Bytes()
			q.depths.Sum += uint64(n)
			q.depths.Max = max(q.depths.Max, n)
			q.depths.Buckets[min(bucketOf(n), depthBuckets-1)]++
		}
	}
	s.loop.Arm(&s.sampler.timer, s.loop.Now().Add(s.settings.Sample))
}

// Depths are a queue's depths since the switch was made or ResetDepths was called, as Settings.Sample has
// them taken. What it returns is the caller's.
func (s *Switch) Depths(port, queue int) Depths {
	d := Depths{}
	if q := s.ports[port].queues[queue].depths; q != nil {
		d = *q
		d.Buckets = append([]uint64(nil), q.Buckets...)
	}
	d.Samples = s.sampler.samples
	return d
}

// ResetDepths forgets all depths taken.
func (s *Switch) ResetDepths() {
	s.sampler.samples = 0
	for i := range s.ports {
		for k := range s.ports[i].queues {
			s.ports[i].queues[k].depths = nil
		}
	}
}
