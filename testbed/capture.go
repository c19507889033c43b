package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocebed/rocebed/testbed/analysis"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// checkCaptures refuses captures of ports that aren't there, and two that would be one file.
func checkCaptures(s *Scenario, ports []topo.PortRef) error {
	files := map[string]topo.PortRef{}
	for _, p := range ports {
		if _, ok := s.Plan.Port(p); !ok {
			return fmt.Errorf("capture %s: there is no such port in the topology (rocebed graph lists them)", p)
		}
		name := record.CaptureName(p.Node, p.Port)
		if other, twice := files[name]; twice {
			return fmt.Errorf("capture %s: %s is captured to %s already", p, other, name)
		}
		files[name] = p
	}
	return nil
}

// capture begins the captures that were asked for. The function it returns ends them; it is
// called before the readings after the run.
func (t *traffic) capture(ctx context.Context) (stop func()) {
	stops := t.captureLosses(ctx)
	for _, port := range t.r.opt.Captures {
		name := record.CaptureName(port.Node, port.Port)
		c, ok := t.fab.(fabric.Capturer)
		if !ok {
			t.r.problem("capture %s:%s: the %s backend can't capture", port.Node, port.Port, t.r.choice.Backend)
			continue
		}
		file, err := t.r.rec.Stream(name)
		if err != nil {
			t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			continue
		}
		sink, err := record.NewCapture(file, port.Node+":"+port.Port)
		if err != nil {
			t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			continue
		}
		end, err := c.Capture(ctx, port, t.shared(port, sink))
		if err != nil {
			err = errors.Join(err, sink.Close())
			t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			continue
		}
		stops = append(stops, func() {
			written, lost, err := end()
			if err = errors.Join(err, sink.Close()); err != nil {
				t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			}
			t.r.event(record.Event{At: t.elapsed(), Source: "capture", Name: port.Node + ":" + port.Port, What: "ended", Data: map[string]uint64{"written": written, "lost": lost}})
			if lost == 0 && err == nil {
				t.captured = append(t.captured, name)
			}
			if lost > 0 {
				t.r.warnings = append(t.r.warnings, "capture "+port.Node+":"+port.Port+": packets passed that the capture missed")
			}
		})
	}
	return func() {
		for _, f := range stops {
			f()
		}
	}
}

// beforeCapturesEnd reads the counters while all captures still run: packets may be under way when the last workload has ended, and those that pass after the
// captures are in the readings after the run.
func (t *traffic) beforeCapturesEnd(ctx context.Context) []metrics.Sample {
	if len(t.r.opt.Captures) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	samples, err := t.fab.Collect(ctx)
	if err != nil {
		t.r.problem("reading counters before captures end: %v", err)
	}
	return samples
}

// compareCaptures holds the NICs' counters against the captures at their ports. ending are the counters from right before the captures ended.
func (t *traffic) compareCaptures(ending []metrics.Sample) {
	if len(t.captured) == 0 {
		return
	}
	rd, err := record.Open(t.r.rec.Dir())
	if err != nil {
		t.r.problem("captures: %v", err)
		return
	}
	all, err := analysis.CompareCounters(rd, metrics.Standard, t.captured, analysis.Ending{Before: ending, After: t.last.Samples})
	if err != nil {
		t.r.problem("captures: %v", err)
	}
	for _, c := range all {
		t.r.event(record.Event{At: t.elapsed(), Source: "capture", Name: c.Node + ":" + c.Port, What: "compared", Data: c})
		if p := c.Problem(); p != "" {
			t.r.problem("the counters lie: %s", p)
		}
	}
}
