//go:build amd64 || arm64

package loop

// Prefetch asks for two cache lines from a timer on, which may be those of what the timer lies in. It waits
// for nothing, where a load would hold up what comes after it.
//
//go:noescape
func Prefetch(t *Timer)

// goroutine tells the calling goroutine from all others that live: it is where the runtime keeps it. Posts need
// it where several workers run: Post says where to, and only the goroutine says where from.
func goroutine() uintptr
