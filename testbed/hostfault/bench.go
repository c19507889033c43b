package hostfault

import (
	"slices"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads"
)

// bench is the ends of queue pairs that programs have at a NIC, and what happens to them there. It lives on the NIC's loop.
type bench struct {
	loop loop.Loop
	ends []*workloads.End
	rnr  *unready // nil: receives are posted as they should be
}

// Opened implements workloads.Watcher.
func (in *Injector) Opened(e *workloads.End) {
	b := in.benches[e.Port]
	b.ends = append(b.ends, e)
	if b.rnr != nil && meant(b.rnr.spec, e) {
		_ = e.HoldReceives(&b.rnr.held) // holding back can't fail
	}
}

// Closed implements workloads.Watcher.
func (in *Injector) Closed(e *workloads.End) {
	b := in.benches[e.Port]
	b.ends = slices.DeleteFunc(b.ends, func(have *workloads.End) bool { return have == e })
}
