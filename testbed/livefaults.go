package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// LiveFaults are faults on a fabric that Up brought up: they go through the same life as a run's, on a control loop of their own.
type LiveFaults struct {
	s      *Scenario
	choice Choice
	fab    fabric.Fabric
	log    *slog.Logger

	ctl       *loop.Real
	injectors *Injectors

	// On the loop.
	run     *faultRun
	waiting []waiter
	watched map[faults.Trigger]func() error // packets that are watched for
	closed  bool

	ends    sync.WaitGroup // of watches and of the readings
	reading chan struct{}  // nil: metrics aren't read; closed: no longer
}

var _ fabric.LiveFaults = (*LiveFaults)(nil)

// waiter is somebody who waits until something holds.
type waiter struct {
	holds func() bool
	done  chan struct{}
}

// NewLiveFaults takes charge of the faults on a fabric that was brought up from a scenario on a backend. Close it before the fabric.
func NewLiveFaults(s *Scenario, choice Choice, fab fabric.Fabric, log *slog.Logger) *LiveFaults {
	l := &LiveFaults{s: s, choice: choice, fab: fab, log: log, ctl: loop.NewReal(fab.Dilation(), fab.Epoch()), watched: map[faults.Trigger]func() error{}}
	l.injectors = NewInjectors(s, choice.Backend, fab, l.ctl)
	l.run = newFaultRun(nil, s.Seed)
	r := l.run
	r.loop, r.dilation, r.injector, r.scope = l.ctl, fab.Dilation(), l.injectors, faults.Scope{Topology: s.Topology, Plan: s.Plan, Seed: s.Seed}
	r.changed, r.event = l.look, l.tell
	r.epoch, r.started = 0, true
	return l
}

func (l *LiveFaults) tell(e record.Event) {
	level := slog.LevelInfo
	switch e.Level {
	case "error":
		level = slog.LevelError
	case "warning":
		level = slog.LevelWarn
	}
	l.log.Log(context.Background(), level, "fault "+e.Name+": "+e.What, "at", e.At, "text", e.Text)
}

// look wakes who waits for what holds now, and ends watches that nothing waits for.
func (l *LiveFaults) look() {
	l.waiting = slices.DeleteFunc(l.waiting, func(w waiter) bool {
		if w.holds() {
			close(w.done)
			return true
		}
		return false
	})
	for t, stop := range l.watched {
		if !l.run.awaits(t) {
			delete(l.watched, t)
			l.ends.Go(func() { l.endWatch(stop) })
		}
	}
}

func (l *LiveFaults) endWatch(stop func() error) {
	if err := stop(); err != nil {
		l.log.Warn("a watch for packets", "error", err)
	}
}

// await waits until something holds, which is looked at on the loop whenever a fault has changed.
func (l *LiveFaults) await(ctx context.Context, holds func() bool) error {
	w := waiter{holds, make(chan struct{})}
	if err := l.ctl.Do(ctx, func() {
		l.waiting = append(l.waiting, w)
		l.look()
	}); err != nil {
		return err
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errClosed = errors.New("the testbed is going down")

// Add implements fabric.LiveFaults.
func (l *LiveFaults) Add(ctx context.Context, file string, source []byte) ([]fabric.FaultState, error) {
	in, err := readFaults(file, source)
	if err != nil {
		return nil, err
	}
	var added []*oneFault
	if derr := l.ctl.Do(ctx, func() { added, err = l.take(in) }); derr != nil || err != nil {
		return nil, errors.Join(derr, err)
	}
	l.watch(ctx, added)
	l.ctl.Post(func() {
		for _, f := range added {
			f.zero = l.ctl.Now()
		}
		for _, f := range added {
			l.run.plan(f)
		}
	})
	err = l.await(ctx, func() bool {
		return !slices.ContainsFunc(added, func(f *oneFault) bool {
			s := &f.spec.Schedule
			dueNow := s.When == nil && s.At == 0 && s.Jitter == 0
			return dueNow && !f.ended && !f.result.Verified && len(f.result.Problems) == 0
		})
	})
	if err != nil {
		return nil, err
	}
	states, err := l.states(ctx, added)
	for _, s := range states {
		if len(s.Problems) > 0 {
			err = errors.Join(err, fmt.Errorf("fault %s: %s", s.Name, strings.Join(s.Problems, "; ")))
		}
	}
	return states, err
}

// take checks faults and takes all of them in, or none.
func (l *LiveFaults) take(in faultSource) ([]*oneFault, error) {
	if l.closed || l.run.ending {
		return nil, errClosed
	}
	var there []string
	var standing []faults.Spec // as they will have been since the new ones began
	for _, f := range l.run.all {
		if over(f) {
			continue
		}
		there = append(there, f.spec.Name)
		s := f.spec
		s.Schedule.At -= l.ctl.Now().Sub(f.zero)
		standing = append(standing, s)
	}
	made, keys, err := in.expand(l.s, there)
	if err != nil {
		return nil, err
	}
	beside := *l.s
	beside.Workloads, beside.Faults, beside.faultKeys, beside.doc = nil, made, keys, in.doc
	if err := in.placed(l.choice.Builder.Check(&beside, l.fab.Dilation())); err != nil {
		return nil, err
	}
	refused := faults.Together(append(standing, made...), l.run.scope)
	var errs []error
	for i, key := range keys {
		if err := refused[len(standing)+i]; err != nil {
			errs = append(errs, in.doc.Locate(key, err))
		}
	}
	if err := in.placed(errors.Join(errs...)); err != nil {
		return nil, err
	}
	var added []*oneFault
	for _, s := range made {
		l.run.all = slices.DeleteFunc(l.run.all, func(f *oneFault) bool { return f.spec.Name == s.Name && over(f) })
		added = append(added, l.run.add(s))
	}
	return added, nil
}

// over says that a fault is done with, and nothing is left of it.
func over(f *oneFault) bool { return f.ended && f.applied == nil && !f.busy && f.clean }

// watch has the fabric look for the packets, and reads the metrics, that faults wait for.
func (l *LiveFaults) watch(ctx context.Context, added []*oneFault) {
	var wanted []faults.Trigger
	measured := false
	_ = l.ctl.Do(ctx, func() {
		for _, t := range l.run.triggers(faults.OnPacket) {
			if l.watched[t] == nil {
				wanted = append(wanted, t)
			}
		}
		measured = len(l.run.triggers(faults.OnMetric)) > 0
		if measured && l.reading == nil {
			l.reading = make(chan struct{})
			l.ends.Go(func() { l.read(l.reading) })
		}
	})
	for _, t := range wanted {
		stop, err := watchFor(context.WithoutCancel(ctx), l.fab, t, func(port topo.PortRef, at loop.Time) {
			l.ctl.Post(func() {
				if l.run.awaits(t) {
					l.run.hear(t, fmt.Sprintf(": it passed %s", port))
				}
			})
		})
		kept := false
		derr := l.ctl.Do(context.WithoutCancel(ctx), func() {
			if kept = !l.closed && l.watched[t] == nil; kept { // else somebody else had the same looked for meanwhile
				l.watched[t] = stop
			}
			for _, f := range added {
				if err != nil && slices.Contains(f.course.Watches(), t) {
					l.run.fail(f, "nobody looks for %q: %v", t, err)
				}
			}
			l.look()
		})
		if derr != nil || !kept {
			l.endWatch(stop)
		}
	}
}

// read takes readings of the metrics as long as a fault waits for one.
func (l *LiveFaults) read(end chan struct{}) {
	timer := time.NewTicker(samplePeriod)
	defer timer.Stop()
	for {
		select {
		case <-end:
			return
		case <-timer.C:
		}
		wanted := false
		if l.ctl.Do(context.Background(), func() { wanted = len(l.run.triggers(faults.OnMetric)) > 0 }) != nil {
			return
		}
		if !wanted {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
		samples, err := l.fab.Collect(ctx)
		cancel()
		if err != nil {
			l.log.Warn("reading counters", "error", err)
		}
		l.ctl.Post(func() { l.run.reading(metrics.Reading{At: l.ctl.Now().Sub(0), Samples: samples}) })
	}
}

// List implements fabric.LiveFaults.
func (l *LiveFaults) List(ctx context.Context) ([]fabric.FaultState, error) {
	var all []*oneFault
	if err := l.ctl.Do(ctx, func() { all = slices.Clone(l.run.all) }); err != nil {
		return nil, err
	}
	return l.states(ctx, all)
}

// Heal implements fabric.LiveFaults.
func (l *LiveFaults) Heal(ctx context.Context, names ...string) ([]fabric.FaultState, error) {
	var meant []*oneFault
	var err error
	derr := l.ctl.Do(ctx, func() {
		for _, f := range l.run.all {
			if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return f.spec.Name == n || strings.HasPrefix(f.spec.Name, n+"/") }) {
				meant = append(meant, f)
			}
		}
		for _, n := range names {
			if !slices.ContainsFunc(meant, func(f *oneFault) bool { return f.spec.Name == n || strings.HasPrefix(f.spec.Name, n+"/") }) {
				err = errors.Join(err, &NoFaultError{n, faultNamesOf(l.run.all)})
			}
		}
		if err == nil {
			l.run.cancel(meant)
		}
	})
	if err = errors.Join(derr, err); err != nil {
		return nil, err
	}
	if err := l.await(ctx, func() bool { return l.run.settledFor(meant) }); err != nil {
		return nil, fmt.Errorf("healing: %w", err)
	}
	states, err := l.states(ctx, meant)
	return states, errors.Join(err, unhealed(states))
}

func faultNamesOf(all []*oneFault) (names []string) {
	for _, f := range all {
		names = append(names, f.spec.Name)
	}
	return names
}

// unhealed is what could not be healed.
func unhealed(states []fabric.FaultState) (err error) {
	for _, s := range states {
		if s.State == fabric.FaultStuck {
			err = errors.Join(err, fmt.Errorf("fault %s: %s", s.Name, strings.Join(s.Problems, "; ")))
		}
	}
	return err
}

// Close implements fabric.LiveFaults.
func (l *LiveFaults) Close(ctx context.Context) error {
	closed := false
	if err := l.ctl.Do(ctx, func() {
		closed = l.closed
		l.closed = true
		l.run.end()
	}); err != nil {
		return nil // it was closed before
	}
	if closed {
		return nil
	}
	err := l.await(ctx, l.run.settled)
	states, serr := l.states(ctx, slices.Clone(l.run.all))
	err = errors.Join(err, serr, unhealed(states))
	_ = l.ctl.Do(context.WithoutCancel(ctx), func() {
		for t, stop := range l.watched {
			delete(l.watched, t)
			l.ends.Go(func() { l.endWatch(stop) })
		}
		if l.reading != nil {
			close(l.reading)
		}
		for _, w := range l.waiting { // nothing changes any more
			close(w.done)
		}
		l.waiting = nil
	})
	l.ends.Wait()
	err = errors.Join(err, l.injectors.Close())
	l.ctl.Close()
	return err
}
