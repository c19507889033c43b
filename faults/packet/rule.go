package packet

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rocebed/rocebed/topo/strict"
)

// Rule is an event in flat form, or a part of one: an event with more PSN ranges than a rule holds is several rules, of which a
// packet matches one at most. All of a rule's conditions must hold. Encode writes the fields in this order.
type Rule struct {
	Classes   Class    // the packet's class is among them
	Positions Position // the packet's place in its message: one bit in common is enough
	Ways      uint8    // bit 0 forward, bit 1 reverse
	ECN       uint8    // bit n for codepoint n
	Flags     uint8
	DSCP      uint64 // bit n for DSCP n
	PSN       [rangesOfRule]Range
	Passes    uint32 // bit n−1 for pass (with FlagRounds: round) n up to 31; bit 31 for all beyond

	// These choose among the packets that pass all above, by the event's count of them.
	First, Last uint32 // of the count, from 1; First 0: no such condition; Last MaxUint32: no end
	Every       uint32 // the count is a multiple; 0: no such condition
	Threshold   uint64 // Draw(seed, event, count − 1) is below; MaxUint64: no such condition

	Event    uint16 // whose count it is, from 0
	Do       uint16 // bit n for Verbs()[n]
	Part     uint8  // corrupt: 0 payload, 1 header, 2 ICRC
	SetDSCP  uint8
	Truncate uint16 // bytes
	Hold     uint16 // packets
	Copies   uint16
	Delay    uint64 // ns of fabric time
	AtMost   uint64 // hold: ns of fabric time; 0: without end
}

// rangesOfRule is how many PSN ranges a rule holds.
const rangesOfRule = 4

// A rule's flags.
const (
	FlagPSN    = 1 << iota // one of the ranges has the relative PSN; unused ranges have none
	FlagPasses             // Passes has the packet's pass
	FlagRounds             // with FlagPasses: rounds count, not passes
)

// never is a range without a number in it.
var never = Range{1, 0}

// Program is what events come to: rules in the order of the events, and which connections each is about.
type Program struct {
	Rules  []Rule
	Events int
	Seed   uint64 // of probabilities
	// Window is how many consecutive PSNs of a stream passes are counted for at once, a power of two. A PSN that comes again after
	// so many others is taken for a new one: it must be above what a requester may have unacknowledged.
	Window uint32

	about []about // by event
}

// about is which connections an event is about.
type about struct {
	any          bool // those that nobody knows, too
	workload     string
	qp           Set
	from, to     string
	wholeNumbers bool // qp counts among all connections
}

// DefaultWindow is more than any profile's requester may have unacknowledged, READ responses included.
const DefaultWindow = 8192

// Compile makes a program of events that Validate accepts. seed is of this place alone.
func Compile(events []Event, seed uint64) (*Program, error) {
	if err := Validate("events", events); err != nil {
		return nil, err
	}
	p := &Program{Events: len(events), Seed: seed, Window: DefaultWindow}
	for i := range events {
		m := &events[i].Match
		r := m.rule()
		r.Event = uint16(i)
		for j := range events[i].Do {
			r.act(&events[i].Do[j])
		}
		known := r.Flags != 0 || m.Direction != "" || m.Workload != "" || len(m.QP) > 0 || m.From != "" || m.To != ""
		p.about = append(p.about, about{any: !known, workload: m.Workload, qp: m.QP, from: m.From, to: m.To, wholeNumbers: m.Workload == ""})
		psns := m.PSN.Normal()
		for more := true; more; more = len(psns) > 0 {
			part := r
			for k := range part.PSN {
				part.PSN[k] = never
				if k < len(psns) {
					part.PSN[k] = Range{psns[k].From, min(psns[k].To, MaxPSN)}
				}
			}
			psns = psns[min(len(psns), rangesOfRule):]
			p.Rules = append(p.Rules, part)
		}
	}
	if len(p.Rules) > math.MaxUint16 {
		return nil, strict.At("events", "%w", fmt.Errorf("their PSNs come to %d rules, more than %d", len(p.Rules), math.MaxUint16))
	}
	return p, nil
}

// rule is what a match says of packets.
func (m *Match) rule() Rule {
	r := Rule{
		Classes: m.Class.Mask(), Positions: m.Message.mask(), Ways: 3, ECN: m.ECN.mask(), DSCP: m.DSCP.mask(),
		Every: uint32(m.Every), Threshold: math.MaxUint64,
	}
	switch m.Direction {
	case Forward:
		r.Ways = 1
	case Reverse:
		r.Ways = 2
	}
	if len(m.PSN) > 0 {
		r.Flags |= FlagPSN
	}
	switch {
	case len(m.Iteration) > 0:
		r.Flags, r.Passes = r.Flags|FlagPasses, m.Iteration.passes()
	case len(m.Round) > 0:
		r.Flags, r.Passes = r.Flags|FlagPasses|FlagRounds, m.Round.passes()
	}
	if o := m.Ordinal.Normal(); len(o) > 0 {
		r.First, r.Last = o[0].From, o[0].To
	}
	if p := float64(m.Probability); p > 0 && p < 1 {
		r.Threshold = min(uint64(math.Ldexp(p, 64)), math.MaxUint64-1)
	}
	return r
}

// act adds an action to what the rule does.
func (r *Rule) act(a *Action) {
	r.Do |= a.Verb.bit()
	switch a.Verb {
	case Corrupt:
		r.Part = uint8(slices.Index([]Part{Payload, Header, ICRC}, a.Part))
	case SetDSCP:
		r.SetDSCP = uint8(a.N)
	case Truncate:
		r.Truncate = uint16(a.N)
	case Duplicate:
		r.Copies = uint16(a.N)
	case Delay:
		r.Delay = uint64(a.Time)
	case Hold:
		r.Hold, r.AtMost = uint16(a.N), uint64(a.Time)
	}
}

// bit is the verb's in Rule.Do.
func (v Verb) bit() uint16 { return 1 << slices.Index(Verbs(), v) }

// SetWindow makes the window at least as many PSNs.
func (p *Program) SetWindow(psns int) error {
	if psns < 1 || psns > 1<<20 {
		return errors.New("a window is from 1 to 2^20 PSNs")
	}
	for p.Window = 1; p.Window < uint32(psns); p.Window *= 2 {
	}
	return nil
}
