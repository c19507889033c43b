package testbed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// Window is a part of a run that is measured by itself. Times are fabric time since the workloads started.
type Window struct {
	From, To time.Duration
	// Queues are egress queues of switches whose depth is looked at every so often; each look counts until the next.
	Queues []Queue
	Every  time.Duration
}

// Queue is an egress queue of a port.
type Queue struct {
	Port   topo.PortRef
	Number int
}

// WindowReadings are what was read of a window.
type WindowReadings struct {
	First, Last metrics.Reading // all counters, when it began and when it ended
	Depths      []Depths        // of Window.Queues, in order
}

// Length is the fabric time between the two readings.
func (w *WindowReadings) Length() time.Duration { return w.Last.At - w.First.At }

// Grown is how much a counter grew in the window, summed over the series that match.
func (w *WindowReadings) Grown(metric string, match func(labels []string) bool) (sum float64) {
	for sign, m := range map[float64]metrics.Reading{-1: w.First, 1: w.Last} {
		for _, s := range m.Samples {
			if s.Name == metric && (match == nil || match(s.Labels)) {
				sum += sign * s.Value
			}
		}
	}
	return sum
}

// Depths is how deep a queue was for how long.
type Depths struct {
	Queue Queue
	Looks int
	all   []look
	last  topo.Bytes
	since time.Duration
}

type look struct {
	bytes topo.Bytes
	held  time.Duration
}

func (d *Depths) add(at time.Duration, bytes topo.Bytes) {
	if d.Looks > 0 {
		d.all = append(d.all, look{d.last, at - d.since})
	}
	d.Looks++
	d.last, d.since = bytes, at
}

// Mean is the depth over the time, in bytes.
func (d *Depths) Mean() float64 {
	var sum, time float64
	for _, l := range d.all {
		sum, time = sum+float64(l.bytes)*float64(l.held), time+float64(l.held)
	}
	if time == 0 {
		return 0
	}
	return sum / time
}

// Quantile is the depth that the queue didn't exceed for a share q of the time, 0 to 1.
func (d *Depths) Quantile(q float64) topo.Bytes {
	all := slices.Clone(d.all)
	slices.SortFunc(all, func(a, b look) int { return int(a.bytes - b.bytes) })
	var total, seen float64
	for _, l := range all {
		total += float64(l.held)
	}
	for _, l := range all {
		if seen += float64(l.held); seen >= q*total {
			return l.bytes
		}
	}
	return 0
}

// windowWatch takes a window's readings. Owned by whoever lets time pass: in real time its own goroutine.
type windowWatch struct {
	Window
	read  WindowReadings
	begun bool
	ended bool
	due   time.Duration
	err   error
}

func newWindowWatch(w Window) *windowWatch {
	v := &windowWatch{Window: w}
	for _, q := range w.Queues {
		v.read.Depths = append(v.read.Depths, Depths{Queue: q})
	}
	return v
}

// measure has the run's window measured, where it is to have one. The function it returns says what became of that.
func (t *traffic) measure() (stop func()) {
	if t.r.opt.Window == nil {
		return func() {}
	}
	t.window = newWindowWatch(*t.r.opt.Window)
	return func() {
		if _, err := t.window.outcome(); err != nil {
			t.r.problem("measuring: %v", err)
		}
	}
}

// look looks at the queues.
func (w *windowWatch) look(ctx context.Context, fab fabric.Fabric, now func() time.Duration) {
	r, ok := fab.(fabric.DepthReader)
	if !ok && len(w.Queues) > 0 {
		w.err = fmt.Errorf("this fabric's queues can't be looked at")
		return
	}
	for i, q := range w.Queues {
		n, err := r.Depth(ctx, q.Port, q.Number)
		if err != nil {
			w.err = err
			return
		}
		w.read.Depths[i].add(now(), n)
	}
}

// stride is called between two strides of virtual time.
func (w *windowWatch) stride(fab fabric.Fabric, at time.Duration, once func() metrics.Reading) {
	switch {
	case w.ended || at < w.From || w.err != nil:
		return
	case !w.begun:
		w.begun, w.read.First, w.due = true, once(), at
	case at >= w.To:
		w.ended, w.read.Last = true, once()
	}
	if at >= w.due {
		w.due = at + w.Every
		w.look(context.Background(), fab, func() time.Duration { return at })
	}
}

// follow takes the readings in real time; it returns when the window is over, or ctx is.
func (w *windowWatch) follow(ctx context.Context, t *traffic) {
	select {
	case <-t.up:
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	until := func(at time.Duration) bool {
		timer.Reset(t.fab.Dilation().Wall(at - t.elapsed()))
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	reading := make(chan metrics.Reading, 2)
	ask := func() { t.s.ask(func(m metrics.Reading) { reading <- m }) }
	if !until(w.From) {
		return
	}
	ask()
	for at := w.From; at < w.To && w.err == nil; at = max(at+w.Every, t.elapsed()) {
		if !until(at) {
			return
		}
		w.look(ctx, t.fab, t.elapsed)
	}
	if !until(w.To) {
		return
	}
	w.look(ctx, t.fab, t.elapsed)
	ask()
	for _, to := range []*metrics.Reading{&w.read.First, &w.read.Last} {
		select {
		case *to = <-reading:
		case <-ctx.Done():
			return
		}
	}
	w.begun, w.ended = true, true
}

// outcome is what was read, or why it wasn't.
func (w *windowWatch) outcome() (*WindowReadings, error) {
	switch {
	case w.err != nil:
		return nil, w.err
	case !w.ended:
		return nil, fmt.Errorf("the run ended before its window from %v to %v did", w.From, w.To)
	}
	return &w.read, nil
}
