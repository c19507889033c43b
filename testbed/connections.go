package testbed

import (
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/workloads"
)

// connected takes word of connections from the engine to the injectors, whose faults name packets by them. In real time workloads wait until faults in force have
// heard of theirs; in virtual time the word is faster than any packet.
func (t *traffic) connected() func(workloads.Connection) func(func()) {
	return func(c workloads.Connection) func(func()) {
		made := packet.Connection{
			Workload: c.Workload, Flow: uint32(c.Index), Number: uint32(c.Number), From: connectionEnd(c.From), To: connectionEnd(c.To),
		}
		hear := func(heard func()) {
			t.time.loop().Post(func() {
				t.known = append(t.known, made)
				t.injectors.Connect(made, heard)
			})
		}
		if _, virtual := t.fab.(fabric.Virtual); virtual {
			hear(func() {})
			return nil
		}
		return hear
	}
}

func connectionEnd(e workloads.ConnectionEnd) packet.End {
	return packet.End{Port: e.Port, Addr: roce.AddrFrom(e.GID.Unmap()), QPN: e.QPN, PSN: roce.PSN(e.PSN)}
}
