//go:build linux

package soft

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/silicon"
)

// spec is what a host's own process is told first: all that it makes its host from. Its descriptors are, from the
// first one after standard error on: the connection, the connection for descriptors, and a raw packet socket for each port.
type spec struct {
	Model    silicon.HostModel
	Dilation loop.Dilation
	Epoch    time.Duration // on the machine's monotonic clock
	CPU      int
	Ports    []specPort
}

type specPort struct {
	Index int // of the interface
	Room  int
	Delay loop.Duration
}

const (
	firstFD = 3
	specEnv = "ROCEBED_SOFT_NODE" // makes a process a host's own
)

// monotonic is the machine's monotonic clock, which all processes share.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

// asked is what the fabric asks a host's process besides verbs.
type asked struct {
	Do   string // collect, traces, judge, keepup, carrier, rate, nic
	Port int
	Up   bool
	Rate uint64
	NIC  *silicon.NICOrder
}

// told is the answer.
type told struct {
	Samples []metrics.Sample
	Traces  []fabric.Trace
	Slow    bool   // Problem says no more than that
	Problem string // of keeping up
	Hits    uint64
}
