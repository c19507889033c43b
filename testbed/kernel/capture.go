//go:build linux

package kernel

import (
	"context"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// Capture implements fabric.Capturer: it sees packets as they cross the port's interface.
func (f *Fabric) Capture(_ context.Context, port topo.PortRef, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	// The kernel stamps packets with the wall clock, which may be set meanwhile; the epoch's
	// wall reading is compared with it, and a step shows as one in the capture.
	return f.wiring.Capture(port, f.fabricTime, sink)
}

// Watch implements fabric.Watcher: the kernel picks out what may be of the class as it crosses the port's interface, and it is looked at here.
func (f *Fabric) Watch(_ context.Context, port topo.PortRef, class packet.Class, seen func(loop.Time)) (stop func() error, err error) {
	return f.wiring.Watch(port, class, f.fabricTime, seen)
}

// fabricTime is the fabric's time at a wall time.
func (f *Fabric) fabricTime(at time.Time) loop.Time {
	return loop.Time(f.cfg.Dilation.Fabric(at.Sub(f.epoch)))
}
