package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// Config is what a fabric is built from.
type Config struct {
	Plan     *topo.Plan
	Settings fabric.Settings
	Seed     uint64
	// Workers is how many cores handle events; 0: as many as pay for a fabric of this size. How many
	// changes no outcome.
	Workers int
	// Dilation is that of the fabric in real time that this one is to be compared with: what an rxe NIC counts in wall time is that much
	// shorter, and DCQCN's least rate is what can be paced there. Nothing else has it; 0: there is none.
	Dilation loop.Dilation
	Bugs     rnic.Bugs // of all NICs: for tests of tests alone
}

// Fabric is a fabric in virtual time. Its methods are for whoever drives it, between drives.
type Fabric struct {
	cfg      Config
	virtual  *loop.Virtual
	control  *loop.Node
	hosts    []*host
	byName   map[string]*host
	switches []*swtch
	ports    []*silicon.Port // by number
	wires    []*wire         // away from the port of a number
	nodes    map[string]*loop.Node
	pools    []*link.Pool // by partition
	inject   *silicon.Injector
	warnings []string
	captures int
	halted   map[string]bool // hosts that stand still, on the control loop
}

func (c *Config) tick() loop.Dilation { return max(c.Dilation, 1) }

// controlNode is the number of the node that no node of the topology has: what is done on it in a moment comes before what
// nodes do then.
const controlNode = 0

// Build makes a fabric. There is nothing to undo when it fails.
func Build(ctx context.Context, cfg Config) (*Fabric, error) {
	if cfg.Plan == nil {
		return nil, errors.New("sim fabric: a plan is required")
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f := &Fabric{cfg: cfg, byName: map[string]*host{}, halted: map[string]bool{}, nodes: map[string]*loop.Node{}}
	f.start()
	maker := silicon.NewMaker(silicon.Config{Plan: cfg.Plan, Settings: cfg.Settings, Seed: cfg.Seed, Dilation: cfg.tick(), Pace: cfg.Dilation, Warn: f.warn, Bugs: cfg.Bugs}, nil)
	f.ports = make([]*silicon.Port, cfg.Plan.PortCount())
	f.wires = make([]*wire, cfg.Plan.PortCount())
	t := cfg.Plan.Topology
	switches := map[string]*silicon.Switch{}
	for i := range t.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := &t.Nodes[i]
		var made []*silicon.Port
		if n.Role == topo.Switch {
			s, err := maker.Switch(n, f.ground(n))
			if err != nil {
				return nil, err
			}
			switches[n.Name], made = s, s.Ports
			f.switches = append(f.switches, &swtch{n.Name, s})
		} else {
			h, err := maker.Host(n, f.ground(n))
			if err != nil {
				return nil, err
			}
			made = h.Ports
			f.hosts = append(f.hosts, &host{h, h.FabricNICs(cfg.Plan)})
			f.byName[n.Name] = f.hosts[len(f.hosts)-1]
		}
		for _, p := range made {
			f.ports[p.Number] = p
		}
	}
	for number, w := range f.wires {
		w.lead(f.ports[cfg.Plan.PeerNumber(number)])
	}
	f.inject = silicon.NewInjector(silicon.Config{Plan: cfg.Plan, Settings: cfg.Settings, Seed: cfg.Seed, Pace: cfg.Dilation}, f.control, f.port, silicon.NewRouting(cfg.Plan, switches))
	return f, nil
}

// warn keeps a warning, once.
func (f *Fabric) warn(text string) {
	if !slices.Contains(f.warnings, text) {
		f.warnings = append(f.warnings, text)
	}
}

// start makes the clock and its nodes.
func (f *Fabric) start() {
	t := f.cfg.Plan.Topology
	lookahead := lookAhead(t)
	for i := range t.Links {
		if t.Links[i].Delay < leastDelay {
			f.warnings = append(f.warnings, fmt.Sprintf("link %s: a delay of %v is taken as %v: in virtual time nothing gets anywhere at once", t.Links[i].Name(), t.Links[i].Delay, leastDelay))
			break
		}
	}
	layout := newLayout(t, f.cfg.Workers)
	f.virtual = loop.NewVirtual(lookahead, loop.Workers(layout.workers), loop.Partition(layout.partition))
	f.control = f.virtual.Node(controlNode)
	for i := range t.Nodes {
		f.nodes[t.Nodes[i].Name] = f.virtual.Node(nodeNumber(i))
	}
	f.pools = make([]*link.Pool, layout.parts)
	for i := range f.pools {
		f.pools[i] = &link.Pool{}
	}
	if layout.parts > 1 {
		f.virtual.Between(func() { link.Balance(f.pools) })
	}
}

func nodeNumber(place int) uint32 { return controlNode + 1 + uint32(place) }

// leastDelay is what a link without a delay has.
const leastDelay = time.Nanosecond

// lookAhead is the shortest delay of any link.
func lookAhead(t *topo.Topology) time.Duration {
	least := time.Duration(0)
	for i := range t.Links {
		if d := max(t.Links[i].Delay, leastDelay); least == 0 || d < least {
			least = d
		}
	}
	if least == 0 { // no links: nothing will ever cross
		return time.Microsecond
	}
	return least
}

// ground is what a node stands on.
func (f *Fabric) ground(n *topo.Node) silicon.Ground {
	l := f.nodes[n.Name]
	return silicon.Ground{Loop: l, Frames: f.pools[l.Partition()], Wire: func(p *topo.PlanPort) (link.Wire, error) {
		number := f.cfg.Plan.PortNumber(p.Ref)
		w := &wire{from: l, delay: max(f.cfg.Plan.Topology.Links[p.Link].Delay, leastDelay), far: f.nodes[p.Peer.Node]}
		f.wires[number] = w
		return w, nil
	}}
}

// wire carries frames to the node across the link.
type wire struct {
	from, far *loop.Node
	delay     time.Duration
	to        link.Receiver
	index     uint16 // of the port there
}

// lead makes the wire end at a port: straight in its device, unless something looks at what passes the port.
func (w *wire) lead(p *silicon.Port) { w.to, w.index = p.Inlet() }

// Send implements link.Wire.
func (w *wire) Send(f *link.Frame, at loop.Time) {
	f.ArriveAt(w.to, w.index)
	w.from.Send(w.far, w.index, at.Add(w.delay), &f.Timer)
}

// port finds a port by its name.
func (f *Fabric) port(ref topo.PortRef) *silicon.Port {
	if i := f.cfg.Plan.PortNumber(ref); i >= 0 {
		return f.ports[i]
	}
	return nil
}

// host is a soft host.
type host struct {
	*silicon.Host
	nics []fabric.NIC
}

func (h *host) Name() string                { return h.Host.Name }
func (h *host) Kind() topo.Kind             { return topo.SoftHost }
func (h *host) Loop() loop.Loop             { return h.Host.Loop }
func (h *host) NICs() []fabric.NIC          { return slices.Clone(h.nics) }
func (h *host) Close(context.Context) error { return nil }

// swtch is a soft switch.
type swtch struct {
	name string
	*silicon.Switch
}
