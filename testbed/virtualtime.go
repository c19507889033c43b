package testbed

import (
	"context"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
)

// Virtual time is driven in strides, which begin at whole multiples of stride: only between two of them does the
// run look at the fabric, or end, so that what it sees doesn't depend on how the fabric handles its events.
const stride = 5 * time.Microsecond

// A reading is taken every firstPeriod of fabric time at first. After each readingsAPeriod readings the period
// doubles, so that a long run has enough of them and not too many. Large fabrics are read less often: a reading of
// portsAPeriod ports may be taken every firstPeriod, one of twice as many every second.
const (
	firstPeriod     = 50 * time.Microsecond
	readingsAPeriod = 200
	portsAPeriod    = 64
)

// statusEvery is how often progress is shown, in wall time.
const statusEvery = 200 * time.Millisecond

// virtualTime drives a fabric whose time stands still otherwise, on the run's goroutine.
type virtualTime struct {
	fab      fabric.Virtual
	progress Progress

	s        *sampler // nil: no readings
	period   time.Duration
	readings int // in this period
	due      loop.Time
	asked    []func(metrics.Reading)

	shown  time.Time // wall
	events uint64    // when that was
}

func newVirtualTime(v fabric.Virtual, p Progress) *virtualTime {
	return &virtualTime{fab: v, progress: p, shown: time.Now()}
}

func (v *virtualTime) loop() loop.Loop { return v.fab.Control() }
func (v *virtualTime) now() loop.Time  { return v.fab.Now() }
func (v *virtualTime) close()          {}

// do needs no loop: while somebody calls it, nothing runs.
func (v *virtualTime) do(_ context.Context, fn func()) error {
	fn()
	return nil
}

func (v *virtualTime) sample(s *sampler, t *traffic) (stop func()) {
	v.s = s
	v.period = firstPeriod * time.Duration(max(1, portCount(t.r.s)/portsAPeriod))
	return func() { v.s = nil }
}

func portCount(s *Scenario) (n int) {
	for i := range s.Topology.Nodes {
		n += len(s.Topology.Nodes[i].Ports)
	}
	return n
}

func (v *virtualTime) await(ctx context.Context, t *traffic) error {
	for !t.closed {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next, ok := v.fab.Next()
		if !ok {
			return errStill
		}
		next = max(next, v.fab.Now())
		v.fab.Drive(next - next%loop.Time(stride) + loop.Time(stride))
		v.read(t)
		v.show(t)
	}
	return nil
}

// ask waits for the end of the stride: until then other cores may be at work.
func (v *virtualTime) ask(_ *sampler, then func(metrics.Reading)) { v.asked = append(v.asked, then) }

// read takes a reading if one is due, and answers who asked for one: they want to know of retries alone.
func (v *virtualTime) read(t *traffic) {
	if v.s == nil || !t.ready {
		return
	}
	if len(v.asked) > 0 {
		m := v.counted("completer_retry_err")
		for _, then := range v.asked {
			then(m)
		}
		v.asked = v.asked[:0]
	}
	now := v.fab.Now()
	if t.window != nil {
		at := now.Sub(t.zero)
		t.window.stride(t.fab, at, func() metrics.Reading { return v.s.once(context.Background(), metrics.During, at) })
	}
	if now < v.due {
		return
	}
	if v.readings++; v.readings > readingsAPeriod {
		v.readings, v.period = 1, 2*v.period
	}
	v.due = now.Add(v.period)
	m := v.s.once(context.Background(), metrics.During, now.Sub(t.zero))
	if len(t.faults.triggers(faults.OnMetric)) > 0 {
		v.loop().Post(func() { t.faults.reading(m) })
	}
}

// counted is a reading of NICs' totals alone.
func (v *virtualTime) counted(names ...string) (m metrics.Reading) {
	for _, name := range names {
		m.Samples = append(m.Samples, metrics.Sample{Name: name, Value: v.fab.Total(name)})
	}
	return m
}

// show tells how far time has come, and how fast it passes.
func (v *virtualTime) show(t *traffic) {
	since := time.Since(v.shown)
	if since < statusEvery {
		return
	}
	events := v.fab.Events()
	speed := float64(events-v.events) / since.Seconds()
	v.shown, v.events = time.Now(), events
	v.progress.Status(fmt.Sprintf("%s, %.1f million events/s", progressOf(t, v.counted("sent_pkts", "completer_retry_err"), t.elapsed()), speed/1e6))
}
