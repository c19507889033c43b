//go:build !linux

package testbed

// ProcessIfAsked does nothing: here fabrics have no processes of their own.
func ProcessIfAsked() {}
