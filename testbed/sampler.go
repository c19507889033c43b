package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// A reading is taken every samplePeriod of wall time, and never more of the time than one part
// in sampleShare: on a slow machine reading must not become the load.
const (
	samplePeriod   = time.Second
	sampleShare    = 10
	collectTimeout = 20 * time.Second
)

// sampler takes readings of a fabric. In real time its goroutine owns the record's readings while it runs.
type sampler struct {
	r      *run
	fab    fabric.Fabric
	time   timekeeper
	asked  chan func(metrics.Reading) // readings wanted at once
	failed map[string]bool            // errors that were noted already
}

func newSampler(r *run, fab fabric.Fabric, time timekeeper) *sampler {
	return &sampler{r: r, fab: fab, time: time, asked: make(chan func(metrics.Reading), 256), failed: map[string]bool{}}
}

// ask wants a reading soon; then is called with it on the control loop. It never blocks.
func (s *sampler) ask(then func(metrics.Reading)) {
	select {
	case s.asked <- then:
	default: // as many are waiting already: one workload's retry count is then unknown
	}
}

// once takes one reading and keeps it.
func (s *sampler) once(ctx context.Context, phase metrics.Phase, at time.Duration) metrics.Reading {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	samples, err := s.fab.Collect(ctx)
	if err != nil && !s.failed[err.Error()] {
		s.failed[err.Error()] = true
		if phase == metrics.During {
			s.r.opt.Log.Warn("reading counters", "error", err)
		} else {
			s.r.problem("reading counters: %v", err)
		}
	}
	if err := metrics.Standard.Check(samples); err != nil && !s.failed[err.Error()] {
		s.failed[err.Error()] = true
		s.r.event(record.Event{At: at, Source: "run", What: "unregistered metrics", Text: err.Error(), Level: "error"})
	}
	m := metrics.Reading{Phase: phase, At: at, Samples: samples}
	s.r.reading(m)
	return m
}

// start takes readings until ctx ends, then closes ended.
func (s *sampler) start(ctx context.Context, t *traffic) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-t.up: // before that there is no time to give a reading
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(samplePeriod)
		defer timer.Stop()
		for {
			var then []func(metrics.Reading)
			select {
			case <-ctx.Done():
				return
			case f := <-s.asked:
				then = append(then, f)
			case <-timer.C:
			}
			for more := true; more; {
				select {
				case f := <-s.asked:
					then = append(then, f)
				default:
					more = false
				}
			}
			begin := time.Now()
			var at time.Duration
			if s.time.do(ctx, func() { at = s.time.loop().Now().Sub(t.zero) }) != nil {
				return
			}
			m := s.once(ctx, metrics.During, at)
			for _, f := range then {
				s.time.loop().Post(func() { f(m) })
			}
			s.time.loop().Post(func() { t.faults.reading(m) })
			s.status(m, t)
			timer.Reset(max(samplePeriod, sampleShare*time.Since(begin)))
		}
	}()
	return ended
}

// status shows how far the traffic has come.
func (s *sampler) status(m metrics.Reading, t *traffic) {
	var text string
	// Not the reading's time: a busy machine takes long to read, and events have been told since.
	if s.time.do(context.Background(), func() { text = progressOf(t, m, t.elapsed()) }) == nil {
		s.r.opt.Progress.Status(text)
	}
}

// progressOf is how far the traffic has come, by a reading. It is called on the control loop.
func progressOf(t *traffic, m metrics.Reading, at time.Duration) string {
	var packets, retried float64
	for _, x := range m.Samples {
		switch x.Name {
		case "sent_pkts":
			packets += x.Value
		case "completer_retry_err":
			retried += x.Value
		}
	}
	return fmt.Sprintf("%v of fabric time: %d of %d workloads done, %.0f packets sent, %.0f retries",
		at.Round(10*time.Microsecond), len(t.finished), len(t.r.s.Workloads), packets, retried)
}
