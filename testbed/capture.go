package testbed

import (
	"context"

	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/record"
)

// capture begins the captures that were asked for. The function it returns ends them; it is
// called before the readings after the run.
func (t *traffic) capture(ctx context.Context) (stop func()) {
	var stops []func()
	for _, port := range t.r.opt.Captures {
		name := record.CapturesDir + "/" + port.Node + "-" + port.Port + ".pcapng"
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
		end, err := c.Capture(ctx, port, sink)
		if err != nil {
			t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			continue
		}
		stops = append(stops, func() {
			written, lost, err := end()
			if err == nil {
				err = sink.Close()
			}
			if err != nil {
				t.r.problem("capture %s:%s: %v", port.Node, port.Port, err)
			}
			t.r.event(record.Event{Source: "capture", Name: port.Node + ":" + port.Port, What: "ended", Data: map[string]uint64{"written": written, "lost": lost}})
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
