//go:build !linux

package kernel

import "context"

// Probe finds nothing where there is no Linux.
func Probe(context.Context) []Feature {
	return []Feature{{
		Name: "linux", Level: Needed, Why: "this machine doesn't run Linux",
		For: "everything that the kernel backend does", Cost: "no kernel backend, no guest", Get: "a Linux machine, or one of the backends that need none",
	}}
}
