//go:build linux

package kernel

import (
	"log/slog"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// Config is what a fabric is built from. Testbed, Plan and Dilation are required.
type Config struct {
	Testbed  *linux.Testbed
	Plan     *topo.Plan
	Dilation loop.Dilation
	NICs     fabric.NICSettings
	Switches fabric.SwitchSettings
	// Foreign, if set, makes the nodes whose kinds this backend doesn't.
	Foreign Foreign
	// Seed is where all randomness of faults comes from.
	Seed uint64
	// Faults are those that are known beforehand: ports become what they take.
	Faults []faults.Spec
	engine bool // the ports are the engine's
	flows  int  // queue pairs that may be below line rate at once; 0: mostFlows

	// Log says what is being done; nil: slog.Default.
	Log *slog.Logger
	// Progress, if set, hears how far the build is.
	Progress func(stage string, done, total int)
}

// hostQueue is the queue of a host's own port. rxe's throttle keeps it short; it must never
// drop, since rxe takes a failed local transmission for a broken QP.
const hostQueue topo.Bytes = 1 << 30

// leastTCPRTO is TCP's least retransmission timeout on the fabric, in fabric time. Networks like
// these set it to 1–10 ms; the kernel's 200 ms of wall time would be 0.2 ms at a dilation of 1024.
const (
	leastTCPRTO   = time.Millisecond
	kernelsTCPRTO = 200 * time.Millisecond
)

func (c *Config) tcpRTO() time.Duration {
	if rto := c.Dilation.Wall(leastTCPRTO); rto > kernelsTCPRTO {
		return rto
	}
	return 0
}

// wallRate is a link's rate after dilation, rounded to the nearest byte/s.
func wallRate(r topo.Rate, d loop.Dilation) topo.Rate {
	f := uint64(d.Factor()) * 8
	return topo.Rate((uint64(r) + f/2) / f * 8)
}

// port is what a port's tree is declared to be before any fault.
func (c *Config) port(p topo.PlanPort, role topo.Role) tc.Port {
	l := &c.Plan.Topology.Links[p.Link]
	q := tc.Priority{Limit: hostQueue}
	if role == topo.Switch {
		m := c.Switches.Of(p.Ref.Node)
		q.Limit = m.BufferBytes()
		if e := m.ECN; e != nil {
			q.Marker = &tc.Marker{Kmin: e.KMin, Kmax: e.KMax, Pmax: e.PMax}
		}
	}
	return tc.Port{Rate: wallRate(l.Rate, c.Dilation), MTU: l.MTU, Priorities: []tc.Priority{q}}
}
