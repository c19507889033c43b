//go:build amd64 || arm64

package loop

// Prefetch asks for two cache lines from a timer on, which may be those of what the timer lies in. It waits
// for nothing, where a load would hold up what comes after it.
//
//go:noescape
func Prefetch(t *Timer)
