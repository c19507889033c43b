package testbed

import (
	"context"
	"fmt"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
)

// watch has the fabric look for the packets that faults wait for. The function it returns ends that.
func (t *traffic) watch(ctx context.Context) (stop func()) {
	var stops []func() error
	for _, trigger := range t.faults.triggers(faults.OnPacket) {
		end, err := watchFor(ctx, t.fab, trigger, func(port topo.PortRef, at loop.Time) {
			t.time.loop().Post(func() { t.seen(trigger, port, at) })
		})
		stops = append(stops, end)
		if err != nil {
			t.r.problem("faults that wait for %q: %v", trigger, err)
		}
	}
	return func() {
		for _, end := range stops {
			if err := end(); err != nil {
				t.r.problem("%v", err)
			}
		}
	}
}

// seen takes word of a packet that faults wait for, on the loop.
func (t *traffic) seen(trigger faults.Trigger, port topo.PortRef, at loop.Time) {
	if !t.ready { // before the workloads' time zero nothing counts yet: it counts as seen then
		t.sighted = append(t.sighted, func() { t.seen(trigger, port, at) })
		return
	}
	if t.faults.awaits(trigger) {
		t.faults.hear(trigger, fmt.Sprintf(": it passed %s at %v", port, at.Sub(t.zero)))
	}
}

// watchFor has a fabric look for a packet at a port, or at all ports of a node.
func watchFor(ctx context.Context, fab fabric.Fabric, trigger faults.Trigger, seen func(topo.PortRef, loop.Time)) (stop func() error, err error) {
	var stops []func() error
	stop = func() (err error) {
		for _, end := range stops {
			if e := end(); err == nil {
				err = e
			}
		}
		return err
	}
	w, ok := fab.(fabric.Watcher)
	if !ok {
		return stop, fmt.Errorf("this fabric can't watch for packets")
	}
	ports := []topo.PortRef{trigger.At}
	if trigger.At.Port == "" {
		ports = nil
		for _, p := range fab.Plan().Ports(trigger.At.Node) {
			ports = append(ports, p.Ref)
		}
	}
	for _, port := range ports {
		end, err := w.Watch(ctx, port, trigger.Class, func(at loop.Time) { seen(port, at) })
		if err != nil {
			return stop, err
		}
		stops = append(stops, end)
	}
	return stop, nil
}
