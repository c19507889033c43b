package fabric

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// ErrSlow is what KeepUp says where ports carried less than their rate, and nothing else is wrong: rates and times are the
// machine's, bytes and counters the fabric's.
var ErrSlow = errors.New("ports carried less than their rate")

// OnlySlow is ErrSlow with what was slow.
func OnlySlow(err error) error { return onlySlow{err} }

type onlySlow struct{ error }

func (onlySlow) Is(target error) bool { return target == ErrSlow }

// Fabric is a topology brought to life, whatever made it. Its methods may be called from any
// goroutine.
type Fabric interface {
	Topology() *topo.Topology
	Plan() *topo.Plan

	// Dilation and Epoch define the fabric's time: every host's loop has them.
	Dilation() loop.Dilation
	Epoch() time.Time

	// Hosts are the hosts in the topology's order; Host is nil when there is none of the name.
	Hosts() []Host
	Host(name string) Host

	Injector() Injector

	// Collect reads every metric of the fabric once. Samples of what could be read come even
	// with an error.
	Collect(ctx context.Context) ([]metrics.Sample, error)

	// JudgeKeepUp makes KeepUp judge from now on: what was late while queue pairs were being made
	// did no harm. KeepUp says whether the machine has kept up since then, or since the fabric was
	// built: nil, or what was late, by how much, and what was allowed. It is ErrSlow where ports were slow and no more.
	JudgeKeepUp() error
	KeepUp() error

	// Warnings are what was rounded or could not be had exactly, each once, in order.
	Warnings() []string

	// Close takes everything down. It may be called again after an error.
	Close(ctx context.Context) error
}

// Breakable is what a Fabric implements of which something can die that it can't do without. Broken is closed then, and Cause says what it was.
type Breakable interface {
	Broken() <-chan struct{}
	Cause() error
}

// Virtual is what a Fabric implements whose time passes only while it is driven, on whatever
// goroutine drives it. Between two drives nothing of it runs, so that anybody may look at anything.
// Its Dilation and Epoch mean nothing.
type Virtual interface {
	// Control is a loop of the fabric that no node has: what is done on it, and what reaches it, is ordered
	// among the nodes' events, and crosses to them and back in the look-ahead.
	Control() loop.Loop
	// LookAhead is the least time that anything takes from one node to another.
	LookAhead() time.Duration
	// Now is how far time has come.
	Now() loop.Time
	// Next is when something happens next; false when nothing is left to happen.
	Next() (loop.Time, bool)
	// Drive handles all that happens up to a time, that time included, and leaves the clock there.
	Drive(until loop.Time)
	// Events counts what was handled so far.
	Events() uint64
	// Total sums one metric of NICs over all of them, which costs less than Collect.
	Total(metric string) float64
}

// ProcessState is how a host's process is.
type ProcessState string

// The states.
const (
	ProcessRuns    ProcessState = "runs"
	ProcessStopped ProcessState = "stands still"
	ProcessGone    ProcessState = "is gone"
)

// Halter is what a Fabric implements whose hosts' processes can be stopped and killed, together with their NICs. Its methods may be called from any
// goroutine, in virtual time on the control loop; callbacks arrive on an unspecified goroutine.
type Halter interface {
	// Halt makes a host stand still until Resume. Whatever is asked of it meanwhile waits; KeepUp doesn't hold it against the machine.
	Halt(host string, done func(error))
	Resume(host string, done func(error))
	// Kill ends a host's own process for ever; of a host in rocebed's process nothing is changed. KeepUp and Collect don't miss it.
	Kill(host string, done func(error))
	// State reads back how a host's process is.
	State(host string, done func(ProcessState, error))
}

// Addresser is what a Fabric implements that can give a host's port another address, and take it back, while programs run. Both may take a
// while, and be called from any goroutine.
type Addresser interface {
	AddAddress(port topo.PortRef, addr netip.Addr) error
	RemoveAddress(port topo.PortRef, addr netip.Addr) error
}
