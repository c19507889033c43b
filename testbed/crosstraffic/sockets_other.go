//go:build !linux

package crosstraffic

import (
	"errors"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
)

// sockets has no namespaces to open any in.
func (in *Injector) sockets(spec *faults.Spec, _ []pair, done func(fabric.Applied, error)) {
	in.answer(func() { done(nil, named(spec.Name, "apply", errors.New("there are no namespaces on this system"))) })
}
