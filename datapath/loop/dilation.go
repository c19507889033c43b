package loop

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"time"
)

// Dilation says how much slower than wall time a fabric runs: wall time = fabric time ×
// dilation. It is a power of two, so that times which hardware counts in powers of two (the
// local ACK timeout) have exact images. Zero is taken as 1.
type Dilation uint32

// NewDilation checks that n is a power of two from 1 to 2^31.
func NewDilation(n uint64) (Dilation, error) {
	if n == 0 || n > 1<<31 || n&(n-1) != 0 {
		return 0, fmt.Errorf("dilation %d is not a power of two from 1 to %d", n, uint32(1<<31))
	}
	return Dilation(n), nil
}

// Factor is the dilation as a number, at least 1.
func (d Dilation) Factor() uint32 { return max(uint32(d), 1) }

// Exponent is log2 of the dilation: what is added to an IB timeout exponent.
func (d Dilation) Exponent() int { return bits.TrailingZeros32(d.Factor()) }

// Wall is how long a span of fabric time takes in wall time. It saturates.
func (d Dilation) Wall(fabric Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(fabric.Abs()), uint64(d.Factor()))
	if hi != 0 || lo > math.MaxInt64 {
		lo = math.MaxInt64
	}
	if fabric < 0 {
		return -time.Duration(lo)
	}
	return time.Duration(lo)
}

// Fabric is how much fabric time passes in a span of wall time, rounded towards zero.
func (d Dilation) Fabric(wall time.Duration) Duration { return wall / Duration(d.Factor()) }

// String writes the factor: "1024".
func (d Dilation) String() string { return strconv.FormatUint(uint64(d.Factor()), 10) }
