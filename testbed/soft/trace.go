//go:build linux

package soft

import (
	"context"
	"errors"

	"github.com/rocebed/rocebed/testbed/fabric"
)

// Traces implements fabric.Tracer: of hosts in this process, then of those in their own.
func (f *Fabric) Traces(ctx context.Context) (all []fabric.Trace, err error) {
	for _, h := range f.hosts {
		var its []fabric.Trace // the loop may still be at it once ctx has ended
		if lerr := h.loop.Do(ctx, func() { its = h.silicon.Traces() }); lerr != nil {
			err = errors.Join(err, lerr)
			continue
		}
		all = append(all, its...)
	}
	for _, h := range f.away {
		if f.cfg.Settings.NICs.Of(h.name).Trace == 0 {
			continue // its process, which may have been killed, needn't be asked
		}
		t, aerr := h.ask(ctx, asked{Do: "traces"})
		if err = errors.Join(err, aerr); t != nil {
			all = append(all, t.Traces...)
		}
	}
	return all, err
}
