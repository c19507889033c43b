package testbed

import (
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/workloads"
)

// connected takes word of connections from the engine to the injectors, whose faults name packets by them.
func (t *traffic) connected() func(workloads.Connection) {
	return func(c workloads.Connection) {
		t.time.loop().Post(func() {
			made := packet.Connection{
				Workload: c.Workload, Flow: uint32(c.Index), Number: uint32(c.Number), From: connectionEnd(c.From), To: connectionEnd(c.To),
			}
			t.known = append(t.known, made)
			t.injectors.Connect(made)
		})
	}
}

func connectionEnd(e workloads.ConnectionEnd) packet.End {
	return packet.End{Port: e.Port, Addr: roce.AddrFrom(e.GID.Unmap()), QPN: e.QPN, PSN: roce.PSN(e.PSN)}
}
