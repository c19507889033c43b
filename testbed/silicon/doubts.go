package silicon

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocebed/rocebed/datapath/asic"
	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
)

// Sent is what a scenario sends, for Doubts.
type Sent struct {
	// RoCE is that of workloads. Without any, what is sent in which priority is unknown, and nothing is said of it.
	RoCE []Class
	// Others are DSCPs of other traffic: faults', CNPs.
	Others []uint8
	// Moved are priorities that faults put traffic into.
	Moved []uint8
}

// Class is the traffic of a workload.
type Class struct {
	Workload string
	DSCP     uint8
}

// Doubts are settings that can be had and hardly be meant: thresholds that no queue reaches, PFC and ECN in other priorities than the traffic's,
// headroom that is too small for its link. reaction is how long a pause that a switch sends may take to be obeyed; nil: no time. They are strict.PathErrors by key from the scenario's top, joined;
// each key is doubted once, for the first node that has it.
func Doubts(plan *topo.Plan, s *fabric.Settings, sent Sent, reaction func(*topo.Node) time.Duration) error {
	d := doubts{plan: plan, settings: s, sent: sent, reaction: reaction, told: map[string]bool{}}
	for _, n := range plan.Topology.Switches() {
		m := s.Switches.Of(n.Name)
		own, err := SwitchSettings(&m, plan, n)
		if err != nil {
			continue // it was refused
		}
		d.thresholds(n, &m, &own)
		d.priorities(n, &m, &own)
		d.switchHeadroom(n, &m, &own)
	}
	for _, n := range plan.Topology.Hosts() {
		d.nic(n)
	}
	return errors.Join(d.all...)
}

type doubts struct {
	plan     *topo.Plan
	settings *fabric.Settings
	sent     Sent
	reaction func(*topo.Node) time.Duration
	told     map[string]bool
	all      []error
}

func (d *doubts) tell(at, about, format string, args ...any) {
	if !d.told[at+" "+about] {
		d.all = append(d.all, strict.At(at, format, args...))
	}
	d.told[at+" "+about] = true
}

// section is the key of what gave a switch something.
func (d *doubts) section(n *topo.Node, has func(*fabric.SwitchModel) bool) string {
	return d.settings.Switches.Section(n.Name, has)
}

// thresholds looks for those that are above all that can wait.
func (d *doubts) thresholds(n *topo.Node, m *fabric.SwitchModel, own *asic.Settings) {
	configs := PortConfigs(d.plan, d.plan.Ports(n.Name))
	shared := own.Shared(configs)
	if m.PFC != nil && m.PFC.XOFF != 0 && int64(m.PFC.XOFF) > shared {
		at := d.section(n, func(m *fabric.SwitchModel) bool { return m.PFC != nil && m.PFC.XOFF != 0 }) + ".pfc.xoff"
		d.tell(at, "", "%s: %v is more than the %v of memory that its ports share: no port ever holds as much, and pauses begin when all memory is taken", n.Name, m.PFC.XOFF, topo.Bytes(shared))
	}
	// most is what can wait in the longest of some queues: a lossless one's frames are on the accounts of the ports that they came in at.
	most := func(queues uint8) (n int64) {
		for i := range 8 {
			q := &own.Port.Queues[i]
			switch {
			case queues&(1<<i) == 0:
			case own.Port.Groups[i].Lossless:
				n = max(n, int64(own.Buffer))
			default: // Q − reserved = alpha·(shared − (Q − reserved))
				alpha := float64(q.Alpha) / float64(asic.AlphaUnit)
				n = max(n, int64(q.Reserved)+int64(float64(max(shared, 0))*alpha/(1+alpha)))
			}
		}
		return n
	}
	unreached := func(at string, e *fabric.ECNSettings, queues uint8) {
		if room := most(queues); queues != 0 && int64(e.KMin) >= room {
			d.tell(at+".kmin", "", "%s: %v is no less than what can wait in a queue, %v of its memory: nothing is ever marked", n.Name, e.KMin, topo.Bytes(room))
		}
	}
	if m.ECN != nil {
		at := d.section(n, func(m *fabric.SwitchModel) bool { return m.ECN != nil }) + ".ecn"
		unreached(at, m.ECN, curveFor(m)&^ownCurve(m))
	}
	for i := range m.Queues {
		if q := &m.Queues[i]; q.ECN != nil {
			at := d.section(n, func(m *fabric.SwitchModel) bool { return len(m.Queues) > 0 })
			unreached(fmt.Sprintf("%s.queues[%d].ecn", at, i), q.ECN, 1<<(q.Priority&7))
		}
	}
}

// curveFor are the queues that a switch's own curve is for.
func curveFor(m *fabric.SwitchModel) uint8 {
	switch {
	case m.ECN == nil:
		return 0
	case m.ECN.Priorities == nil:
		return 0xff
	}
	return m.ECN.Priorities.Bits()
}

// ownCurve are the queues that have one of their own.
func ownCurve(m *fabric.SwitchModel) (queues uint8) {
	for i := range m.Queues {
		if m.Queues[i].ECN != nil {
			queues |= 1 << (m.Queues[i].Priority & 7)
		}
	}
	return queues
}

// priorities holds those that are lossless, and those that mark, against those of the traffic.
func (d *doubts) priorities(n *topo.Node, m *fabric.SwitchModel, own *asic.Settings) {
	dscp := link.PriorityMap(own.Port.DSCP)
	if m.PFC != nil {
		at := d.section(n, func(m *fabric.SwitchModel) bool { return m.PFC != nil }) + ".pfc.priorities"
		d.covers(at, n.Name, "pfc", "make lossless", PFCPriorities(m.PFC), PFCPriorities(m.PFC), &dscp)
	}
	if marked := curveFor(m) | ownCurve(m); marked != 0 {
		named := ownCurve(m)
		at := d.section(n, func(m *fabric.SwitchModel) bool { return len(m.Queues) > 0 }) + ".queues"
		if m.ECN != nil {
			at = d.section(n, func(m *fabric.SwitchModel) bool { return m.ECN != nil }) + ".ecn.priorities"
		}
		if m.ECN != nil && m.ECN.Priorities != nil {
			named |= m.ECN.Priorities.Bits()
		}
		d.covers(at, n.Name, "ecn", "mark", marked, named, &dscp)
	}
}

// covers doubts a feature that is on for priorities, some of them named, where workloads' RoCE is in others.
func (d *doubts) covers(at, node, feature, does string, on, named uint8, dscp *link.PriorityMap) {
	if len(d.sent.RoCE) == 0 {
		return
	}
	var roce uint8
	for _, c := range d.sent.RoCE {
		p := dscp[c.DSCP&63]
		roce |= 1 << p
		if on&(1<<p) == 0 {
			d.tell(at, "without "+strconv.Itoa(int(p)), "%s: RoCE of workload %s, DSCP %d, is in priority %d, which %s doesn't %s: it is on for %s", node, c.Workload, c.DSCP, p, feature, does, listed(on))
		}
	}
	used := roce
	for _, x := range d.sent.Others {
		used |= 1 << dscp[x&63]
	}
	for _, p := range d.sent.Moved {
		used |= 1 << (p & 7)
	}
	if idle := named &^ used; idle != 0 {
		d.tell(at, "idle", "%s: %s is on for %s, and nothing that the scenario sends is there: RoCE of its workloads is in %s", node, feature, listed(idle), listed(roce))
	}
}

// listed is priorities in words.
func listed(set uint8) string {
	var all []string
	for i := range 8 {
		if set&(1<<i) != 0 {
			all = append(all, strconv.Itoa(i))
		}
	}
	if bits.OnesCount8(set) == 1 {
		return "priority " + all[0]
	}
	return "priorities " + strings.Join(all, ", ")
}

// switchHeadroom holds what was given against what the longest or fastest of the switch's links asks for.
func (d *doubts) switchHeadroom(n *topo.Node, m *fabric.SwitchModel, own *asic.Settings) {
	if m.PFC == nil || m.PFC.Headroom == nil || own.Port.PFC.Send == 0 {
		return
	}
	at := d.section(n, func(m *fabric.SwitchModel) bool { return m.PFC != nil && m.PFC.Headroom != nil }) + ".pfc.headroom"
	var reaction time.Duration
	if d.reaction != nil {
		reaction = d.reaction(n)
	}
	d.headroom(at, d.plan.Ports(n.Name), *m.PFC.Headroom, reaction)
}

func (d *doubts) headroom(at string, ports []topo.PlanPort, given topo.Bytes, reaction time.Duration) {
	needs := func(p topo.PlanPort) dcqcn.Bytes {
		l := &d.plan.Topology.Links[p.Link]
		return asic.Headroom(uint64(l.Rate), l.Delay, reaction, l.MTU)
	}
	if len(ports) == 0 {
		return
	}
	p := slices.MaxFunc(ports, func(a, b topo.PlanPort) int { return int(needs(a)) - int(needs(b)) })
	l := &d.plan.Topology.Links[p.Link]
	if need := needs(p); dcqcn.Bytes(given) < need {
		within := ""
		if reaction > 0 {
			within = fmt.Sprintf(", pauses obeyed within %v", reaction)
		}
		d.tell(at, "", "%s: %v of headroom is less than what may still come in after a pause was sent, %v (%v, %v away, MTU %d%s): packets can be lost, although the priority is lossless; leave the key out for what it takes",
			p.Ref, given, topo.Bytes(need), l.Rate, l.Delay, l.MTU, within)
	}
}

// nic looks at what a host's NICs were given. They have the same links as the switches, and peers that stop at once: a switch's port.
func (d *doubts) nic(n *topo.Node) {
	m := d.settings.NICs.Of(n.Name)
	if m.PFC == nil {
		return
	}
	section := func(has func(*fabric.NICPFCSettings) bool) string {
		return d.settings.NICs.Section(n.Name, func(m *fabric.NICModel) bool { return m.PFC != nil && has(m.PFC) }) + ".pfc"
	}
	if m.PFC.Priorities != nil {
		dscp := link.DefaultPriorities()
		if own := Priorities(m.Priorities); own != nil {
			dscp = *own
		}
		on := m.PFC.Priorities.Bits()
		d.covers(section(func(p *fabric.NICPFCSettings) bool { return p.Priorities != nil })+".priorities", n.Name, "pfc", "make lossless", on, on, &dscp)
	}
	lossless := m.PFC.Priorities.Bits()
	if sw := Neighbour(d.plan, &d.settings.Switches, n.Name); m.PFC.Priorities == nil && sw != nil && sw.PFC != nil {
		lossless = PFCPriorities(sw.PFC)
	}
	if m.PFC.Headroom != nil && lossless != 0 {
		d.headroom(section(func(p *fabric.NICPFCSettings) bool { return p.Headroom != nil })+".headroom", d.plan.Ports(n.Name), *m.PFC.Headroom, 0)
	}
}
