package agreement

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/topo"
)

// Every link carries Rate, and every run warms up before it is measured. Fabric time.
const (
	Rate     = 10 * topo.Gbps
	WarmUp   = 10 * time.Millisecond
	Measured = 40 * time.Millisecond

	// lateStart is when the second of two flows starts.
	lateStart = 5 * time.Millisecond
	// stagger is within what flows start: at the same instant, as virtual time could have it, they go in step for ever.
	stagger = 200 * time.Microsecond
	// windDown is for how long flows go on after the measured part: the last readings take a while.
	windDown = 2 * time.Millisecond
	// lookEvery is how often a queue is looked at: a packet of 4096 bytes takes 3.4 µs on the line.
	lookEvery = 10 * time.Microsecond
)

// Mode is what keeps queues in bounds.
type Mode string

// The modes.
const (
	Both    Mode = "both"
	PFC     Mode = "pfc"
	ECN     Mode = "ecn"
	Neither Mode = "neither"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Both, PFC, ECN, Neither} }

func (m Mode) pauses() bool { return m == Both || m == PFC }
func (m Mode) marks() bool  { return m == Both || m == ECN }

// Flow is one queue pair's worth of WRITEs.
type Flow struct {
	Name, From, To string
	Start          time.Duration
}

// Scene is a topology and the flows on it.
type Scene struct {
	Name     string
	What     string // for the docs
	topology string
	Flows    []Flow
	// Queue is the egress queue whose depth is told.
	Queue testbed.Queue
	// Slower is how much more dilation the scene takes than an incast does: its packets cross more links at once.
	Slower uint32
}

// roce is the priority that RoCE goes in by custom.
const roce = 3

func queue(node, port string) testbed.Queue {
	return testbed.Queue{Port: topo.PortRef{Node: node, Port: port}, Number: roce}
}

// incast is n senders into one receiver, the last host.
//
//	h1 ─┐
//	 ⋮  leaf1 ── hN+1
//	hN ─┘
func incast(n int) Scene {
	last := fmt.Sprintf("h%d", n+1)
	s := Scene{
		Name: fmt.Sprintf("incast %d:1", n), What: fmt.Sprintf("%d senders, one receiver, one switch", n),
		topology: fmt.Sprintf("star: {hosts: %d}", n+1), Slower: 1, Queue: queue("leaf1", fmt.Sprintf("eth%d", n)),
	}
	for i := range n {
		h := fmt.Sprintf("h%d", i+1)
		s.Flows = append(s.Flows, Flow{Name: h, From: h, To: last})
	}
	return s
}

const (
	parking = "parking lot"
	victim  = "victim"
)

// Scenes are all of them.
func Scenes() []Scene {
	late := incast(2)
	late.Name, late.What = "late", fmt.Sprintf("the same two senders, the second %v after the first", lateStart)
	late.Flows[1].Start = lateStart
	return []Scene{
		incast(2), incast(4), incast(8), late,
		// f1 and f3 cross one link between switches, f2 both:
		//
		//	h1, h2 ── s1 ── s2 ── s3 ── r2, r3
		//	          r1 ─┘ └─ h3
		{
			Name: parking, What: "f1 over the first of two links in a row, f3 over the second, f2 over both",
			topology: chain("h1 -- s1", "h2 -- s1", "s1 -- s2", "r1 -- s2", "h3 -- s2", "s2 -- s3", "r2 -- s3", "r3 -- s3"),
			Flows:    []Flow{{Name: "f1", From: "h1", To: "r1"}, {Name: "f2", From: "h2", To: "r2"}, {Name: "f3", From: "h3", To: "r3"}},
			Queue:    queue("s1", "eth2"),
			Slower:   2,
		},
		// Three into r, of which one shares the link between the switches with a flow to w that has no part in it:
		//
		//	h1, v ── s1 ── s2 ── r, w
		//	               └─ h2, h3
		{
			Name: victim, What: "h1, h2 and h3 into one receiver; the victim v to another, over the link that h1 has to take",
			topology: chain("h1 -- s1", "v -- s1", "s1 -- s2", "h2 -- s2", "h3 -- s2", "r -- s2", "w -- s2"),
			Flows:    []Flow{{Name: "h1", From: "h1", To: "r"}, {Name: "h2", From: "h2", To: "r"}, {Name: "h3", From: "h3", To: "r"}, {Name: "v", From: "v", To: "w"}},
			Queue:    queue("s2", "eth3"),
			Slower:   2,
		},
	}
}

// chain is nodes and links by name: those whose names begin with s are switches.
func chain(links ...string) string {
	var nodes []string
	seen := map[string]bool{}
	for _, l := range links {
		for _, n := range strings.Split(l, " -- ") {
			if seen[n] {
				continue
			}
			seen[n] = true
			kind := "host"
			if n[0] == 's' {
				kind = "switch"
			}
			nodes = append(nodes, fmt.Sprintf("{%s: %s}", kind, n))
		}
	}
	return fmt.Sprintf("nodes: [%s]\n  links: [%s]", strings.Join(nodes, ", "), strings.Join(links, ", "))
}

// Span is how long a run of a scene takes, in fabric time, and how much of it is measured.
type Span struct{ WarmUp, Measure time.Duration }

// Full is the span of the table, Short that of an ordinary test.
var (
	Full  = Span{WarmUp, Measured}
	Short = Span{3 * time.Millisecond, 6 * time.Millisecond}
)

// headroom holds what comes in at the line's rate in 200 µs: a pause takes some microseconds here, but a busy machine's scheduler may
// take 200 ms of wall time at times. Thresholds don't depend on it.
const headroom = 256 << 10

// lossy is a queue that drops at some 600 KB: less than what two queue pairs may have unacknowledged, and three times Kmax.
const lossy = "  memory: 2MB\n  reserved: 5KB\n  alpha: 1/2\n"

// How is how a scene is run.
type How struct {
	Dilation uint32 // of the fabrics in real time
	Again    int    // how often that may be doubled
	Seed     uint64
	Span     Span
}

// latest is when the last flow starts.
func (s *Scene) latest() (at time.Duration) {
	for _, f := range s.Flows {
		at = max(at, f.Start)
	}
	return at
}

// Window is the measured part: after the warm-up of the flow that starts last.
func (s *Scene) Window(span Span) *testbed.Window {
	from := s.latest() + span.WarmUp
	return &testbed.Window{From: from, To: from + span.Measure, Queues: []testbed.Queue{s.Queue}, Every: lookEvery}
}

// Scenario is the scene as a scenario file. NICs are rdma_rxe's on every backend.
func (s *Scene) Scenario(mode Mode, how How) string {
	var b strings.Builder
	dcqcn, switches := "off", lossy
	if mode.marks() {
		dcqcn = "{profile: paper, rpg_min_rate: 400Mbps}"
		switches += "  ecn: {kmin: 40KB, kmax: 200KB, pmax: 10%, priorities: [3]}\n"
	}
	if mode.pauses() {
		switches = strings.Replace(switches, lossy, fmt.Sprintf("  pfc: {xoff: 100KB, xon: 20KB, headroom: %d}\n", headroom), 1)
	}
	fmt.Fprintf(&b, `apiVersion: rocebed/v1
name: agreement
seed: %d
dilation: %d
topology:
  %s
  rate: %v
  delay: 1us
nics: {profile: rxe, dcqcn: %s}
switches:
%sworkloads:
`, how.Seed, how.Dilation, s.topology, Rate, dcqcn, switches)
	to := s.Window(how.Span).To
	draw := rand.New(rand.NewPCG(how.Seed, 0))
	for _, f := range s.Flows {
		f.Start += time.Duration(draw.Int64N(int64(stagger/time.Microsecond))) * time.Microsecond
		warm := to - how.Span.Measure - f.Start
		fmt.Fprintf(&b, "  - {name: %s, kind: write, from: [%s], to: [%s], size: 32KiB, depth: 16, verify: false, start: %v, duration: %v, warm_up: %v, qp: {retry_cnt: 7}}\n",
			f.Name, f.From, f.To, f.Start, to+windDown-f.Start, warm)
	}
	return b.String()
}
