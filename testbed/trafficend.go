package testbed

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
)

// Once workloads were told to stop, what is outstanding may complete for stopGently; then queue
// pairs are moved to the error state, and all must be over within stopDeadline. Wall times.
const (
	stopGently        = 5 * time.Second
	stopGentlyVirtual = time.Second // what is outstanding may be more than a machine computes in any time that one waits
	stopDeadline      = 60 * time.Second
)

// whole is ctx for as long as the fabric is whole: what breaks it is the cause that it ends for, and is noted at once.
func (t *traffic) whole(ctx context.Context) (context.Context, func()) {
	b, ok := t.fab.(fabric.Breakable)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-b.Broken():
			cause := b.Cause()
			t.time.loop().Post(func() {
				t.tell(record.Event{Source: "fabric", What: "broken", Text: cause.Error(), Level: "error"})
			})
			cancel(cause)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// wait returns when the run has ended, or has been wound down after ctx ended or nothing was left
// to wait for.
func (t *traffic) wait(ctx context.Context) {
	err := t.time.await(ctx, t)
	switch {
	case err == nil:
		return
	case errors.Is(err, errStill):
		t.r.problem("at %v of fabric time nothing was left to happen, and still unfinished: %s", t.elapsed(), strings.Join(t.unfinished(), ", "))
	default:
		t.r.step("interrupted: stopping workloads and healing")
		t.r.problem("interrupted: %v", err)
	}
	t.time.loop().Post(t.faults.end)
	if len(t.r.s.Workloads) > 0 {
		patience := stopGently
		if _, virtual := t.fab.(fabric.Virtual); virtual {
			patience = stopGentlyVirtual
		}
		gentle, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		t.engine.Stop(gentle)
		if errors.Is(t.time.await(gentle, t), errStill) {
			cancel()
		}
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDeadline)
	defer cancel()
	for {
		switch err := t.time.await(deadline, t); {
		case err == nil:
			return
		case errors.Is(err, errStill) && deadline.Err() == nil: // the order to abort is on its way from another goroutine
			time.Sleep(time.Millisecond)
		default:
			t.r.problem("workloads or faults did not stop within %v", stopDeadline)
			return
		}
	}
}

// unfinished are the workloads and faults that the run still waits for.
func (t *traffic) unfinished() (out []string) {
	for _, name := range workloadNames(t.r.s.Workloads) {
		if !t.finished[name] {
			out = append(out, "workload "+name)
		}
	}
	for _, f := range t.faults.all {
		if f.busy {
			out = append(out, "fault "+f.spec.Name)
		}
	}
	return out
}
