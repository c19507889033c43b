package silicon

import (
	"fmt"
	"net/netip"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// Config is what a fabric's silicon is made from.
type Config struct {
	Plan     *topo.Plan
	Settings fabric.Settings
	Seed     uint64
	// Dilation divides what counts wall time in a NIC (rxe's jiffies).
	Dilation loop.Dilation
	// Pace is the dilation that flows' least rate is for; 0: none, in virtual time that nobody compares with real time.
	Pace loop.Dilation
	Warn func(text string) // hears what of the settings is different here; nil: nobody
	Bugs rnic.Bugs         // of all NICs: for tests of tests alone
}

// Ground is what a backend lends a node to stand on.
type Ground struct {
	Loop   loop.Loop
	Frames *link.Pool
	// Wire makes what carries frames from a port across its link, propagation included.
	Wire func(port *topo.PlanPort) (link.Wire, error)
}

// Maker makes the nodes of one fabric. It may be used on any goroutine, and at once on several.
type Maker struct {
	cfg    Config
	byAddr map[roce.Addr]uint32 // the number of the port that has an address
	kinds  func(node string) topo.Kind
}

// NewMaker prepares to make the nodes of a fabric. kinds says what each node is made of; nil: all are soft.
func NewMaker(cfg Config, kinds func(node string) topo.Kind) *Maker {
	m := &Maker{cfg: cfg, byAddr: make(map[roce.Addr]uint32, cfg.Plan.PortCount()), kinds: kinds}
	for i := range cfg.Plan.PortCount() {
		m.byAddr[roce.AddrFrom(cfg.Plan.PortAt(i).Addr.Addr())] = uint32(i)
	}
	return m
}

// Number is the fabric's number of the port that has an address, link.NoDst where none has.
func (m *Maker) Number(a roce.Addr) uint32 {
	if n, ok := m.byAddr[a]; ok {
		return n
	}
	return link.NoDst
}

// Host is a host's silicon.
type Host struct {
	Name  string
	Loop  loop.Loop
	Ports []*Port // in the topology's order
	NICs  []*NIC
}

// NIC is a device and its port.
type NIC struct {
	*rnic.Device
	Port  *Port
	trace *rnic.TraceRecorder // nil: nobody asks
}

// HostModel is what a host's NICs are made from: plain data, which another process can make them from, too.
type HostModel struct {
	Name       string
	Profile    rnic.Profile
	Priorities *link.PriorityMap // nil: custom's
	Phantom    bool
	Bugs       rnic.Bugs // for tests of tests alone
	Trace      int       // messages of each NIC that are traced
	Ports      []PortModel
	// Known are the fabric's addresses, for whoever has no Maker; see Maker.Known.
	Known []KnownAddr
}

// PortModel is one port of a HostModel.
type PortModel struct {
	Plan   topo.PlanPort
	Number int
	Seed   uint64
	Link   topo.Link
	DCQCN  *dcqcn.Params // with its least rate; nil: none
}

// KnownAddr is a port's address, the fabric's number of the port, and whether it takes selective repeat's packets.
type KnownAddr struct {
	Addr      roce.Addr
	Number    uint32
	Selective bool
}

// Known are all of the fabric's addresses.
func (m *Maker) Known() []KnownAddr {
	out := make([]KnownAddr, m.cfg.Plan.PortCount())
	for i := range out {
		p := m.cfg.Plan.PortAt(i)
		out[i] = KnownAddr{roce.AddrFrom(p.Addr.Addr()), uint32(i), m.soft(p.Ref.Node)}
	}
	return out
}

// Model works out what a host's NICs are made from. Known is left empty.
func (m *Maker) Model(n *topo.Node) (*HostModel, error) {
	model := m.cfg.Settings.NICs.Of(n.Name)
	h := &HostModel{Name: n.Name, Phantom: model.Memory == fabric.MemoryPhantom, Bugs: m.cfg.Bugs, Trace: model.Trace}
	var err error
	if h.Profile, h.Priorities, err = m.profile(&model, n.Name); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	for _, p := range m.cfg.Plan.Ports(n.Name) {
		port := PortModel{
			Plan: p, Number: m.cfg.Plan.PortNumber(p.Ref), Seed: seedOf(m.cfg.Seed, p.Ref.String(), "rnic"), Link: m.cfg.Plan.Topology.Links[p.Link],
		}
		if d := h.Profile.DCQCN; d != nil {
			params, warning := LeastRate(*d, &port.Link, m.cfg.Pace)
			port.DCQCN = &params
			if warning != "" && m.cfg.Warn != nil {
				m.cfg.Warn(warning)
			}
		}
		h.Ports = append(h.Ports, port)
	}
	return h, nil
}

// Host makes a host's NICs. They share the host's PCIe.
func (m *Maker) Host(n *topo.Node, g Ground) (*Host, error) {
	h, err := m.Model(n)
	if err != nil {
		return nil, err
	}
	return h.make(g, m.resolver)
}

// Make makes the NICs where there is no Maker.
func (h *HostModel) Make(g Ground) (*Host, error) {
	known := make(map[roce.Addr]KnownAddr, len(h.Known))
	for _, k := range h.Known {
		known[k.Addr] = k
	}
	return h.make(g, func(p *topo.PlanPort) func(roce.Addr) (rnic.Neighbor, bool) {
		via := roce.MAC(p.PeerMAC)
		return func(a roce.Addr) (rnic.Neighbor, bool) {
			k, ok := known[a]
			return rnic.Neighbor{MAC: via, Dst: k.Number, Selective: k.Selective}, ok
		}
	})
}

func (h *HostModel) make(g Ground, resolver func(*topo.PlanPort) func(roce.Addr) (rnic.Neighbor, bool)) (*Host, error) {
	made := &Host{Name: h.Name, Loop: g.Loop}
	pcie, err := rnic.NewPCIe(h.Profile.Stages.PCIe)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	for i := range h.Ports {
		p := &h.Ports[i]
		w, err := g.Wire(&p.Plan)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Plan.Ref, err)
		}
		profile := h.Profile
		profile.DCQCN = p.DCQCN
		port := &Port{Ref: p.Plan.Ref, Number: p.Number, Loop: g.Loop, Wire: NewWire(w, g.Loop, g.Frames), Link: &p.Link}
		nic := &NIC{Port: port}
		cfg := rnic.Config{
			Name: p.Plan.Ref.String(), Loop: g.Loop, MAC: roce.MAC(p.Plan.MAC), Addr: roce.AddrFrom(p.Plan.Addr.Addr()), MTU: p.Link.MTU, Rate: uint64(p.Link.Rate),
			Seed: p.Seed, Profile: profile, PCIe: pcie, Priorities: h.Priorities,
			Frames: g.Frames, Wire: port.Wire, Resolve: resolver(&p.Plan), Phantom: h.Phantom, Bugs: h.Bugs,
		}
		if h.Trace > 0 {
			nic.trace = &rnic.TraceRecorder{Name: cfg.Name, Limit: h.Trace}
			cfg.Trace = nic.trace
		}
		if nic.Device, err = rnic.New(cfg); err != nil {
			return nil, err
		}
		port.end, port.device = nic, nic.Device
		made.Ports = append(made.Ports, port)
		made.NICs = append(made.NICs, nic)
	}
	return made, nil
}

// resolver says where addresses are, as seen from a NIC: behind the port across its link.
func (m *Maker) resolver(p *topo.PlanPort) func(roce.Addr) (rnic.Neighbor, bool) {
	via := roce.MAC(p.PeerMAC)
	return func(a roce.Addr) (rnic.Neighbor, bool) {
		i, ok := m.byAddr[a]
		if !ok {
			return rnic.Neighbor{}, false
		}
		return rnic.Neighbor{MAC: via, Dst: i, Selective: m.soft(m.cfg.Plan.PortAt(int(i)).Ref.Node)}, true
	}
}

func (m *Maker) soft(node string) bool { return m.kinds == nil || m.kinds(node) == topo.SoftHost }

// Traces are what the host's NICs kept of their first messages.
func (h *Host) Traces() (out []fabric.Trace) {
	for _, n := range h.NICs {
		if n.trace != nil {
			out = append(out, fabric.Trace{Port: n.Port.Ref, Text: n.trace.String()})
		}
	}
	return out
}

// FabricNICs are the host's NICs as workloads get them.
func (h *Host) FabricNICs(plan *topo.Plan) []fabric.NIC {
	var out []fabric.NIC
	for _, n := range h.NICs {
		out = append(out, FabricNIC(plan.PortAt(n.Port.Number), n.Device))
	}
	return out
}

// FabricNIC is a port's device as workloads get it.
func FabricNIC(p *topo.PlanPort, d verbs.Device) fabric.NIC {
	return fabric.NIC{Port: p.Ref, Rail: p.Rail, Device: d, GIDIndex: 0, GID: verbs.GID(netip.AddrFrom16(p.Addr.Addr().As16()))}
}

// Switch is a switch's silicon.
type Switch struct {
	*asic.Switch
	Loop  loop.Loop
	Ports []*Port // in the topology's order

	base     asic.Settings // the scenario's
	late     uint64        // routes that came late, of what others told
	overlays []*overlay    // what faults change of them, in the order of striking
}

// switchPort is one port of a switch.
type switchPort struct {
	sw    *asic.Switch
	index int
}

func (p *switchPort) SetLink(up bool)     { p.sw.SetLink(p.index, up) }
func (p *switchPort) SetRate(rate uint64) { p.sw.SetRate(p.index, rate) }
func (p *switchPort) Rate() uint64        { return p.sw.Rate(p.index) }

// Switch makes a switch.
func (m *Maker) Switch(n *topo.Node, g Ground) (*Switch, error) {
	s := &Switch{Loop: g.Loop}
	model := m.cfg.Settings.Switches.Of(n.Name)
	cfg := asic.Config{Name: n.Name, Loop: g.Loop, Seed: seedOf(m.cfg.Seed, n.Name, "asic"), Frames: g.Frames, Resolve: m.Number}
	var ends []*switchPort
	for i, p := range m.cfg.Plan.Ports(n.Name) {
		port, err := m.port(&p, g)
		if err != nil {
			return nil, err
		}
		l := port.Link
		s.Ports = append(s.Ports, port)
		ends = append(ends, &switchPort{index: i})
		cfg.Ports = append(cfg.Ports, asic.PortConfig{
			Name: p.Ref.Port, Number: uint32(port.Number), MAC: roce.MAC(p.MAC), PeerMAC: roce.MAC(p.PeerMAC), Addr: roce.AddrFrom(p.Addr.Addr()),
			Rate: uint64(l.Rate), Delay: l.Delay, Wire: port.Wire,
		})
	}
	cfg.Routes = compile(m.cfg.Plan.RoutesByPort(n.Name, nil))
	var err error
	if cfg.Settings, err = SwitchSettings(&model, m.cfg.Plan, n); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	s.base = with(cfg.Settings)
	if s.Switch, err = asic.New(cfg); err != nil {
		return nil, err
	}
	for i, e := range ends {
		e.sw = s.Switch
		s.Ports[i].end, s.Ports[i].device, s.Ports[i].index = e, s.Switch, uint16(i)
	}
	return s, nil
}

// setRoutes replaces a switch's routes, on its loop.
func (s *Switch) setRoutes(byPort [][]uint16) {
	if err := s.SetRoutes(compile(byPort)); err != nil {
		panic(err) // the plan's own ports
	}
}

// compile makes the switch's routes of the plan's. Ways that share a slice are one set.
func compile(byPort [][]uint16) asic.Routes {
	r := asic.Routes{ByDst: make([]int32, len(byPort))}
	known := map[*uint16]int32{}
	for dst, way := range byPort {
		r.ByDst[dst] = -1
		if len(way) == 0 {
			continue
		}
		set, ok := known[&way[0]]
		if !ok {
			ports := make([]int, len(way))
			for i, p := range way {
				ports[i] = int(p)
			}
			set = int32(len(r.Sets))
			r.Sets = append(r.Sets, ports)
			known[&way[0]] = set
		}
		r.ByDst[dst] = set
	}
	return r
}

// port makes one end of a link.
func (m *Maker) port(p *topo.PlanPort, g Ground) (*Port, error) {
	w, err := g.Wire(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Ref, err)
	}
	return &Port{
		Ref: p.Ref, Number: m.cfg.Plan.PortNumber(p.Ref), Loop: g.Loop, Wire: NewWire(w, g.Loop, g.Frames), Link: &m.cfg.Plan.Topology.Links[p.Link],
	}, nil
}
