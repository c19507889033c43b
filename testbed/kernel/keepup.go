//go:build linux

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// How late a host's loop may be: 99 in 100 of its timers by lateAllowed of wall time or
// lateAllowedFabric of fabric time, whichever is more, and none by more than lateEverAllowed. An
// emulated machine's scheduling alone makes 10 ms now and then; what a loop does late is posting
// work and checking data, never sending packets or acknowledging them.
const (
	lateAllowed       = 50 * time.Millisecond
	lateAllowedFabric = 250 * time.Microsecond
	lateEverAllowed   = 2 * time.Second
	// Percentiles of a few timers say nothing.
	leastTimers = 100
)

// baseline is how the machine was when the fabric was built.
type baseline struct {
	softnet map[int]uint64
	loops   map[string]loop.Stats
	cpus    cpuTimes
}

// JudgeKeepUp makes KeepUp judge from now on.
func (f *Fabric) JudgeKeepUp() (err error) {
	base := baseline{loops: map[string]loop.Stats{}}
	for _, h := range f.hosts {
		base.loops[h.name] = h.loop.Stats()
	}
	if base.softnet, err = linux.SoftnetDrops(); err != nil {
		return err
	}
	if base.cpus, err = readCPUTimes(); err != nil {
		return err
	}
	if f.watch != nil {
		f.watch.forget()
	}
	ports := map[topo.PortRef]engine.Reading{}
	for ref, number := range f.numbers {
		if ports[ref], err = f.engine.Read(number); err != nil {
			return err
		}
	}
	f.portBase.Store(&ports)
	f.mu.Lock()
	f.base = base
	f.mu.Unlock()
	return nil
}

// KeepUp says whether the machine has kept up since JudgeKeepUp. It has not when a
// host's loop ran late, a CPU dropped packets because its backlog was full, a host's own port
// dropped a packet that it was to send (rxe then sees a broken QP), a cable dropped one, or a port's shaper
// gave too little of its rate while packets waited for it.
func (f *Fabric) KeepUp() error {
	f.mu.Lock()
	base := f.base
	f.mu.Unlock()
	var errs []error
	for _, h := range f.hosts {
		late := h.loop.Stats().Since(base.loops[h.name]).Late
		allowed := max(lateAllowed, f.cfg.Dilation.Wall(lateAllowedFabric))
		if p := late.Percentile(99); late.Count >= leastTimers && p > allowed {
			errs = append(errs, fmt.Errorf("%s: 1 in 100 of the loop's timers was more than %v late (wall time), %v is allowed", h.name, p, allowed))
		}
		if worst := late.Percentile(100); worst > lateEverAllowed {
			errs = append(errs, fmt.Errorf("%s: a timer of the loop was %v late (wall time), %v is allowed", h.name, worst, lateEverAllowed))
		}
	}
	if f.watch != nil {
		_, _, err := f.watch.effort()
		errs = append(errs, err)
	}
	errs = append(errs, linux.NoSoftnetDropsSince(base.softnet), f.localDrops())
	errs = append(errs, f.engineKeptUp()...)
	slow := f.slowPorts()
	if slow != nil && errors.Join(errs...) == nil {
		slow = fabric.OnlySlow(slow)
	}
	if err := errors.Join(append(errs, slow)...); err != nil {
		return fmt.Errorf("the machine did not keep up (--dilation %d asks less of it, and so does a machine that does nothing else): %w", 2*uint64(f.cfg.Dilation.Factor()), err)
	}
	return nil
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
