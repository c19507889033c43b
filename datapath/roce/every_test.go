package roce

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

var (
	macA   = MAC{0x02, 0, 0, 0, 0, 0x0a}
	macB   = MAC{0x02, 0, 0, 0, 0, 0x0b}
	addr4A = AddrFrom(netip.MustParseAddr("10.1.2.3"))
	addr4B = AddrFrom(netip.MustParseAddr("10.254.253.252"))
	addr6A = AddrFrom(netip.MustParseAddr("fd00:1:2:3::a"))
	addr6B = AddrFrom(netip.MustParseAddr("fd00:1:2:3::b"))
)

// known are the opcodes with a name.
func known() (all []Opcode) {
	for o := range 256 {
		if Opcode(o).Info().Known() {
			all = append(all, Opcode(o))
		}
	}
	return all
}

// syndromes is one of each kind and code.
func syndromes() (all []Syndrome) {
	for i := range uint8(32) {
		all = append(all, ACK(i), RNRNAK(i))
	}
	for c := NAKPSNSequenceError; c <= NAKInvalidRDRequest; c++ {
		all = append(all, NAK(c))
	}
	return all
}

// sample is a packet in which each field that the opcode has differs by n.
func sample(o Opcode, n int) Packet {
	u := uint64(n)
	p := Packet{
		BTH:    BTH{Opcode: o, SE: n&1 != 0, MigReq: n&2 != 0, AckReq: n&4 != 0, PKey: uint16(0x8001 + n), DestQP: uint32(0x123400 + n), PSN: PSN(0xfffff0).Add(n)},
		SrcMAC: macA, DstMAC: macB, Src: addr4A, Dst: addr4B, TrafficClass: TrafficClass(uint8(n)&63, ECN(n>>6&3)), TTL: uint8(1 + n%255), DF: n&1 == 0, ID: uint16(n * 257),
		SrcPort: uint16(0xc000 + n),
	}
	info := o.Info()
	if info.Any(HasDETH) {
		p.DETH = DETH{QKey: 0x80010000 + uint32(n), SrcQP: 0xabcd00 + uint32(n&0xff)}
	}
	if info.Any(HasFETH) {
		p.FETH = FlushGlobal | FlushRegion
	}
	if info.Any(HasRETH) {
		p.RETH = RETH{VA: 0x7f00_1234_5678_0000 + u, RKey: 0xdead0000 + uint32(n), DMALen: 0x01000000 + uint32(n)}
	}
	if info.Any(HasAETH) {
		all := syndromes()
		p.AETH = AETH{Syndrome: all[n%len(all)], MSN: 0xfedc00 + uint32(n&0xff)}
	}
	if info.Any(HasAtomicETH) {
		p.AtomicETH = AtomicETH{VA: 0x7fff_0000_0000_0008 + u, RKey: 0xbeef0000 + uint32(n), SwapAdd: 0x1122334455667788 + u, Compare: 0x99aabbccddeeff00 + u}
	}
	if info.Any(HasAtomicAckETH) {
		p.AtomicAckETH = 0x0102030405060708 + u
	}
	if info.Any(HasImmDt) {
		p.ImmDt = 0xcafe0000 + uint32(n)
	}
	if info.Any(HasIETH) {
		p.IETH = 0xfeed0000 + uint32(n)
	}
	if info.Any(HasPayload) {
		p.PayloadLen = n % 70
		p.Payload = make([]byte, p.PayloadLen)
		for i := range p.Payload {
			p.Payload[i] = byte(i*7 + n)
		}
	}
	return p
}

// inIPv6 makes it one over IPv6.
func inIPv6(p Packet) Packet {
	p.Src, p.Dst, p.FlowLabel, p.DF, p.ID = addr6A, addr6B, 0xf0000|uint32(p.SrcPort), false, 0
	return p
}

// tagged makes it one with an 802.1Q tag.
func tagged(p Packet) Packet {
	p.Tagged, p.TCI = true, NewTCI(p.DSCP()>>3, p.BTH.SE, 100+p.ID%4000)
	return p
}

// every is every opcode over IPv4 and IPv6, with and without a VLAN, and every syndrome.
func every() (all []Packet) {
	add := func(p Packet) { all = append(all, p, inIPv6(p), tagged(p), tagged(inIPv6(p))) }
	for i, o := range known() {
		add(sample(o, i*5+1))
	}
	for i := range syndromes() {
		add(sample(RCAcknowledge, i))
	}
	for n := range 9 {
		p := sample(RCRDMAWriteOnly, n)
		p.BTH.FECN, p.BTH.BECN = n&1 != 0, n&2 != 0
		add(p)
	}
	big := sample(RCRDMAWriteFirst, 1)
	big.Payload = bytes.Repeat([]byte("rocebed!"), 512)
	big.PayloadLen = len(big.Payload)
	add(big)
	cnp := NewCNP(0x123456)
	cnp.SrcMAC, cnp.DstMAC, cnp.Src, cnp.Dst, cnp.TTL, cnp.TrafficClass, cnp.SrcPort = macA, macB, addr4A, addr4B, 64, TrafficClass(48, NotECT), 0xc123
	add(cnp)
	return all
}

func mustAppend(t testing.TB, p *Packet) []byte {
	t.Helper()
	b, err := p.Append(nil)
	if err != nil {
		t.Fatalf("%v: %v", p.BTH.Opcode, err)
	}
	return b
}

// decode takes a frame apart, which must be RoCE.
func decode(t testing.TB, frame []byte) (v View, p Packet) {
	t.Helper()
	if err := v.Parse(frame); err != nil {
		t.Fatalf("%x: %v", frame, err)
	}
	if err := p.Decode(&v); err != nil {
		t.Fatalf("%x: %v", frame, err)
	}
	return v, p
}

// same compares two packets, payloads by their bytes.
func same(a, b Packet) bool {
	if !bytes.Equal(a.Payload, b.Payload) {
		return false
	}
	a.Payload, b.Payload = nil, nil
	return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

// pcapOf writes the frames to a capture file, a second apart.
func pcapOf(t testing.TB, frames [][]byte) string {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriter(&out)
	if err := w.WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(int64(i), 0), CaptureLength: len(f), Length: len(f)}, f); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "every.pcap")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
