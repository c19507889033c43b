package faults_test

import (
	"bytes"
	"encoding/binary"
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

// wanted is a packet that must come.
type wanted struct {
	data     []byte
	hurtFrom int // one bit from this byte on, to hurtTo, is another one
	hurtTo   int
	left     time.Duration
	late     time.Duration // how much later it goes on than it left
	floats   bool          // others may overtake it: only when it comes is known
}

const l3, l4, bth = 14, 34, 42

// become is what a packet looks like when it comes.
func (v *verdict) become(f *frame) wanted {
	w := wanted{data: slices.Clone(f.data), left: f.at}
	if v.setDSCP {
		w.data[15] = w.data[15]&3 | byte(v.dscp)<<2
	}
	if v.ce {
		w.data[15] |= 3
	}
	if v.clear {
		w.data[15] &^= 3
	}
	if w.data[15] != f.data[15] { // the header's checksum, all of it anew
		checksum(w.data)
	}
	if v.hurt {
		payload := bth + headers(f)
		end := l3 + int(binary.BigEndian.Uint16(f.data[16:]))
		switch v.part {
		case packet.Payload:
			w.hurtFrom, w.hurtTo = payload, end-4
			if payload == end-4 { // it carries nothing
				w.hurtFrom, w.hurtTo = bth, bth+12
			}
		case packet.Header:
			w.hurtFrom, w.hurtTo = bth, payload
		case packet.ICRC:
			w.hurtFrom, w.hurtTo = end-4, end
		}
	}
	if v.truncate > 0 && v.truncate < len(w.data) {
		w.data = w.data[:v.truncate]
	}
	return w
}

// headers is how long the transport headers are (InfiniBand specification, volume 1, table 38 and chapter 9).
func headers(f *frame) int {
	n := 12
	switch op := f.Opcode(); op {
	case 0x81: // CNP: 16 reserved bytes
		return 28
	case 6, 0xa, 0xc: // RETH
		n += 16
	case 0xb:
		n += 20
	case 3, 5, 9, 0xd, 0xf, 0x10, 0x11, 0x16, 0x17: // ImmDt, IETH or AETH
		n += 4
	case 0x12: // AETH, AtomicAckETH
		n += 12
	case 0x13, 0x14: // AtomicETH
		n += 28
	}
	return n
}

// held is a packet that waits for others, with its copies.
type held struct {
	all   []wanted
	where to
	left  int
	until time.Duration // 0: without end
}

// predict is what must come of what left, in its order; hits are the packets that something was done to. heal is when what is held goes on.
func (o *oracle) predict(left []frame, heal time.Duration) (out []wanted, hits int) {
	var waiting []*held
	goOn := func(k to) {
		for again := true; again; {
			again = false
			for i, h := range waiting {
				if h.where != k {
					continue
				}
				if h.left--; h.left == 0 {
					waiting = slices.Delete(waiting, i, i+1)
					out = append(out, h.all...)
					again = true // it has gone on, too
					break
				}
			}
		}
	}
	release := func(now time.Duration) {
		waiting = slices.DeleteFunc(waiting, func(h *held) bool {
			if h.until == 0 || h.until > now {
				return false
			}
			for _, w := range h.all {
				w.late, w.floats = h.until-w.left, true
				out = append(out, w)
			}
			return true
		})
	}
	for i := range left {
		f := &left[i]
		release(f.at)
		v := o.look(f)
		if v.hit {
			hits++
		}
		if v.drop {
			continue
		}
		w := v.become(f)
		w.late, w.floats = v.delay, v.delay > 0
		all := slices.Repeat([]wanted{w}, 1+v.copies)
		var k to
		if f.isRoCE() {
			k = to{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
		}
		if v.hold > 0 {
			h := &held{all: all, where: k, left: v.hold}
			if v.atMost > 0 {
				h.until = f.at + v.atMost
			}
			waiting = append(waiting, h)
			continue
		}
		out = append(out, all...)
		goOn(k)
	}
	release(heal)
	for _, h := range waiting {
		for _, w := range h.all {
			w.floats = true
			out = append(out, w)
		}
	}
	return out, hits
}

// is says whether a packet that came is the one wanted; damage is a bit.
func (w *wanted) is(f *frame) bool {
	if w.hurtTo == 0 {
		return bytes.Equal(w.data, f.data)
	}
	if len(w.data) != len(f.data) {
		return false
	}
	flipped := 0
	for i := range w.data {
		for x := w.data[i] ^ f.data[i]; x != 0; x &= x - 1 {
			if flipped++; i < w.hurtFrom || i >= w.hurtTo {
				return false
			}
		}
	}
	return flipped == 1
}

// compare holds what came against what is wanted: the same packets in the same order, but for those that others may overtake, which must come when they are due.
// exact: times are to the nanosecond.
func compare(want []wanted, came []frame, exact bool) error {
	var floating []wanted
	i := 0
	for n := range came {
		f := &came[n]
		for i < len(want) && want[i].floats {
			floating = append(floating, want[i])
			i++
		}
		if i < len(want) && want[i].is(f) {
			if took := f.at - want[i].left; exact && want[i].late == 0 && want[i].left > 0 && took < linkDelay {
				return fmt.Errorf("packet %d took %v over a link of %v", n, took, linkDelay)
			}
			i++
			continue
		}
		at := slices.IndexFunc(floating, func(w wanted) bool { return w.is(f) })
		if at < 0 {
			next := "nothing more"
			if i < len(want) {
				next = fmt.Sprintf("%d bytes %x", len(want[i].data), head(want[i].data))
			}
			return fmt.Errorf("packet %d of those that came: want %s\nor one of %d that may come later, got %d bytes %x", n, next, len(floating), len(f.data), head(f.data))
		}
		w := floating[at]
		if took := f.at - w.left; w.late > 0 && (exact && took != w.late+linkDelay || took < w.late) {
			return fmt.Errorf("packet %d came %v after it had left, want %v and the link's %v", n, took, w.late, linkDelay)
		}
		floating = slices.Delete(floating, at, at+1)
	}
	for ; i < len(want); i++ {
		floating = append(floating, want[i])
	}
	if len(floating) > 0 {
		return fmt.Errorf("%d packets never came, the first of %d bytes %x", len(floating), len(floating[0].data), head(floating[0].data))
	}
	return nil
}
