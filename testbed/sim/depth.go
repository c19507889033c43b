package sim

import (
	"context"
	"fmt"

	"github.com/rocebed/rocebed/topo"
)

// Depth implements fabric.DepthReader. It is called between drives.
func (f *Fabric) Depth(_ context.Context, ref topo.PortRef, queue int) (topo.Bytes, error) {
	for _, s := range f.switches {
		if s.name == ref.Node {
			return s.Depth(ref, queue)
		}
	}
	return 0, fmt.Errorf("%s: there is no such switch", ref)
}
