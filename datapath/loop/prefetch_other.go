//go:build !amd64 && !arm64

package loop

// Prefetch does nothing on this processor.
func Prefetch(*Timer) {}
