//go:build linux

package kernel

import (
	"fmt"
	"math"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/testbed/kernel/engine"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// declaration is what is declared about the sending side of a port: a tree of the kernel's own disciplines, or what the
// port engine is told.
type declaration struct {
	tree tc.Port
	port *engine.Port // nil: without the engine
}

func (d declaration) rate() topo.Rate {
	if d.port != nil {
		return d.port.Rate
	}
	return d.tree.Rate
}

func (d declaration) withRate(r topo.Rate) declaration {
	if d.port != nil {
		p := *d.port
		p.Rate = r
		d.port = &p
		return d
	}
	d.tree.Rate = r
	return d
}

// Check says what of it can't be.
func (d declaration) Check() error {
	if d.port != nil {
		return d.port.Check()
	}
	return d.tree.Check()
}

// objects are the qdiscs and classes of a port.
func (d declaration) objects(e *engine.Engine, number int) []tc.Object {
	if d.port != nil {
		return []tc.Object{{ID: engine.Handle(number), Parent: tc.Root, Spec: tc.Engine{Name: e.Kind()}}}
	}
	return d.tree.Tree()
}

// declared is what a port is declared to be before any fault.
func (f *Fabric) declared(p topo.PlanPort, n *topo.Node) (declaration, error) {
	if !f.cfg.engine {
		return declaration{tree: f.cfg.port(p, n.Role)}, nil
	}
	l := &f.cfg.Plan.Topology.Links[p.Link]
	port := &engine.Port{Rate: wallRate(l.Rate, f.cfg.Dilation), MTU: l.MTU, MAC: [6]byte(p.MAC)}
	if n.Role == topo.Host {
		f.cfg.hostPort(port, n.Name)
		return declaration{port: port}, nil
	}
	s, index, err := f.cfg.switchSettings(n, p.Ref)
	if err != nil {
		return declaration{}, err
	}
	f.cfg.switchPort(port, s, index, l)
	return declaration{port: port}, nil
}

// hostPort declares a host's port: deep queues, which rxe's own throttle keeps short, and pauses obeyed where the fabric
// has lossless priorities.
func (c *Config) hostPort(p *engine.Port, host string) {
	m := c.NICs.Of(host)
	dscp := link.DefaultPriorities()
	if own := silicon.Priorities(m.Priorities); own != nil {
		dscp = *own
	}
	p.Priority = dscp
	for i := range p.Queues {
		p.Queues[i] = engine.Queue{Reserved: hostQueue, Weight: 1}
	}
	p.Queues[6].Weight, p.Queues[7].Weight = 0, 0
	if sw := silicon.Neighbour(c.Plan, &c.Switches, host); sw != nil && sw.PFC != nil {
		p.Obey = silicon.PFCPriorities(sw.PFC)
	}
	if m.PFC != nil && m.PFC.Priorities != nil {
		p.Obey = m.PFC.Priorities.Bits()
	}
	if d := c.dcqcn(host); d != nil {
		p.Paced, p.Notice = true, c.Dilation.Wall(d.MinTimeBetweenCNPs)
	}
}

// switchSettings are a switch's, as the software switch would have them, and the index of a port in them.
func (c *Config) switchSettings(n *topo.Node, ref topo.PortRef) (s asic.Settings, index int, err error) {
	m := c.Switches.Of(n.Name)
	if s, err = silicon.SwitchSettings(&m, c.Plan, n); err != nil {
		return s, 0, err
	}
	ports := c.Plan.Ports(n.Name)
	configs := silicon.PortConfigs(c.Plan, ports)
	room := s.Shared(configs)
	for i, p := range ports {
		own := s.PortSettings(i)
		own.PFC.Response = c.reaction()
		s.Ports[i] = own
		if p.Ref == ref {
			index = i
		}
	}
	if m.Memory == 0 { // what is shared doesn't shrink because agents take their time
		s.Buffer += dcqcn.Bytes(room - s.Shared(configs))
	} else if left := s.Shared(configs); left < 0 {
		return s, 0, fmt.Errorf("%s: memory %v doesn't hold reserves and headroom of %d ports: %v more are needed, as pauses take up to %v to be obeyed here",
			n.Name, m.Memory, len(ports), topo.Bytes(-left), c.reaction())
	}
	return s, index, nil
}

// switchPort declares a switch's port.
func (c *Config) switchPort(p *engine.Port, s asic.Settings, index int, l *topo.Link) {
	own := s.PortSettings(index)
	config := asic.PortConfig{Rate: uint64(l.Rate), Delay: l.Delay}
	p.Priority, p.Watched, p.Obey, p.Stuck, p.Sends = own.DSCP, own.Watched, own.PFC.Obey, own.Stuck, own.PFC.Send
	for i := range own.Queues {
		q := &own.Queues[i]
		p.Queues[i] = engine.Queue{Reserved: topo.Bytes(q.Reserved), Alpha: uint32(q.Alpha), Weight: q.Weight, Marking: markingOf(q.ECN)}
		if q.Rate > 0 {
			p.Queues[i].Rate = max(wallRate(topo.Rate(q.Rate), c.Dilation), 8) // zero would be the line's
		}
		if q.Right != nil {
			p.Queues[i].Right = &engine.Right{Marking: markingOf(q.Right.ECN)}
		}
		g := &own.Groups[i]
		p.Groups[i] = engine.Group{
			Lossless: g.Lossless, Reserved: topo.Bytes(g.Reserved), XOFF: topo.Bytes(g.XOFF), Alpha: uint32(g.Alpha), XON: topo.Bytes(g.XONOffset),
			Headroom: topo.Bytes(own.HeadroomOf(i, &config)),
		}
	}
}

// markingOf is a curve as the engine has it.
func markingOf(m *dcqcn.Marking) *engine.Marking {
	if m == nil {
		return nil
	}
	return &engine.Marking{Kmin: topo.Bytes(m.Kmin), Kmax: topo.Bytes(m.Kmax), Pmax: topo.Fraction(m.Pmax)}
}

// leastReaction is what a pause is given to be obeyed, in wall time: from the first frame that finds a threshold reached to the silence of
// the peer. Runs measure it, and fail where its 99.9th percentile was more.
const leastReaction = 100 * time.Millisecond

// reaction is that in fabric time.
func (c *Config) reaction() time.Duration { return c.Dilation.Fabric(leastReaction) }

// Reaction is how long a pause that a switch sends is given to be obeyed at a dilation, in fabric time.
func Reaction(n *topo.Node, d loop.Dilation) time.Duration {
	if kindOf(n) != topo.LinuxSwitch {
		return 0
	}
	return d.Fabric(leastReaction)
}

// mostReaction is what a pause may take to be obeyed where the dilation is ours to choose, in fabric time: two CNP intervals of DCQCN's. At 10 Gb/s
// 125 KB arrive meanwhile.
const mostReaction = 100 * time.Microsecond

// LeastDilation is the smallest power of two at which pauses are obeyed in time: within mostReaction, and soon enough for the memory of every switch to
// hold the headroom. It is 1 where no switch of the kernel's sends pauses, and where no dilation would do: that is refused with its reason.
func (c Config) LeastDilation() loop.Dilation {
	for c.Dilation = 1; c.reaction() > time.Nanosecond; c.Dilation *= 2 {
		if c.pausesInTime() {
			return c.Dilation
		}
	}
	return 1
}

func (c *Config) pausesInTime() bool {
	for i := range c.Plan.Topology.Nodes {
		n := &c.Plan.Topology.Nodes[i]
		if n.Role != topo.Switch || !c.made(n) || c.Switches.Of(n.Name).PFC == nil {
			continue
		}
		if _, _, err := c.switchSettings(n, topo.PortRef{}); err != nil || c.reaction() > mostReaction {
			return false
		}
	}
	return true
}

// heldReaction is how long a pause may take before frames can be lost, in wall time: what headroom is for, which where a scenario gives
// more of it is longer.
func (c *Config) heldReaction() time.Duration {
	least := time.Duration(math.MaxInt64)
	for i := range c.Plan.Topology.Links {
		l := &c.Plan.Topology.Links[i]
		for _, end := range []topo.PortRef{l.A, l.B} {
			n := c.Plan.Node(end.Node)
			if m := c.Switches.Of(end.Node); n.Role == topo.Switch && c.made(n) && m.PFC != nil {
				least = min(least, c.Dilation.Wall(max(headroomFor(m.PFC.Headroom, l), c.reaction())))
			}
		}
	}
	return max(least, leastReaction)
}

// headroomFor is the reaction that a given headroom of a port is enough for, in fabric time; 0: none is given.
func headroomFor(headroom *topo.Bytes, l *topo.Link) time.Duration {
	if headroom == nil {
		return 0
	}
	rest := int64(*headroom) - int64(asic.Headroom(uint64(l.Rate), l.Delay, 0, l.MTU))
	return time.Duration(float64(max(rest, 0)) * 8e9 / float64(l.Rate))
}

// dcqcn is a host's DCQCN; nil: none.
func (c *Config) dcqcn(host string) *dcqcn.Params {
	m := c.NICs.Of(host)
	if m.DCQCN == nil {
		return nil
	}
	p, err := m.DCQCN.Params()
	if err != nil {
		return nil // it was refused when the scenario was read
	}
	return p
}
