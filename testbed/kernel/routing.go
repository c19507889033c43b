//go:build linux

package kernel

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

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
	late    map[string]*lateness    // switches that hear of links late
}

// lateness is what a switch has not heard of yet.
type lateness struct {
	by      string // the fault
	delay   time.Duration
	untold  [][]topo.Route // what it should have instead of the plan's routes, state by state
	changes uint64         // that came late
	err     error          // of the last one
}

func newRouting(p *topo.Plan, w *linux.Wiring) *routing {
	return &routing{plan: p, wiring: w, down: map[int]bool{}, changed: map[string][]topo.Route{}, late: map[string]*lateness{}}
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
	for n, l := range r.late {
		if len(l.untold) > 0 {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	var errs []error
	for _, n := range slices.Compact(nodes) {
		if kindOf(r.plan.Node(n)) != topo.LinuxSwitch {
			continue // its own routing hears of it
		}
		if l := r.late[n]; l != nil {
			l.untold = append(l.untold, want[n])
			time.AfterFunc(l.delay, func() { r.hear(n, l) })
			continue
		}
		errs = append(errs, r.put(n, want[n]))
	}
	return errors.Join(errs...)
}

// put gives a switch what it should have instead of the plan's routes. After an error what was changed stays noted, and is put right the next time.
func (r *routing) put(node string, want []topo.Route) error {
	if err := r.wiring.SetRoutes(node, slices.Concat(want, r.restored(node, want))); err != nil {
		return err
	}
	if len(want) > 0 {
		r.changed[node] = want
	} else {
		delete(r.changed, node)
	}
	return nil
}

// hear tells a switch of the first thing that it has not heard of.
func (r *routing) hear(node string, l *lateness) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late[node] != l || len(l.untold) == 0 { // it has been hastened meanwhile
		return
	}
	if l.err = r.put(node, l.untold[0]); l.err == nil {
		l.untold = l.untold[1:]
		l.changes++
	}
}

// delay makes a switch hear so much later of links, from now on.
func (r *routing) delay(node, fault string, by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[node] = &lateness{by: fault, delay: by}
}

// hasten ends that: what the switch has not heard of it hears now. It says how many changes came late. After an error it may be called again.
func (r *routing) hasten(node string) (late uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.late[node]
	if l == nil {
		return 0, nil
	}
	if n := len(l.untold); n > 0 {
		if err := r.put(node, l.untold[n-1]); err != nil {
			return 0, errors.Join(l.err, err)
		}
		l.changes += uint64(n)
		l.untold = nil
	}
	delete(r.late, node)
	return l.changes, nil
}

// lateBy is the fault that has a switch hear of links late; empty: none.
func (r *routing) lateBy(node string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.late[node]; l != nil {
		return l.by
	}
	return ""
}

// lateChanges are the changes of a switch's routes that have come late so far.
func (r *routing) lateChanges(node string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.late[node]; l != nil {
		return l.changes
	}
	return 0
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
