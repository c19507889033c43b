package packet

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// drawer draws events, connections and packets that have something to do with each other.
type drawer struct{ *rand.Rand }

func (d drawer) of(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d drawer, of ...T) T { return of[d.IntN(len(of))] }

func addr(i int) roce.Addr { return roce.AddrFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})) }

// connections are between a few hosts; queue pair numbers repeat from device to device.
func (d drawer) connections() (out []Connection) {
	for i := range 1 + d.IntN(5) {
		a := d.IntN(4)
		b := (a + 1 + d.IntN(3)) % 4
		end := func(h int) End {
			port := topo.PortRef{Node: "h" + string(rune('1'+h)), Port: "eth0"}
			return End{Port: port, Addr: addr(h), QPN: uint32(0x11 + i), PSN: roce.PSN(pick(d, 0, 5, 0xfffffe, d.IntN(1<<24)))}
		}
		out = append(out, Connection{Workload: pick(d, "w", "bulk"), Flow: uint32(d.IntN(3)), Number: uint32(i), From: end(a), To: end(b)})
	}
	return out
}

func (d drawer) set(below int) Set {
	var s Set
	for range 1 + d.IntN(6) {
		from := uint32(d.IntN(below))
		s = append(s, Range{from, from + uint32(pick(d, 0, 0, 1, 3))})
	}
	return s
}

func (d drawer) event() Event {
	var m Match
	if d.of(3) {
		m.Workload = pick(d, "w", "b*", "nobody")
	}
	if d.of(3) {
		m.QP = d.set(3)
	}
	if d.of(6) {
		m.From = pick(d, "h1", "h*:eth0", "h2:eth0")
	}
	if d.of(6) {
		m.To = pick(d, "h[23]", "h*:eth1")
	}
	if d.of(3) {
		m.Direction = pick(d, Forward, Reverse)
	}
	if d.of(2) {
		m.PSN = d.set(12)
	}
	switch d.IntN(5) {
	case 0, 1:
		m.Iteration = pick(d, Set{{1, 1}}, Set{{2, 3}}, Set{{1, 1}, {3, 1<<32 - 1}}, Set{{2, 1<<32 - 1}})
	case 2:
		m.Round = pick(d, Set{{1, 1}}, Set{{2, 2}}, Set{{2, 1<<32 - 1}})
	}
	if d.of(2) {
		for range 1 + d.IntN(3) {
			m.Class = append(m.Class, words[d.IntN(len(words))].class)
		}
	}
	if d.of(5) {
		m.Message = pick(d, Parts{First}, Parts{Last}, Parts{Middle, Last})
	}
	if d.of(6) {
		m.DSCP = pick(d, Set{{26, 26}}, Set{{0, 25}})
	}
	if d.of(8) {
		m.ECN = pick(d, ECNs{ECN(roce.CE)}, ECNs{ECN(roce.ECT0), ECN(roce.NotECT)})
	}
	if d.of(4) {
		m.Ordinal = pick(d, Set{{1, 1}}, Set{{2, 5}}, Set{{3, 1<<32 - 1}})
	}
	if d.of(4) {
		m.Every = 1 + d.IntN(4)
	}
	if d.of(5) {
		m.Probability = pick[topo.Fraction](d, 0.3, 1)
	}
	return Event{m, d.do()}
}

func (d drawer) do() (do Do) {
	if d.of(3) {
		return Do{{Verb: Drop}}
	}
	for _, a := range []Action{
		{Verb: Corrupt, Part: pick(d, Payload, Header, ICRC)}, {Verb: pick(d, MarkCE, ClearECT)}, {Verb: SetDSCP, N: d.IntN(64)},
		{Verb: Duplicate, N: 1 + d.IntN(MaxCopies)}, {Verb: Truncate, N: MinTruncate + d.IntN(100)},
		pick(d, Action{Verb: Delay, Time: time.Duration(1 + d.IntN(1000))}, Action{Verb: Hold, N: 1 + d.IntN(MaxHold), Time: time.Duration(d.IntN(2) * 1000)}),
	} {
		if len(do) == 0 || d.of(3) {
			do = append(do, a)
		}
	}
	return do
}

func (d drawer) events() (out []Event) {
	for len(out) < 1+d.IntN(6) {
		if e := d.event(); e.Match.validate() == nil {
			out = append(out, e)
		}
	}
	return out
}

// packets walk through the PSNs of their streams and now and then go back, as requesters do.
type packets struct {
	d     drawer
	conns []Connection
	next  map[int]int
}

func (p *packets) draw() Facts {
	d := p.d
	tc := pick[uint8](d, 106, 104, 107, 0, 192)
	if d.of(12) {
		return Facts{TrafficClass: tc}
	}
	i := d.IntN(len(p.conns))
	c := &p.conns[i]
	from, to := c.From, c.To
	if d.of(2) {
		from, to = to, from
	}
	f := Facts{Dst: to.Addr, DestQP: to.QPN, TrafficClass: tc, RoCE: true}
	if d.of(10) {
		f.DestQP += 100 // nobody's
	}
	f.Opcode = roce.Opcode(pick(d, roce.RCSendFirst, roce.RCSendMiddle, roce.RCSendLast, roce.RCSendOnly, roce.RCRDMAWriteFirst, roce.RCRDMAWriteMiddle,
		roce.RCRDMAWriteLast, roce.RCRDMAWriteOnly, roce.RCRDMAReadRequest, roce.RCRDMAReadResponseFirst, roce.RCRDMAReadResponseMiddle, roce.RCRDMAReadResponseLast,
		roce.RCAcknowledge, roce.RCAcknowledge, roce.RCAcknowledge, roce.RCAtomicAcknowledge, roce.RCFetchAdd, roce.CNP, roce.RCFlush, roce.UDSendOnly, roce.SRWriteMiddle, roce.SRSelectiveAck, 0x1f))
	if f.Opcode.Info().Is(roce.HasAETH) {
		f.Syndrome = pick(d, roce.ACK(31), roce.RNRNAK(12), roce.NAK(roce.NAKCode(d.IntN(6))))
	}
	base := to.PSN
	if f.Opcode.Info().Any(roce.Request) {
		base = from.PSN
	}
	key := i*2 + int(f.Opcode)%2
	if d.of(6) {
		p.next[key] = max(0, p.next[key]-d.IntN(4))
	}
	f.PSN = base.Add(p.next[key])
	p.next[key]++
	return f
}
