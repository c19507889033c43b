package fabric

import (
	"context"

	"github.com/rocebed/rocebed/topo"
)

// DepthReader is what a Fabric implements whose switches' egress queues can be looked at by themselves, often.
type DepthReader interface {
	// Depth is how many bytes wait in a queue of a port now, as the metric queue_depth_bytes has it.
	Depth(ctx context.Context, port topo.PortRef, queue int) (topo.Bytes, error)
}
