//go:build !amd64 && !arm64

package loop

import (
	"bytes"
	"runtime"
	"strconv"
)

// Prefetch does nothing on this processor.
func Prefetch(*Timer) {}

// goroutine is the caller's number. The runtime tells nobody but the reader of a trace, which begins
// with "goroutine 7 [running]:". That takes microseconds.
func goroutine() uintptr {
	var buf [64]byte
	s := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	end := max(bytes.IndexByte(s, ' '), 0)
	id, err := strconv.ParseUint(string(s[:end]), 10, 64)
	if err != nil {
		panic("loop: a trace of the runtime begins unlike \"goroutine N \": " + string(s))
	}
	return uintptr(id)
}
