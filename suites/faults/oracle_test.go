package faults_test

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

// The oracle says what packet events do, from a capture of what left alone. It is made to be obviously right and is slow: it knows connections by what they sent
// first, counts everything in maps, and shares with the product the parser of scenarios and nothing else.

// to is where packets go: a queue pair of a host.
type to struct {
	addr netip.Addr
	qpn  uint32
}

// side is what an oracle knows of one end of a connection: of the packets that go there.
type side struct {
	number    int  // of the connection, in the order in which they began
	forward   bool // its requester sent first
	requests  roce.PSN
	responses roce.PSN
}

// sides finds the connections of a capture, which must have all packets of both directions from the first on.
func sides(all []frame) map[to]*side {
	type stream struct {
		to
		from  netip.Addr
		first roce.PSN
		last  roce.PSN
	}
	var streams []*stream
	answers := map[to]roce.PSN{}
	var order []to
	for i := range all {
		f := &all[i]
		if !f.isRoCE() || f.op() == roce.OpCNP {
			continue
		}
		k := to{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
		if f.Opcode().Info().Any(roce.Response) {
			if _, ok := answers[k]; !ok {
				answers[k] = f.PSN()
				order = append(order, k)
			}
			continue
		}
		at := slices.IndexFunc(streams, func(s *stream) bool { return s.to == k })
		if at < 0 {
			at = len(streams)
			streams = append(streams, &stream{to: k, from: netip.AddrFrom16(f.SrcAddr()).Unmap(), first: f.PSN(), last: f.PSN()})
		}
		last := f.PSN()
		if f.op() == roce.OpRDMAReadRequest {
			last = last.Add(4096)
		}
		if last.Sub(streams[at].last) > 0 {
			streams[at].last = last
		}
	}
	out := map[to]*side{}
	for _, s := range streams {
		if out[s.to] != nil { // the way back of one that is known
			out[s.to].requests = s.first
			continue
		}
		n := len(out) / 2
		var back to
		for _, k := range order {
			if k.addr == s.from && out[k] == nil && answers[k].Sub(s.first) >= 0 && s.last.Sub(answers[k]) >= 0 {
				back = k
			}
		}
		Expect(back.qpn).NotTo(BeZero(), "the queue pair that the answers to QP %#x go to", s.qpn)
		out[s.to] = &side{number: n, forward: true, requests: s.first}
		out[back] = &side{number: n, responses: s.first}
	}
	for k, s := range out { // what answers the requests of the way back counts from their first
		for _, t := range streams {
			if !s.forward && t.to == k {
				for _, other := range out {
					if other.forward && other.number == s.number {
						other.responses = t.first
					}
				}
			}
		}
	}
	return out
}

// verdict is what becomes of a packet.
type verdict struct {
	hit                            bool
	drop, ce, clear, setDSCP, hurt bool
	dscp                           int
	part                           packet.Part
	truncate, copies, hold         int
	delay, atMost                  time.Duration
}

// oracle decides at one place.
type oracle struct {
	events []packet.Event
	sides  map[to]*side
	passes map[string]int
	next   map[string]int
	rounds map[string]int
	counts []int
}

func newOracle(events []packet.Event, known map[to]*side) *oracle {
	return &oracle{events, known, map[string]int{}, map[string]int{}, map[string]int{}, make([]int, len(events))}
}

func in(s packet.Set, n int) bool {
	if len(s) == 0 {
		return true
	}
	for _, r := range s {
		if n >= int(r.From) && n <= int(r.To) {
			return true
		}
	}
	return false
}

// classes are the names under which an event may ask for the packet, and the stream that counts its passes.
func classes(f *frame) (names []string, stream string) {
	syndrome := byte(0)
	if f.Opcode().Info().Is(roce.HasAETH) {
		syndrome = byte(f.AETH().Syndrome)
	}
	switch op := f.Opcode(); {
	case op <= 5 || op == 0x16 || op == 0x17:
		return []string{"any", "data", "send"}, "requests"
	case op >= 6 && op <= 0xb:
		return []string{"any", "data", "write"}, "requests"
	case op == 0xc:
		return []string{"any", "read-request"}, "requests"
	case op >= 0xd && op <= 0x10:
		return []string{"any", "data", "read-response"}, "responses"
	case op == 0x12:
		return []string{"any", "atomic-ack"}, "responses"
	case op == 0x13 || op == 0x14:
		return []string{"any", "atomic"}, "requests"
	case op == 0x81:
		return []string{"any", "cnp"}, ""
	case op == 0x11 && syndrome>>5 == 0:
		return []string{"any", "ack"}, "acks"
	case op == 0x11 && syndrome>>5 == 1:
		return []string{"any", "nak", "nak:rnr"}, "naks"
	case op == 0x11 && syndrome == 0x60:
		return []string{"any", "nak", "nak:seq"}, "naks"
	}
	Fail(fmt.Sprintf("the rows make no packet of opcode %#x, syndrome %#x", f.Opcode(), syndrome))
	return nil, ""
}

// places are where in its message the packet is.
func places(f *frame) []string {
	switch f.Opcode() & 0x1f {
	case 0, 6, 0xd:
		return []string{"first"}
	case 1, 7, 0xe:
		return []string{"middle"}
	case 2, 3, 8, 9, 0xf, 0x16:
		return []string{"last"}
	}
	return []string{"first", "last"}
}

// text is how a value of an event is written.
func text(v interface{ MarshalText() ([]byte, error) }) string {
	b, err := v.MarshalText()
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

// look decides on the next packet that leaves.
func (o *oracle) look(f *frame) (v verdict) {
	if !f.isRoCE() {
		return v
	}
	names, stream := classes(f)
	where := to{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
	s := o.sides[where]
	psn, pass, round := -1, -1, -1
	if s != nil && stream != "" {
		base := s.responses
		if stream == "requests" {
			base = s.requests
		}
		psn = int(uint32(f.PSN()-base) & 0xffffff)
		counted := fmt.Sprint(where, stream)
		o.passes[fmt.Sprint(counted, psn)]++
		pass = o.passes[fmt.Sprint(counted, psn)]
		if o.rounds[counted] == 0 {
			o.rounds[counted] = 1
		}
		if psn != o.next[counted] {
			o.rounds[counted]++
		} else if slices.Contains(places(f), "first") {
			o.rounds[counted] = 1
		}
		o.next[counted] = psn + 1
		round = o.rounds[counted]
	}
	for i := range o.events {
		m := &o.events[i].Match
		if !o.matches(m, f, s, names, psn, pass, round) {
			continue
		}
		o.counts[i]++
		if n := o.counts[i]; !in(m.Ordinal, n) || m.Every > 0 && n%m.Every != 0 {
			continue
		}
		v.hit = true
		for _, a := range o.events[i].Do {
			v.add(a)
		}
		if v.drop {
			return v
		}
	}
	return v
}

func (o *oracle) matches(m *packet.Match, f *frame, s *side, names []string, psn, pass, round int) bool {
	if m.Workload != "" || m.From != "" || m.To != "" || m.Probability != 0 {
		Fail("the oracle knows nothing of workloads' names and of lots")
	}
	named := len(m.QP) > 0 || m.Direction != "" || len(m.PSN) > 0 || len(m.Iteration) > 0 || len(m.Round) > 0
	switch {
	case named && s == nil,
		len(m.QP) > 0 && !in(m.QP, s.number),
		m.Direction == packet.Forward && !s.forward,
		m.Direction == packet.Reverse && s.forward,
		len(m.PSN) > 0 && (psn < 0 || !in(m.PSN, psn)),
		len(m.Iteration) > 0 && (psn < 0 || !in(m.Iteration, pass)),
		len(m.Round) > 0 && (psn < 0 || !in(m.Round, round)),
		len(m.DSCP) > 0 && !in(m.DSCP, int(f.data[15]>>2)):
		return false
	}
	if len(m.Class) > 0 && !slices.ContainsFunc(m.Class, func(c packet.Class) bool { return slices.Contains(names, text(c)) }) {
		return false
	}
	if len(m.Message) > 0 && !slices.ContainsFunc(m.Message, func(p packet.Position) bool { return slices.Contains(places(f), text(p)) }) {
		return false
	}
	ecn := []string{"not-ect", "ect1", "ect0", "ce"}[f.data[15]&3]
	return len(m.ECN) == 0 || slices.ContainsFunc(m.ECN, func(e packet.ECN) bool { return text(e) == ecn })
}

func (v *verdict) add(a packet.Action) {
	switch a.Verb {
	case packet.Drop:
		v.drop = true
	case packet.Corrupt:
		v.hurt, v.part = true, a.Part
	case packet.MarkCE:
		v.ce, v.clear = true, false
	case packet.ClearECT:
		v.ce, v.clear = false, true
	case packet.SetDSCP:
		v.setDSCP, v.dscp = true, a.N
	case packet.Duplicate:
		v.copies += a.N
	case packet.Delay:
		v.delay += a.Time
	case packet.Hold:
		v.hold, v.atMost = a.N, a.Time
	case packet.Truncate:
		v.truncate = a.N
	}
}
