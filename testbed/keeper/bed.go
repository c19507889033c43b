package keeper

import (
	"context"

	"github.com/rocebed/rocebed/testbed/fabric"
)

// Bed is a testbed that is up: a fabric on this machine or in a guest. Its methods may be called
// from any goroutine.
type Bed interface {
	Status(ctx context.Context) (Status, error)
	// Program says how a process becomes a program on the node.
	Program(ctx context.Context, node string) (Program, error)
	Metrics(ctx context.Context) (Metrics, error)
	// Faults come and go on the testbed; nil: it has none of the kind.
	Faults() fabric.LiveFaults
	// Ended is closed when the testbed ends without being asked to; Err says why. A nil channel
	// never is.
	Ended() <-chan struct{}
	Err() error
	// Close heals its faults and takes it down.
	Close(ctx context.Context) error
}
