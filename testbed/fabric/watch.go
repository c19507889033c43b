package fabric

import (
	"context"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// Watcher is a fabric that can tell when a packet of a class first passes a port.
type Watcher interface {
	// Watch has seen called with the fabric's time when a packet of one of the classes first passes the port, in either
	// direction: once, and on an unspecified goroutine; in virtual time where the port's node is. The function it returns ends
	// the watch; its error says that packets passed unseen. In virtual time both are called between drives.
	Watch(ctx context.Context, port topo.PortRef, class packet.Class, seen func(at loop.Time)) (stop func() error, err error)
}
