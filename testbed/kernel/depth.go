//go:build linux

package kernel

import (
	"context"
	"fmt"

	"github.com/rocebed/rocebed/topo"
)

// Depth implements fabric.DepthReader, where switches have the port engine.
func (f *Fabric) Depth(_ context.Context, ref topo.PortRef, queue int) (topo.Bytes, error) {
	number, ok := f.numbers[ref]
	if f.engine == nil || !ok {
		return 0, fmt.Errorf("%s: queues can be looked at only where the port engine keeps them", ref)
	}
	return f.engine.Depth(number, queue)
}
