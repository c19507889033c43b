//go:build linux

package soft

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/topo"
)

// Depth implements fabric.DepthReader.
func (f *Fabric) Depth(ctx context.Context, ref topo.PortRef, queue int) (n topo.Bytes, err error) {
	s, node := f.sw[ref.Node], f.byName[ref.Node]
	if s == nil || node == nil {
		return 0, fmt.Errorf("%s: there is no such soft-switch", ref)
	}
	var failed error
	if err = node.loop.Do(ctx, func() { n, failed = s.Depth(ref, queue) }); err != nil {
		return 0, err // the loop may still be at it
	}
	return n, errors.Join(failed)
}
