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
		err = errors.Join(err, h.loop.Do(ctx, func() { all = append(all, h.silicon.Traces()...) }))
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
