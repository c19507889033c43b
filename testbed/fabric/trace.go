package fabric

import (
	"context"

	"github.com/rocebed/rocebed/topo"
)

// Tracer is a fabric whose NICs can say how messages went through their stages (nics.trace).
type Tracer interface {
	// Traces are those of every port that has any.
	Traces(ctx context.Context) ([]Trace, error)
}

// Trace is what a port's NIC kept of its first messages, drawn for people.
type Trace struct {
	Port topo.PortRef
	Text string
}
