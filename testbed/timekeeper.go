package testbed

import (
	"context"
	"errors"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
)

// timekeeper is how a fabric's time passes: by itself, or because the run drives it.
type timekeeper interface {
	// loop is the run's control loop, on the fabric's time.
	loop() loop.Loop
	// now is the fabric's time.
	now() loop.Time
	// do runs fn on the control loop and waits for it.
	do(ctx context.Context, fn func()) error
	// sample takes readings from the workloads' time zero on until stop is called.
	sample(s *sampler, t *traffic) (stop func())
	// ask wants a reading soon; then is called with it on the control loop, where ask is called. It never blocks.
	ask(s *sampler, then func(metrics.Reading))
	// await lets time pass until the traffic is over, and returns nil then; else what ended ctx, or
	// errStill.
	await(ctx context.Context, t *traffic) error
	close()
}

// errStill says that in virtual time nothing is left to happen, so that no waiting would help.
var errStill = errors.New("nothing is left to happen")

func timekeeperOf(fab fabric.Fabric, p Progress) timekeeper {
	if v, ok := fab.(fabric.Virtual); ok {
		return newVirtualTime(v, p)
	}
	return &realTime{fab, loop.NewReal(fab.Dilation(), fab.Epoch())}
}

// realTime is that of a fabric that runs by itself.
type realTime struct {
	fab fabric.Fabric
	ctl *loop.Real
}

func (r *realTime) loop() loop.Loop                         { return r.ctl }
func (r *realTime) do(ctx context.Context, fn func()) error { return r.ctl.Do(ctx, fn) }
func (r *realTime) close()                                  { r.ctl.Close() }

// now may be asked on any goroutine.
func (r *realTime) now() loop.Time {
	return loop.Time(r.fab.Dilation().Fabric(sinceEpoch(r.fab)))
}

func (r *realTime) sample(s *sampler, t *traffic) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended, followed := s.start(ctx, t), make(chan struct{})
	go func() {
		defer close(followed)
		if t.window != nil {
			t.window.follow(ctx, t)
		}
	}()
	return func() {
		cancel()
		<-ended
		<-followed
	}
}

func (r *realTime) ask(s *sampler, then func(metrics.Reading)) { s.ask(then) }

func (r *realTime) await(ctx context.Context, t *traffic) error {
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
