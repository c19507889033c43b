package verbs

import (
	"time"
)

// RNRDelay is how long a requester waits after an RNR NAK, by the 5-bit timer code that the
// NAK carries (InfiniBand specification 9.7.5.2.8; libibverbs' min_rnr_timer). Code 0 is the
// longest.
var RNRDelay = [32]time.Duration{
	655360 * time.Microsecond,
	10 * time.Microsecond, 20 * time.Microsecond, 30 * time.Microsecond, 40 * time.Microsecond,
	60 * time.Microsecond, 80 * time.Microsecond, 120 * time.Microsecond, 160 * time.Microsecond,
	240 * time.Microsecond, 320 * time.Microsecond, 480 * time.Microsecond, 640 * time.Microsecond,
	960 * time.Microsecond, 1280 * time.Microsecond, 1920 * time.Microsecond, 2560 * time.Microsecond,
	3840 * time.Microsecond, 5120 * time.Microsecond, 7680 * time.Microsecond, 10240 * time.Microsecond,
	15360 * time.Microsecond, 20480 * time.Microsecond, 30720 * time.Microsecond, 40960 * time.Microsecond,
	61440 * time.Microsecond, 81920 * time.Microsecond, 122880 * time.Microsecond, 163840 * time.Microsecond,
	245760 * time.Microsecond, 327680 * time.Microsecond, 491520 * time.Microsecond,
}

// RNRTimerFor is the code of the shortest delay that is at least d; the longest one's (0)
// when there is none, and then exact and enough are false. Exact says that the delay is d.
func RNRTimerFor(d time.Duration) (code uint8, exact, enough bool) {
	for i := 1; i < len(RNRDelay); i++ {
		if RNRDelay[i] >= d {
			return uint8(i), RNRDelay[i] == d, true
		}
	}
	return 0, RNRDelay[0] == d, RNRDelay[0] >= d
}

// ackTimeoutBase is the unit of the local ACK timeout, 4.096 µs (InfiniBand specification
// 9.7.6.1.3).
const ackTimeoutBase = 4096 * time.Nanosecond

// MaxTimeout is the largest local ACK timeout exponent.
const MaxTimeout = 31

// AckTimeout is the local ACK timeout of an exponent from 1 to 31: 4.096 µs × 2^n. The
// specification lets the device wait up to four times as long. Zero means no timeout, and
// gives zero.
func AckTimeout(exponent uint8) time.Duration {
	if exponent == 0 {
		return 0
	}
	return ackTimeoutBase << min(exponent, MaxTimeout)
}

// TimeoutFor is the smallest exponent whose local ACK timeout is at least d, at most 31.
// It is zero, no timeout, for d ≤ 0.
func TimeoutFor(d time.Duration) uint8 {
	if d <= 0 {
		return 0
	}
	for n := uint8(1); n < MaxTimeout; n++ {
		if AckTimeout(n) >= d {
			return n
		}
	}
	return MaxTimeout
}
