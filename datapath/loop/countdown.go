package loop

import "sync/atomic"

// Countdown returns what is to be called n times, on any goroutine; the last call calls done. With n = 0 nothing ever does.
func Countdown(n int, done func()) (one func()) {
	var left atomic.Int64
	left.Store(int64(n))
	return func() {
		if left.Add(-1) == 0 {
			done()
		}
	}
}
