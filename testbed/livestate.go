package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo/strict"
)

// hitsWithin is how long an injector may take to say what a fault in force has hit, in wall time.
const hitsWithin = 5 * time.Second

// NoFaultError says that no fault of a testbed is called that.
type NoFaultError struct {
	Name  string
	There []string
}

func (e *NoFaultError) Error() string {
	return fmt.Sprintf("there is no fault %q%s (rocebed fault list)", e.Name, strict.DidYouMean(e.Name, e.There))
}

// Wrong marks it as an error of whoever asks.
func (e *NoFaultError) Wrong() {}

// cancel ends faults whatever their schedules say: those in force are healed one after the other, the last applied first.
func (r *faultRun) cancel(all []*oneFault) {
	for _, f := range all {
		if f.ended && f.applied == nil {
			continue
		}
		f.cancelled, f.spent = true, true
		if f.applied == nil && !f.busy {
			if f.armed {
				r.loop.Disarm(&f.timer)
				f.armed = false
			}
			r.plan(f)
		}
	}
	r.cancelNext()
}

// cancelNext heals the fault that was applied last of those that were told to end, unless one is on its way out.
func (r *faultRun) cancelNext() {
	for _, f := range slices.Backward(r.active) {
		switch {
		case !f.cancelled:
			continue
		case f.busy || f.healing || f.applied == nil:
			return // and the next one when it is healed
		}
		if f.armed {
			r.loop.Disarm(&f.timer)
			f.armed = false
		}
		r.heal(f)
		return
	}
}

// settledFor says that none of some faults is in force or comes back.
func (r *faultRun) settledFor(all []*oneFault) bool {
	return !slices.ContainsFunc(all, func(f *oneFault) bool { return !f.ended || f.busy || slices.Contains(r.active, f) })
}

// states tells how far faults have come, with what those in force have hit so far.
func (l *LiveFaults) states(ctx context.Context, all []*oneFault) ([]fabric.FaultState, error) {
	states := make([]fabric.FaultState, len(all))
	left := make(chan struct{}, len(all))
	err := l.ctl.Do(ctx, func() {
		for i, f := range all {
			states[i] = l.state(f)
			if f.applied == nil || f.healing {
				left <- struct{}{}
				continue
			}
			f.applied.Hits(func(n uint64, err error) {
				l.ctl.Post(func() {
					states[i].Hits += int64(n)
					if err != nil {
						states[i].Note = fmt.Sprintf("its hits can't be counted: %v", err)
					}
					left <- struct{}{}
				})
			})
		}
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, hitsWithin)
	defer cancel()
	for range all {
		select {
		case <-left:
		case <-ctx.Done():
			var so []fabric.FaultState
			err := l.ctl.Do(context.WithoutCancel(ctx), func() { so = slices.Clone(states) })
			return so, errors.Join(err, errors.New("not every injector has said what it hit"))
		}
	}
	return states, nil
}

// state is how far a fault has come, on the loop.
func (l *LiveFaults) state(f *oneFault) fabric.FaultState {
	s := fabric.FaultState{
		Name: f.spec.Name, Kind: string(f.spec.Kind), At: f.spec.At, Strikes: f.result.Strikes, Hits: f.result.Hits,
		Verified: f.result.Verified, Problems: slices.Clone(f.result.Problems),
	}
	switch {
	case f.applied != nil && !f.healing && f.result.Strikes > 0:
		s.State = fabric.FaultInForce
		since := l.wall(f.since.Sub(0))
		s.Since = &since
		if turn, state := f.course.Turn(f.window - 1); state == faults.Due && turn.End != faults.Forever {
			s.Note = "until " + l.clock(f, turn.End)
		} else if u := f.spec.Schedule.Until; u != nil {
			s.Note = "until " + u.String()
		}
	case f.busy || f.healing:
		s.State = fabric.FaultBusy
	case f.waiting:
		s.State, s.Note = fabric.FaultWaiting, "for "+f.spec.Schedule.When.String()
	case f.armed:
		s.State, s.Note = fabric.FaultPlanned, "at "+l.clock(f, f.turn.Start)
	case !f.clean:
		s.State = fabric.FaultStuck
	case len(f.result.Problems) > 0:
		s.State, s.Note = fabric.FaultFailed, strings.Join(f.result.Problems, "; ")
	case f.result.Strikes == 0:
		s.State = fabric.FaultNever
	default:
		s.State = fabric.FaultHealed
	}
	return s
}

func (l *LiveFaults) wall(sinceEpoch time.Duration) time.Time {
	return l.fab.Epoch().Add(l.fab.Dilation().Wall(sinceEpoch)).Round(0)
}

func (l *LiveFaults) clock(f *oneFault, at time.Duration) string {
	return l.wall(f.zero.Sub(0) + at).Format("15:04:05.000")
}
