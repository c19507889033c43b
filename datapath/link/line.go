package link

import (
	"math/bits"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// Overhead is what a frame costs on the line besides its Len, in bytes: preamble and start
// delimiter 8, frame check sequence 4, inter-packet gap 12 (802.3). MinLen is the shortest Len
// that a line carries.
const (
	Overhead = 24
	MinLen   = 60
)

// Line is a port's transmitter: it sends one frame after the other at a rate. Its times are
// exact over any number of frames: what one loses to whole nanoseconds the next gets.
type Line struct {
	rate uint64 // bits a second
	free loop.Time
	rest uint64 // of the time that free leaves out, in 1/rate ns: below rate
}

// NewLine makes an idle line of a rate in bits a second of fabric time, above 0.
func NewLine(rate uint64) Line { return Line{rate: rate} }

// Rate is the line's, in bits a second.
func (l *Line) Rate() uint64 { return l.rate }

// Free is when the last frame so far has left: from then on the line is idle.
func (l *Line) Free() loop.Time { return l.free }

// Send serialises a frame of n bytes (its Len), as soon as the line is free and not before
// now, and returns when its last bit leaves.
func (l *Line) Send(now loop.Time, n int32) loop.Time {
	if l.free < now {
		l.free, l.rest = now, 0
	}
	hi, lo := bits.Mul64(uint64(max(n, MinLen)+Overhead)*8, uint64(time.Second))
	lo, carry := bits.Add64(lo, l.rest, 0)
	q, r := bits.Div64(hi+carry, lo, l.rate)
	l.free += loop.Time(q)
	l.rest = r
	return l.free
}

// SetRate changes the rate from the next frame on.
func (l *Line) SetRate(rate uint64) { l.rate, l.rest = rate, 0 }
