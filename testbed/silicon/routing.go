package silicon

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/topo"
)

// Routing is the fabric's control plane: when a link goes down, the switches on both ends see it by themselves, and the
// others must hear of it, or they go on sending to a switch that has no way on. It lives on the control loop, and
// what it says takes as long as anything that goes from one node to another.
type Routing struct {
	plan     *topo.Plan
	switches map[string]*Switch
	held     map[int]int     // links that are down, by index, and for how many faults
	down     map[int]bool    // the same links
	changed  map[string]bool // switches that have other routes than the plan's
	known    map[string]map[string][][]uint16
	late     map[string]*lateness // switches that hear of links late
}

// lateness is what a switch has not heard of yet.
type lateness struct {
	ctl   loop.Loop
	delay time.Duration
	tell  []func()
}

// hear tells the switch of the first thing that it has not heard of.
func (l *lateness) hear() {
	if len(l.tell) > 0 {
		l.tell[0]()
		l.tell = l.tell[1:]
	}
}

// Delay makes a switch hear of links that go down or come up so much later, from now on.
func (r *Routing) Delay(node string, ctl loop.Loop, by time.Duration) {
	r.late[node] = &lateness{ctl: ctl, delay: by}
}

// Hasten ends that: what the switch has not heard of it hears now.
func (r *Routing) Hasten(node string) {
	if l := r.late[node]; l != nil {
		delete(r.late, node)
		for len(l.tell) > 0 {
			l.hear()
		}
	}
}

// NewRouting makes the routing of a plan's switches, by name.
func NewRouting(plan *topo.Plan, switches map[string]*Switch) *Routing {
	return &Routing{plan: plan, switches: switches, held: map[int]int{}, down: map[int]bool{}, changed: map[string]bool{}, known: map[string]map[string][][]uint16{}, late: map[string]*lateness{}}
}

// SetLink says that a link is up or down, for one fault of perhaps several, and tells the switches whose routes that changes.
func (r *Routing) SetLink(link int, up bool) { r.SetLinks([]int{link}, up) }

// SetLinks is SetLink for several links at once.
func (r *Routing) SetLinks(links []int, up bool) {
	for _, link := range links {
		if up {
			r.held[link]--
		} else {
			r.held[link]++
		}
		if r.held[link] > 0 {
			r.down[link] = true
		} else {
			delete(r.held, link)
			delete(r.down, link)
		}
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
		if l := r.late[name]; l != nil {
			l.tell = append(l.tell, func() { sw.Loop.Post(func() { sw.late++; sw.setRoutes(routes) }) })
			l.ctl.Arm(&loop.Timer{Fire: l.hear}, l.ctl.Now().Add(l.delay))
			continue
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
