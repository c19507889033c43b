//go:build !linux

package testbed

import "runtime"

func kernelRelease() string { return runtime.GOOS }
