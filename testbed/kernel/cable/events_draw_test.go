//go:build linux

package cable

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// lots draws events, connections and frames that have something to do with each other.
type lots struct {
	*rand.Rand
	conns []packet.Connection
	next  map[int]int
}

func newLots(seed uint64) *lots {
	d := &lots{Rand: rand.New(rand.NewPCG(seed, 7)), next: map[int]int{}}
	for i := range 1 + d.IntN(4) {
		a := d.IntN(4)
		b := (a + 1 + d.IntN(3)) % 4
		end := func(h int) packet.End {
			return packet.End{Port: topo.PortRef{Node: "h" + string(rune('1'+h)), Port: "eth0"}, Addr: host(h), QPN: uint32(0x11 + i), PSN: roce.PSN(one(d, 0, 5, 0xfffffe, d.IntN(1<<24)))}
		}
		d.conns = append(d.conns, packet.Connection{Workload: one(d, "w", "bulk"), Flow: uint32(d.IntN(3)), Number: uint32(i), From: end(a), To: end(b)})
	}
	return d
}

func one[T any](d *lots, of ...T) T { return of[d.IntN(len(of))] }

// host is an address, of IPv4 or IPv6.
func host(i int) roce.Addr {
	if i%2 == 1 {
		return roce.AddrFrom(netip.AddrFrom16([16]byte{0xfd, 15: byte(i)}))
	}
	return roce.AddrFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
}

func (d *lots) set(below int) (s packet.Set) {
	for range 1 + d.IntN(6) {
		from := uint32(d.IntN(below))
		s = append(s, packet.Range{From: from, To: from + uint32(one(d, 0, 0, 1, 3))})
	}
	return s
}

func (d *lots) event() packet.Event {
	var m packet.Match
	of := func(n int) bool { return d.IntN(n) == 0 }
	if of(3) {
		m.Workload = one(d, "w", "b*", "nobody")
	}
	if of(3) {
		m.QP = d.set(3)
	}
	if of(6) {
		m.From = one(d, "h1", "h*:eth0", "h2:eth0")
	}
	if of(3) {
		m.Direction = one(d, packet.Forward, packet.Reverse)
	}
	if of(2) {
		m.PSN = d.set(12)
	}
	beyond := func(from uint32) packet.Range { return packet.Range{From: from, To: 1<<32 - 1} }
	switch d.IntN(5) {
	case 0, 1:
		m.Iteration = one(d, packet.Set{{From: 1, To: 1}}, packet.Set{{From: 2, To: 3}}, packet.Set{{From: 1, To: 1}, beyond(3)}, packet.Set{beyond(2)})
	case 2:
		m.Round = one(d, packet.Set{{From: 1, To: 1}}, packet.Set{{From: 2, To: 2}}, packet.Set{beyond(2)})
	}
	if of(2) {
		m.Class = one(d, packet.Classes{packet.Data}, packet.Classes{packet.Nak}, packet.Classes{packet.Ack, packet.Write}, packet.Classes{packet.IP}, packet.Classes{packet.NakRNR, packet.CNP, packet.ReadResponse})
	}
	if of(5) {
		m.Message = one(d, packet.Parts{packet.First}, packet.Parts{packet.Last}, packet.Parts{packet.Middle, packet.Last})
	}
	if of(6) {
		m.DSCP = one(d, packet.Set{{From: 26, To: 26}}, packet.Set{{From: 0, To: 25}})
	}
	if of(8) {
		m.ECN = one(d, packet.ECNs{packet.ECN(roce.CE)}, packet.ECNs{packet.ECN(roce.ECT0), packet.ECN(roce.NotECT)})
	}
	if of(4) {
		m.Ordinal = one(d, packet.Set{{From: 1, To: 1}}, packet.Set{{From: 2, To: 5}}, packet.Set{beyond(3)})
	}
	if of(4) {
		m.Every = 1 + d.IntN(4)
	}
	if of(5) {
		m.Probability = one[topo.Fraction](d, 0.3, 1)
	}
	return packet.Event{Match: m, Do: d.do()}
}

func (d *lots) do() (do packet.Do) {
	if d.IntN(3) == 0 {
		return packet.Do{{Verb: packet.Drop}}
	}
	for _, a := range []packet.Action{
		{Verb: packet.Corrupt, Part: one(d, packet.Payload, packet.Header, packet.ICRC)}, {Verb: one(d, packet.MarkCE, packet.ClearECT)}, {Verb: packet.SetDSCP, N: d.IntN(64)},
		{Verb: packet.Duplicate, N: 1 + d.IntN(packet.MaxCopies)}, {Verb: packet.Truncate, N: packet.MinTruncate + d.IntN(100)},
		one(d, packet.Action{Verb: packet.Delay, Time: time.Duration(1 + d.IntN(1000))}, packet.Action{Verb: packet.Hold, N: 1 + d.IntN(packet.MaxHold), Time: time.Duration(d.IntN(2) * 1e10)}),
	} {
		if len(do) == 0 || d.IntN(3) == 0 {
			do = append(do, a)
		}
	}
	return do
}

// program are some events, compiled.
func (d *lots) program(seed uint64, window int) (*packet.Program, error) {
	var events []packet.Event
	for n := 1 + d.IntN(6); len(events) < n; {
		if e := d.event(); packet.Validate("", []packet.Event{e}) == nil {
			events = append(events, e)
		}
	}
	p, err := packet.Compile(events, seed)
	if err == nil {
		err = p.SetWindow(window)
	}
	return p, err
}

// frame is one that some connection might send; requests walk through their PSNs and go back now and then.
func (d *lots) frame() []byte {
	mac := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}
	switch d.IntN(24) {
	case 0: // ARP
		return append(slices.Clone(mac), 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2)
	case 1: // ICMP
		b := append(slices.Clone(mac), 0x08, 0x00, 0x45, byte(d.IntN(256)), 0, 40, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
		return append(b, make([]byte, 20+d.IntN(5))...)
	}
	i := d.IntN(len(d.conns))
	c := &d.conns[i]
	from, to := c.From, c.To
	if d.IntN(2) == 0 {
		from, to = to, from
	}
	p := roce.Packet{TrafficClass: one[uint8](d, 106, 104, 107, 0, 192), TTL: 64, Src: from.Addr, Dst: to.Addr, SrcPort: 50000}
	if to.Addr.Is4() != from.Addr.Is4() { // both ends are of one kind
		p.Src = to.Addr
	}
	p.BTH = roce.BTH{DestQP: to.QPN, Opcode: roce.Opcode(one(d, roce.RCSendFirst, roce.RCSendLast, roce.RCSendOnly, roce.RCRDMAWriteFirst, roce.RCRDMAWriteMiddle,
		roce.RCRDMAWriteLast, roce.RCRDMAWriteOnly, roce.RCRDMAReadRequest, roce.RCRDMAReadResponseFirst, roce.RCRDMAReadResponseMiddle, roce.RCRDMAReadResponseLast,
		roce.RCAcknowledge, roce.RCAcknowledge, roce.RCAcknowledge, roce.RCAtomicAcknowledge, roce.RCFetchAdd, roce.CNP, roce.RCFlush, roce.UDSendOnly))}
	if d.IntN(10) == 0 {
		p.BTH.DestQP += 100 // nobody's
	}
	info := p.BTH.Opcode.Info()
	if info.Is(roce.HasAETH) {
		p.AETH.Syndrome = one(d, roce.ACK(31), roce.RNRNAK(12), roce.NAK(roce.NAKCode(d.IntN(6))))
	}
	base := to.PSN
	if info.Any(roce.Request) {
		base = from.PSN
	}
	key := i*2 + int(p.BTH.Opcode)%2
	if d.IntN(6) == 0 {
		d.next[key] = max(0, d.next[key]-d.IntN(4))
	}
	p.BTH.PSN = base.Add(d.next[key])
	d.next[key]++
	if info.Is(roce.HasPayload) {
		p.Payload = make([]byte, d.IntN(200))
		for k := range p.Payload {
			p.Payload[k] = byte(d.Uint32())
		}
		p.PayloadLen = len(p.Payload)
	}
	b, err := p.Append(nil)
	if err != nil {
		panic(err) // the drawing is wrong
	}
	if d.IntN(20) == 0 { // broken somewhere in its headers
		b[14+d.IntN(40)] ^= 1 << d.IntN(8)
	}
	return b
}
