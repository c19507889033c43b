//go:build linux

package soft

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// Capture implements fabric.Capturer: it sees packets as they cross the port's interface. What a port sends is seen when it has
// crossed the link, since that is when it is handed to the interface.
func (f *Fabric) Capture(_ context.Context, port topo.PortRef, sink fabric.PacketSink) (stop func() (given, missed uint64, err error), err error) {
	return f.wiring.Capture(port, f.fabricTime, sink)
}

// Departing implements fabric.Departures. Ports of NICs in a process of their own can't be looked at.
func (f *Fabric) Departing(ref topo.PortRef, sink fabric.PacketSink) (stop func() error, err error) {
	planned, ok := f.cfg.Plan.Port(ref)
	if !ok {
		return nil, fmt.Errorf("%s: there is no such port", ref)
	}
	found := false
	at := f.at(ref, func(_ *port, p *silicon.Port) {
		found = p != nil
		if found {
			err = p.Tap(sink, roce.MAC(planned.MAC), roce.MAC(planned.PeerMAC))
		}
	})
	if err = errors.Join(at, err); err != nil || !found {
		return nil, errors.Join(err, fmt.Errorf("%s: what it sends can't be looked at", ref))
	}
	return func() (err error) {
		at := f.at(ref, func(_ *port, p *silicon.Port) { _, err = p.Untap() })
		return errors.Join(at, err)
	}, nil
}

// Watch implements fabric.Watcher: the kernel picks out what may be of the class as it crosses the port's interface, and it is looked at here.
func (f *Fabric) Watch(_ context.Context, port topo.PortRef, class packet.Class, seen func(loop.Time)) (stop func() error, err error) {
	return f.wiring.Watch(port, class, f.fabricTime, seen)
}

// fabricTime is the fabric's time at a wall time.
func (f *Fabric) fabricTime(at time.Time) loop.Time {
	return loop.Time(f.cfg.Dilation.Fabric(at.Sub(f.epoch)))
}
