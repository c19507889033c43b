package workloads

import (
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Connection is a flow's queue pair and its peer, once both are in RTS.
type Connection struct {
	Workload string
	Index    int // in the workload, as in its results
	Number   int // among all flows of all workloads, from 0, in the order of the specs
	From, To ConnectionEnd
}

// ConnectionEnd is one of them: From is the requester, or the sender of a collective's lane.
type ConnectionEnd struct {
	Port topo.PortRef
	GID  verbs.GID
	QPN  uint32
	PSN  uint32 // the first that it sends, 24 bits
}

// connected wraps a flow's answer: with both ends up it tells of the connection, on the coordinator's loop, and then calls up. The phase of hosts lasts until all
// have heard of the connection.
func (r *run) connected(index int, from, to *end, hosts *gather, ends answer, up func()) answer {
	n := 0
	return func(l loop.Loop, err error, then func()) {
		ends(l, err, func() {
			if then != nil {
				then()
			}
			if err == nil {
				n++
			}
			if err != nil || n < 2 {
				return
			}
			if r.e.cfg.Connected != nil {
				hear := r.e.cfg.Connected(Connection{r.spec.Name, index, r.first + index, from.connection(), to.connection()})
				if hear != nil {
					free := hosts.hold()
					hear(func() { r.e.l.Post(free) })
				}
			}
			if up != nil {
				up()
			}
		})
	}
}

// connection is what a connected end is to others.
func (d *end) connection() ConnectionEnd {
	const psns = 1<<24 - 1
	return ConnectionEnd{d.nic.Port, d.nic.GID, d.qp.Num(), d.psn & psns}
}
