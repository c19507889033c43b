package rnic

import (
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// server is a stage that takes one thing after the other, at a cost that is fixed per byte, per thing, or
// both: start = max(free, arrival). It keeps 2^-10 ns, so that what one loses to whole nanoseconds the
// next gets. Who is served later may have arrived earlier; the server takes them as they are given.
type server struct {
	free    int64  // when it is, in 2^-10 ns
	perByte uint64 // 2^-20 ns; 0: nothing
}

const serverBits = 10

// newServer makes one of a rate in bits a second; 0 is no limit.
func newServer(rate uint64) (s server) {
	s.setRate(rate)
	return s
}

func (s *server) setRate(rate uint64) {
	s.perByte = 0
	if rate > 0 {
		s.perByte = (8*uint64(time.Second)<<(2*serverBits) + rate/2) / rate
	}
}

// serve takes n bytes that are there at a time, and returns when it is through with them, rounded up.
func (s *server) serve(at loop.Time, n int) loop.Time {
	s.free = max(s.free, int64(at)<<serverBits) + int64(uint64(n)*s.perByte>>serverBits)
	return loop.Time((s.free + 1<<serverBits - 1) >> serverBits)
}

// occupy takes something that keeps it busy for a time, and returns when it began.
func (s *server) occupy(at loop.Time, cost loop.Duration) loop.Time {
	start := max(s.free, int64(at)<<serverBits)
	s.free = start + int64(cost)<<serverBits
	return loop.Time(start >> serverBits)
}
