package packet

import (
	"math"
	"path"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
)

// oracle says what becomes of packets the slow way: from the events as they were written and the whole past.
type oracle struct {
	events []Event
	conns  []Connection
	seed   uint64
	window uint32
	past   []seen
	counts []Count
}

// seen is a packet of the past, by what the oracle made of it.
type seen struct {
	flow   int // connection and direction; −1: unknown
	kind   string
	psn    uint32
	starts bool
}

// kindOf is a packet's class by the specification's operations, one name for each class.
func kindOf(f *Facts) (class, kind string) {
	if !f.RoCE {
		return "ip", ""
	}
	switch f.Opcode.Info().Operation {
	case roce.OpSend:
		return "send", "request"
	case roce.OpRDMAWrite:
		return "write", "request"
	case roce.OpRDMAReadRequest:
		return "read-request", "request"
	case roce.OpCmpSwap, roce.OpFetchAdd:
		return "atomic", "request"
	case roce.OpFlush, roce.OpAtomicWrite:
		return "flush", "request"
	case roce.OpRDMAReadResponse:
		return "read-response", "response"
	case roce.OpAtomicAcknowledge:
		return "atomic-ack", "response"
	case roce.OpCNP:
		return "cnp", ""
	case roce.OpAcknowledge:
		switch s := f.Syndrome; {
		case s.Kind() == roce.SyndromeACK:
			return "ack", "ack"
		case s.Kind() == roce.SyndromeRNRNAK:
			return "nak:rnr", "nak"
		case s.Kind() != roce.SyndromeNAK || s.Value() > 3:
			return "nak:other", "nak"
		default:
			return []string{"nak:seq", "nak:inv", "nak:access", "nak:op"}[s.Value()], "nak"
		}
	}
	return "other", ""
}

// groupsOf are the names that a class goes by.
func groupsOf(class string) []string {
	all := []string{class}
	switch class {
	case "send", "write", "read-response":
		all = append(all, "data")
	case "ip":
		return all
	}
	if len(class) > 4 && class[:4] == "nak:" {
		all = append(all, "nak")
	}
	return append(all, "any")
}

func (o *oracle) look(f *Facts) Verdict {
	class, kind := kindOf(f)
	flow, way := -1, Way("")
	var c *Connection
	for i := range o.conns { // a later one with the same end takes its place
		switch x := &o.conns[i]; {
		case !f.RoCE:
		case x.To.Addr == f.Dst && x.To.QPN == f.DestQP:
			flow, way, c = 2*i, Forward, x
		case x.From.Addr == f.Dst && x.From.QPN == f.DestQP:
			flow, way, c = 2*i+1, Reverse, x
		}
	}
	info := f.Opcode.Info()
	now := seen{flow: flow, kind: kind, starts: info.Any(roce.Starts)}
	pass, round := uint32(0), uint32(0)
	if sequenced := c != nil && kind != ""; sequenced {
		sender, receiver := c.From, c.To
		if way == Reverse {
			sender, receiver = receiver, sender
		}
		base := receiver.PSN
		if kind == "request" {
			base = sender.PSN
		}
		now.psn = uint32(f.PSN.Sub(base)) & MaxPSN
		pass, round = o.passOf(now), o.roundOf(now)
	}
	o.past = append(o.past, now)
	var v Verdict
	for i := range o.events {
		m := &o.events[i].Match
		if !o.matches(m, f, class, kind, way, c, now.psn, pass, round) {
			continue
		}
		o.counts[i].Seen++
		n := o.counts[i].Seen
		ordinal := n
		if ordinal > math.MaxUint32 {
			ordinal = math.MaxUint32
		}
		if !m.Ordinal.Has(uint32(ordinal)) || m.Every > 0 && n%uint64(m.Every) != 0 {
			continue
		}
		if p := float64(m.Probability); p > 0 && p < 1 && float64(draw(o.seed, uint64(i), n-1))/math.Pow(2, 64) >= p {
			continue
		}
		if o.counts[i].Hits++; v.Do == 0 {
			v.Event = uint16(i)
		}
		o.act(&v, o.events[i].Do)
		if o.events[i].Do.Has(Drop) {
			break
		}
	}
	return v
}

// passOf counts how often the stream has had this PSN, since a PSN that shares its place in the window.
func (o *oracle) passOf(now seen) (n uint32) {
	n = 1
	for _, p := range o.past {
		if p.flow != now.flow || p.kind != now.kind {
			continue
		}
		if p.psn == now.psn {
			n = min(n+1, 255)
		} else if p.psn%o.window == now.psn%o.window {
			n = 1
		}
	}
	return n
}

func (o *oracle) roundOf(now seen) uint32 {
	n, next := uint32(1), uint32(0)
	step := func(p seen) {
		if p.psn != next {
			n++
		} else if p.starts {
			n = 1
		}
		next = (p.psn + 1) & MaxPSN
	}
	for _, p := range o.past {
		if p.flow == now.flow && p.kind == now.kind {
			step(p)
		}
	}
	step(now)
	return n
}

func (o *oracle) matches(m *Match, f *Facts, class, kind string, way Way, c *Connection, psn, pass, round uint32) bool {
	glob := func(pattern string, names ...string) bool {
		for _, n := range names {
			if ok, _ := path.Match(pattern, n); ok {
				return true
			}
		}
		return pattern == ""
	}
	if m.Workload != "" || len(m.QP) > 0 || m.From != "" || m.To != "" || m.Direction != "" {
		if c == nil {
			return false
		}
		number := c.Number
		if m.Workload != "" {
			number = c.Flow
		}
		if !glob(m.Workload, c.Workload) || !m.QP.Has(number) || !glob(m.From, c.From.Port.Node, c.From.Port.String()) ||
			!glob(m.To, c.To.Port.Node, c.To.Port.String()) || m.Direction != "" && m.Direction != way {
			return false
		}
	}
	if len(m.PSN) > 0 || len(m.Iteration) > 0 || len(m.Round) > 0 {
		if c == nil || kind == "" || !m.PSN.Has(psn) || !m.Iteration.Has(pass) || !m.Round.Has(round) {
			return false
		}
	}
	classes := m.Class
	if len(classes) == 0 {
		classes = Classes{Any}
	}
	found := false
	for _, want := range classes {
		for _, g := range groupsOf(class) {
			found = found || want.String() == g
		}
	}
	info := f.Opcode.Info()
	placed := len(m.Message) == 0
	for _, p := range m.Message {
		alone := !f.RoCE || !info.Any(roce.First|roce.Middle|roce.Last|roce.Only)
		switch p {
		case First:
			placed = placed || alone || info.Any(roce.Starts)
		case Middle:
			placed = placed || !alone && info.Any(roce.Middle)
		case Last:
			placed = placed || alone || info.Any(roce.Ends)
		}
	}
	ecn := len(m.ECN) == 0
	for _, e := range m.ECN {
		ecn = ecn || uint8(e) == f.TrafficClass&3
	}
	return found && placed && ecn && m.DSCP.Has(uint32(f.TrafficClass>>2))
}

func (o *oracle) act(v *Verdict, do Do) {
	for _, a := range do {
		v.Do |= a.Verb.bit()
		switch a.Verb {
		case Corrupt:
			v.Part = map[Part]uint8{Payload: 0, Header: 1, ICRC: 2}[a.Part]
		case MarkCE:
			v.Do &^= ClearECT.bit()
		case ClearECT:
			v.Do &^= MarkCE.bit()
		case SetDSCP:
			v.DSCP = uint8(a.N)
		case Truncate:
			if v.Truncate == 0 || uint16(a.N) < v.Truncate {
				v.Truncate = uint16(a.N)
			}
		case Duplicate:
			v.Copies = min(v.Copies+uint16(a.N), MaxCopies)
		case Delay:
			v.Delay += a.Time
		case Hold:
			if uint16(a.N) > v.Hold {
				v.Hold, v.AtMost = uint16(a.N), time.Duration(a.Time)
			}
		}
	}
}
