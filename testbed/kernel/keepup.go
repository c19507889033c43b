//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// How late a host's loop may be, in wall time: 99 in 100 of its timers, and any. An emulated
// machine's scheduling alone makes 10 ms now and then; what a loop does late is posting work
// and checking data, never sending packets.
const (
	lateAllowed     = 50 * time.Millisecond
	lateEverAllowed = 2 * time.Second
	// Percentiles of a few timers say nothing.
	leastTimers = 100
)

// baseline is how the machine was when the fabric was built.
type baseline struct {
	softnet map[int]uint64
	loops   map[string]loop.Stats
}

func (f *Fabric) startKeepUp() (err error) {
	f.base.loops = map[string]loop.Stats{}
	for _, h := range f.hosts {
		f.base.loops[h.name] = h.loop.Stats()
	}
	f.base.softnet, err = softnetDrops()
	return err
}

// KeepUp says whether the machine has kept up since the fabric was built. It has not when a
// host's loop ran late, a CPU dropped packets because its backlog was full, a host's own port
// dropped a packet that it was to send (rxe then sees a broken QP), or a cable dropped one.
func (f *Fabric) KeepUp() error {
	var errs []error
	for _, h := range f.hosts {
		late := h.loop.Stats().Since(f.base.loops[h.name]).Late
		if p := late.Percentile(99); late.Count >= leastTimers && p > lateAllowed {
			errs = append(errs, fmt.Errorf("%s: 1 in 100 of the loop's timers was more than %v late (wall time), %v is allowed", h.name, p, lateAllowed))
		}
		if late.Max > lateEverAllowed {
			errs = append(errs, fmt.Errorf("%s: a timer of the loop was %v late (wall time), %v is allowed", h.name, late.Max, lateEverAllowed))
		}
	}
	errs = append(errs, f.machineDrops(), f.localDrops())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the machine did not keep up (a larger dilation asks less of it): %w", err)
	}
	return nil
}

func (f *Fabric) machineDrops() error {
	now, err := softnetDrops()
	errs := []error{err}
	for cpu, n := range now {
		if n > f.base.softnet[cpu] {
			errs = append(errs, fmt.Errorf("CPU %d dropped %d packets because its backlog was full", cpu, n-f.base.softnet[cpu]))
		}
	}
	return errors.Join(errs...)
}

// localDrops are packets that were lost where nothing may be lost.
func (f *Fabric) localDrops() error {
	var errs []error
	for _, h := range f.hosts {
		trees, err := h.ports.trees()
		errs = append(errs, err)
		for port, tree := range trees {
			for _, r := range tree {
				if r.Spec.Kind() == "bfifo" && r.Stats.Drops > 0 {
					errs = append(errs, fmt.Errorf("%s:%s: the host's own queue dropped %d packets", h.name, port, r.Stats.Drops))
				}
			}
		}
	}
	lines, err := f.cables.DelayLines()
	errs = append(errs, err)
	for i := range f.Topology().Links {
		l := &f.Topology().Links[i]
		for _, from := range []topo.PortRef{l.A, l.B} {
			if n := lines[from].Drops; n > 0 {
				errs = append(errs, fmt.Errorf("%s: the delay line behind it dropped %d packets", from, n))
			}
		}
	}
	return errors.Join(errs...)
}
