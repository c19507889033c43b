package silicon

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/topo"
)

// Routing is the fabric's control plane: when a link goes down, the switches on both ends see it by themselves, and the
// others must hear of it, or they go on sending to a switch that has no way on. It lives on the control loop, and
// what it says takes as long as anything that goes from one node to another.
type Routing struct {
	plan     *topo.Plan
	switches map[string]*Switch
	down     map[int]bool    // links, by index
	changed  map[string]bool // switches that have other routes than the plan's
	known    map[string]map[string][][]uint16
}

// NewRouting makes the routing of a plan's switches, by name.
func NewRouting(plan *topo.Plan, switches map[string]*Switch) *Routing {
	return &Routing{plan: plan, switches: switches, down: map[int]bool{}, changed: map[string]bool{}, known: map[string]map[string][][]uint16{}}
}

// SetLink says that a link is up or down, and tells the switches whose routes that changes.
func (r *Routing) SetLink(link int, up bool) {
	if up {
		delete(r.down, link)
	} else {
		r.down[link] = true
	}
	want := r.routes()
	nodes := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(r.changed))
	slices.Sort(nodes)
	for _, name := range slices.Compact(nodes) {
		sw := r.switches[name]
		if sw == nil {
			continue
		}
		routes, changed := want[name]
		if changed {
			r.changed[name] = true
		} else {
			routes = r.plan.RoutesByPort(name, nil)
			delete(r.changed, name)
		}
		sw.Loop.Post(func() { sw.setRoutes(routes) })
	}
}

// maxKnown is how many states of the fabric's links are remembered: links that flap come back to the same few.
const maxKnown = 32

// routes are the switches' routes that aren't the plan's.
func (r *Routing) routes() map[string][][]uint16 {
	links := slices.Sorted(maps.Keys(r.down))
	var key strings.Builder
	for _, l := range links {
		key.WriteString(strconv.Itoa(l))
		key.WriteByte(' ')
	}
	if known, ok := r.known[key.String()]; ok {
		return known
	}
	out := map[string][][]uint16{}
	for node := range r.plan.Converged(r.down) {
		out[node] = r.plan.RoutesByPort(node, r.down)
	}
	if len(r.known) == maxKnown {
		clear(r.known)
	}
	r.known[key.String()] = out
	return out
}
