package silicon

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// seedOf is the seed of a node's randomness for a purpose.
func seedOf(seed uint64, node, purpose string) uint64 {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, seed)
	fmt.Fprintf(h, "%s\x00%s", node, purpose)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// DefaultProfile is the NIC profile of a scenario that names none.
const DefaultProfile = "default"

// profile is what the NICs of a host are like.
func (m *Maker) profile(model *fabric.NICModel, host string) (rnic.Profile, *link.PriorityMap, error) {
	lossless := uint8(0)
	if sw := Neighbour(m.cfg.Plan, &m.cfg.Settings.Switches, host); sw != nil && sw.PFC != nil {
		lossless = PFCPriorities(sw.PFC)
	}
	p, err := profileOf(model, lossless)
	if p.TimerTick > 0 && m.cfg.Dilation.Factor() > 1 {
		p.TimerTick = max(m.cfg.Dilation.Fabric(p.TimerTick), 1)
	}
	return p, Priorities(model.Priorities), err
}

// Neighbour is what the switch on a host's first link is like; nil: there is none.
func Neighbour(plan *topo.Plan, switches *fabric.SwitchSettings, host string) *fabric.SwitchModel {
	for _, p := range plan.Ports(host) {
		if plan.Node(p.Peer.Node).Role == topo.Switch {
			s := switches.Of(p.Peer.Node)
			return &s
		}
	}
	return nil
}

// profileOf makes a NIC's profile of its settings; lossless are the priorities that the fabric pauses.
func profileOf(m *fabric.NICModel, lossless uint8) (rnic.Profile, error) {
	name := m.Profile
	if name == "" {
		name = DefaultProfile
	}
	p, err := rnic.ProfileNamed(name)
	if err != nil {
		return p, strict.At("profile", "%w", err)
	}
	if m.Recovery != "" {
		p.Recovery = rnic.Recovery(m.Recovery)
		switch p.Recovery {
		case rnic.GoBackN, rnic.GoBack0, rnic.SelectiveRepeat:
		default:
			return p, strict.At("recovery", "%q is no way to recover%s", m.Recovery,
				strict.DidYouMean(m.Recovery, []string{string(rnic.GoBackN), string(rnic.GoBack0), string(rnic.SelectiveRepeat)}))
		}
	}
	if m.DCQCN != nil {
		if p.DCQCN, err = m.DCQCN.Params(); err != nil {
			return p, strict.Under("dcqcn", err)
		}
	}
	if m.MaxUnacked != 0 {
		p.MaxUnacked = m.MaxUnacked
	}
	if a := m.Ack; a != nil {
		set(&p.AckRequestEvery, a.RequestEvery)
		set(&p.AckEvery, a.Every)
		set(&p.AckDelay, a.Delay)
	}
	p.Pause.Lossless = lossless
	if f := m.PFC; f != nil {
		if f.Priorities != nil {
			p.Pause.Lossless = f.Priorities.Bits()
		}
		setSize(&p.Pause.XOFF, f.XOFF)
		setSize(&p.Pause.XON, f.XON)
		setSize(&p.Pause.Headroom, f.Headroom)
	}
	if c := m.PCIe; c != nil {
		for _, l := range []struct {
			to   *rnic.PCIeLink
			from fabric.PCIeLink
		}{{&p.Stages.PCIe.NIC, c.NIC}, {&p.Stages.PCIe.GPU, c.GPU}, {&p.Stages.PCIe.Host, c.Host}} {
			if l.from != (fabric.PCIeLink{}) {
				*l.to = rnic.PCIeLink{Gen: l.from.Gen, Width: l.from.Width}
			}
		}
	}
	return p, atKeys(p.Validate(), m)
}

// atKeys gives what is wrong with a profile the key that it comes from.
func atKeys(err error, m *fabric.NICModel) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	keys := map[string]string{
		"Recovery": "recovery", "MaxUnacked": "max_unacked", "AckRequestEvery": "ack.request_every", "AckEvery": "ack.every", "AckDelay": "ack.delay", "DCQCN": "dcqcn",
		"Pause.XOFF": "pfc.xoff", "Pause.XON": "pfc.xon", "Stages.PCIe": "pcie",
	}
	if m.PFC != nil && m.PFC.XON == nil {
		keys["Pause.XON"] = "pfc.xoff" // what is given
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		var pe *rnic.ProfileError
		if errors.As(e, &pe) && keys[pe.Field] != "" {
			e = strict.Under(keys[pe.Field], e)
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func setSize(to *int, from *topo.Bytes) {
	if from != nil {
		*to = int(*from)
	}
}

// Priorities is the map of DSCPs; nil where nothing differs from custom.
func Priorities(s fabric.PrioritySettings) *link.PriorityMap {
	if s == nil {
		return nil
	}
	m := link.DefaultPriorities()
	for _, l := range s.All() {
		m[l.DSCP&63] = l.Priority
	}
	return &m
}

// PFCPriorities are those that a switch's PFC makes lossless.
func PFCPriorities(p *fabric.PFCSettings) uint8 {
	if p.Priorities == nil {
		return 1 << 3
	}
	return p.Priorities.Bits()
}

// SwitchSettings are a switch's knobs. Without a shared memory and PFC each egress queue may hold Buffer bytes,
// as a linux-switch's.
func SwitchSettings(m *fabric.SwitchModel, plan *topo.Plan, n *topo.Node) (asic.Settings, error) {
	s := asic.DefaultSettings()
	ports := plan.Ports(n.Name)
	p := &s.Port
	if dscp := Priorities(m.Priorities); dscp != nil {
		p.DSCP = *dscp
	}
	shared := shared(m)
	for i := range p.Queues {
		q := &p.Queues[i]
		if shared {
			q.Alpha = asic.AlphaUnit
			if m.Reserved != nil {
				q.Reserved = dcqcn.Bytes(*m.Reserved)
			}
			if m.Alpha != 0 {
				q.Alpha = alpha(m.Alpha)
			}
		} else {
			q.Reserved, q.Alpha = dcqcn.Bytes(m.BufferBytes()), 0
		}
		if e := m.ECN; e != nil && (e.Priorities == nil || e.Priorities.Bits()&(1<<i) != 0) {
			q.ECN = marking(e)
		}
	}
	for i := range m.Queues {
		o := &m.Queues[i]
		q := &p.Queues[o.Priority&7]
		set(&q.Weight, o.Weight)
		if o.Alpha != 0 {
			q.Alpha = alpha(o.Alpha)
		}
		if o.ECN != nil {
			q.ECN = marking(o.ECN)
		}
	}
	pfc(p, m.PFC)
	s.Watchdog = asic.Watchdog{}
	if w := m.Watchdog; w != nil {
		s.Watchdog = asic.Watchdog{Detect: w.Detect, Restore: w.Restore, Action: asic.Action(w.Action)}
		if w.Restore == 0 {
			s.Watchdog.Restore = w.Detect
		}
		if w.Action == "" {
			s.Watchdog.Action = asic.StormDrop
		}
	}
	if m.Routing != "" {
		s.Balance.Mode = asic.Mode(m.Routing)
	}
	if m.FlowletGap != 0 {
		s.Balance.FlowletGap = m.FlowletGap
	}
	seed := uint64(n.HashSeed)
	s.Balance.HashSeed = &seed
	s.Ports = map[int]asic.PortSettings{}
	for i := range ports {
		own := s.Port
		own.MTU = plan.Topology.Links[ports[i].Link].MTU
		s.Ports[i] = own
	}
	s.Buffer = dcqcn.Bytes(m.Memory)
	if m.Memory == 0 {
		s.Buffer = aside(&s, plan, ports)
		if shared {
			s.Buffer += dcqcn.Bytes(len(ports)) * dcqcn.Bytes(m.BufferBytes())
		}
	}
	return s, s.Validate(PortConfigs(plan, ports))
}

// pfc makes priorities lossless; nil: none is.
func pfc(p *asic.PortSettings, f *fabric.PFCSettings) {
	lossless := p.Groups[3] // of the defaults
	p.Groups = [8]asic.Group{}
	if f == nil {
		p.PFC.Send, p.PFC.Obey, p.PFC.ObeyPause = 0, 0, false
		return
	}
	bits := PFCPriorities(f)
	g := lossless
	if f.XOFF != 0 {
		g.Alpha, g.XOFF = 0, dcqcn.Bytes(f.XOFF)
	}
	if f.Alpha != 0 {
		g.Alpha = alpha(f.Alpha)
	}
	if f.XON != nil {
		g.XONOffset = dcqcn.Bytes(*f.XON)
	}
	if f.Headroom != nil {
		g.AutoHeadroom, g.Headroom = false, dcqcn.Bytes(*f.Headroom)
	}
	for i := range p.Groups {
		if bits&(1<<i) != 0 {
			p.Groups[i] = g
		}
	}
	p.PFC.Send, p.PFC.Obey = bits, bits
	if f.Send != nil && !*f.Send {
		p.PFC.Send = 0
	}
	if f.Obey != nil && !*f.Obey {
		p.PFC.Obey, p.PFC.ObeyPause = 0, false
	}
}

func marking(e *fabric.ECNSettings) *dcqcn.Marking {
	return &dcqcn.Marking{Kmin: dcqcn.Bytes(e.KMin), Kmax: dcqcn.Bytes(e.KMax), Pmax: dcqcn.Fraction(e.PMax)}
}

func alpha(a fabric.Alpha) asic.Alpha {
	return max(asic.Alpha(float64(a)*float64(asic.AlphaUnit)+0.5), 1)
}

// aside is what reserves and headroom of all ports take: a packet memory must hold that at least.
func aside(s *asic.Settings, plan *topo.Plan, ports []topo.PlanPort) (n dcqcn.Bytes) {
	for i := range ports {
		l, p := &plan.Topology.Links[ports[i].Link], s.PortSettings(i)
		for k := range p.Queues {
			n += p.Queues[k].Reserved
			if g := &p.Groups[k]; g.Lossless {
				n += g.Reserved
				if g.AutoHeadroom {
					n += asic.Headroom(uint64(l.Rate), l.Delay, pfcResponse, l.MTU)
				} else {
					n += g.Headroom
				}
			}
		}
	}
	return n
}

// pfcResponse is more than any peer takes to stop, for the size of the memory alone.
const pfcResponse = 10 * time.Microsecond

// PortConfigs are what a switch's ports are, for its settings.
func PortConfigs(plan *topo.Plan, ports []topo.PlanPort) []asic.PortConfig {
	out := make([]asic.PortConfig, len(ports))
	for i := range ports {
		l := &plan.Topology.Links[ports[i].Link]
		out[i] = asic.PortConfig{Name: ports[i].Ref.Port, Rate: uint64(l.Rate), Delay: l.Delay}
	}
	return out
}
