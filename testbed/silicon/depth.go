package silicon

import (
	"fmt"

	"github.com/rocebed/rocebed/topo"
)

// Depth is how many bytes wait in an egress queue of a port. It is asked on the switch's loop.
func (s *Switch) Depth(ref topo.PortRef, queue int) (topo.Bytes, error) {
	for i, p := range s.Ports {
		if p.Ref == ref {
			st := s.Stats(i)
			return topo.Bytes(st.Queues[queue&7].Bytes), nil
		}
	}
	return 0, fmt.Errorf("%s: there is no such port", ref)
}
