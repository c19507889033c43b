//go:build !linux

package testbed

import "runtime"

func kernelRelease() string { return runtime.GOOS }

// ProcessIfAsked does nothing here: no fabric on this system has processes of its own.
func ProcessIfAsked() {}
