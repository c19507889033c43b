//go:build linux

package kernel

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// routing is the fabric's control plane: when a link goes down, the switches on both ends see it
// by themselves, and the others must hear of it, or they go on sending to a switch that has no
// way on. It converges as fast as it is told, in a few milliseconds of wall time.
type routing struct {
	plan   *topo.Plan
	wiring *linux.Wiring

	mu      sync.Mutex
	down    map[int]bool            // links, by index
	changed map[string][]topo.Route // what switches have instead of the plan's routes
}

func newRouting(p *topo.Plan, w *linux.Wiring) *routing {
	return &routing{plan: p, wiring: w, down: map[int]bool{}, changed: map[string][]topo.Route{}}
}

// set says that a link is down or up, and makes the switches' routes what they are then. After
// an error it may be called again.
func (r *routing) set(link int, down bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if down {
		r.down[link] = true
	} else {
		delete(r.down, link)
	}
	want := r.plan.Converged(r.down)
	nodes := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(r.changed))
	slices.Sort(nodes)
	var errs []error
	for _, n := range slices.Compact(nodes) {
		if kindOf(r.plan.Node(n)) != topo.LinuxSwitch {
			continue // its own routing hears of it
		}
		routes := slices.Concat(want[n], r.restored(n, want[n]))
		if err := r.wiring.SetRoutes(n, routes); err != nil {
			errs = append(errs, err) // what is changed stays noted, and is put right the next time
			continue
		}
		if len(want[n]) > 0 {
			r.changed[n] = want[n]
		} else {
			delete(r.changed, n)
		}
	}
	return errors.Join(errs...)
}

// restored are the plan's routes of a node in place of those that were changed and aren't any more.
func (r *routing) restored(node string, want []topo.Route) []topo.Route {
	has := func(routes []topo.Route, dst netip.Prefix) bool {
		return slices.ContainsFunc(routes, func(o topo.Route) bool { return o.Dst == dst })
	}
	var out []topo.Route
	if len(r.changed[node]) == 0 {
		return nil
	}
	for _, route := range r.plan.Routes(node) {
		if has(r.changed[node], route.Dst) && !has(want, route.Dst) {
			out = append(out, route)
		}
	}
	return out
}
