package roce

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/bits"
	"os/exec"
	"strings"
	"testing"
)

// guessers are tshark's protocols that guess at what RDMA carries, and take our payloads for theirs.
var guessers = []string{"rpcordma", "smb_direct", "smc", "nvme-rdma", "lnet", "iser", "infiniband.eoib", "infiniband_sdp", "fcoib"}

// tshark dissects the frames and gives the fields of each.
func tshark(t *testing.T, frames [][]byte, fields []string) []map[string]string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Fatalf("tshark is what this test compares with, and it isn't here (`make setup` installs it): %v", err)
	}
	args := []string{"-n", "-r", pcapOf(t, frames), "-T", "fields",
		"-o", "ip.check_checksum:TRUE",
		"-o", "udp.ignore_ipv6_zero_checksum:TRUE", // RoCEv2 sends none, which tshark calls illegal in IPv6 in general
	}
	for _, g := range guessers {
		args = append(args, "--disable-protocol", g)
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(frames) {
		t.Fatalf("tshark shows %d frames of %d", len(lines), len(frames))
	}
	all := make([]map[string]string, len(lines))
	for i, l := range lines {
		all[i] = map[string]string{}
		for k, v := range strings.Split(l, "\t") {
			all[i][fields[k]] = v
		}
	}
	return all
}

func num[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int](v T) string { return fmt.Sprint(uint64(v)) }

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// twice is a header of one word: tshark gives the header and its only field the same name.
func twice(v uint32) string { return fmt.Sprintf("%08x,%08x", v, v) }

// column is a field of tshark's and what it must say of a packet; "" where the packet hasn't it.
type column struct {
	field string
	want  func(p *Packet, frame []byte) string
}

// of makes a column of those packets that have any of the headers.
func of(headers Flags, field string, want func(p *Packet) string) column {
	return column{field, func(p *Packet, _ []byte) string {
		// tshark 4.0 knows neither annex A19, nor the CNP, nor what manufacturers make: it shows their BTH alone.
		if !p.Info().Any(headers) || foreign(p.BTH.Opcode) {
			return ""
		}
		return want(p)
	}}
}

func foreign(o Opcode) bool {
	return o == RCFlush || o == RCAtomicWrite || o == CNP || o.Transport() == TransportManufacturer
}

func every4(field string, want func(p *Packet) string) column {
	return column{field, func(p *Packet, _ []byte) string {
		if !p.Src.Is4() {
			return ""
		}
		return want(p)
	}}
}

func every6(field string, want func(p *Packet) string) column {
	return column{field, func(p *Packet, _ []byte) string {
		if p.Src.Is4() {
			return ""
		}
		return want(p)
	}}
}

func always(field string, want func(p *Packet) string) column {
	return column{field, func(p *Packet, _ []byte) string { return want(p) }}
}

func vlan(field string, want func(p *Packet) string) column {
	return column{field, func(p *Packet, _ []byte) string {
		if !p.Tagged {
			return ""
		}
		return want(p)
	}}
}

// syndrome is a column of the AETHs of a kind.
func syndrome(kind SyndromeKind, field string) column {
	return of(HasAETH, field, func(p *Packet) string {
		if p.AETH.Syndrome.Kind() != kind {
			return ""
		}
		return num(p.AETH.Syndrome.Value())
	})
}

var columns = []column{
	always("_ws.malformed", func(*Packet) string { return "" }),
	always("_ws.expert.severity", func(p *Packet) string {
		if p.Src.Is4() && p.TTL < 5 {
			return "4194304" // a note on the TTL
		}
		return ""
	}),
	{"frame.len", func(p *Packet, _ []byte) string { return num(p.Len()) }},
	always("eth.dst", func(p *Packet) string { return p.DstMAC.String() }),
	always("eth.src", func(p *Packet) string { return p.SrcMAC.String() }),
	vlan("vlan.priority", func(p *Packet) string { return num(p.TCI.PCP()) }),
	vlan("vlan.dei", func(p *Packet) string { return flag(p.TCI.DEI()) }),
	vlan("vlan.id", func(p *Packet) string { return num(p.TCI.VID()) }),
	every4("ip.src", func(p *Packet) string { return p.Src.String() }),
	every4("ip.dst", func(p *Packet) string { return p.Dst.String() }),
	every4("ip.dsfield.dscp", func(p *Packet) string { return num(p.DSCP()) }),
	every4("ip.dsfield.ecn", func(p *Packet) string { return num(p.ECN()) }),
	every4("ip.ttl", func(p *Packet) string { return num(p.TTL) }),
	every4("ip.id", func(p *Packet) string { return fmt.Sprintf("0x%04x", p.ID) }),
	every4("ip.flags.df", func(p *Packet) string { return flag(p.DF) }),
	every4("ip.flags.mf", func(*Packet) string { return "0" }),
	every4("ip.checksum.status", func(*Packet) string { return "1" }),
	every6("ipv6.src", func(p *Packet) string { return p.Src.String() }),
	every6("ipv6.dst", func(p *Packet) string { return p.Dst.String() }),
	every6("ipv6.tclass.dscp", func(p *Packet) string { return num(p.DSCP()) }),
	every6("ipv6.tclass.ecn", func(p *Packet) string { return num(p.ECN()) }),
	every6("ipv6.flow", func(p *Packet) string { return fmt.Sprintf("0x%06x", p.FlowLabel) }),
	every6("ipv6.hlim", func(p *Packet) string { return num(p.TTL) }),
	always("udp.srcport", func(p *Packet) string { return num(p.SrcPort) }),
	always("udp.dstport", func(*Packet) string { return num(Port) }),
	always("infiniband.bth.opcode", func(p *Packet) string { return num(p.BTH.Opcode) }),
	always("infiniband.bth.se", func(p *Packet) string { return flag(p.BTH.SE) }),
	always("infiniband.bth.m", func(p *Packet) string { return flag(p.BTH.MigReq) }),
	always("infiniband.bth.padcnt", func(p *Packet) string { return num(padOf(p.PayloadLen)) }),
	always("infiniband.bth.tver", func(*Packet) string { return "0" }),
	always("infiniband.bth.p_key", func(p *Packet) string { return num(p.BTH.PKey) }),
	always("infiniband.bth.destqp", func(p *Packet) string { return fmt.Sprintf("0x%06x", p.BTH.DestQP) }),
	always("infiniband.reserved", func(p *Packet) string {
		s := hex.EncodeToString([]byte{bit(p.BTH.FECN, 0x80) | bit(p.BTH.BECN, 0x40)})
		if p.Info().Any(HasDETH) {
			s += ",00"
		}
		return s
	}),
	always("infiniband.bth.a", func(p *Packet) string { return flag(p.BTH.AckReq) }),
	always("infiniband.bth.reserved7", func(*Packet) string { return "0" }),
	always("infiniband.bth.psn", func(p *Packet) string { return num(uint32(p.BTH.PSN)) }),
	of(HasDETH, "infiniband.deth.q_key", func(p *Packet) string { return fmt.Sprintf("0x%016x", p.DETH.QKey) }),
	of(HasDETH, "infiniband.deth.srcqp", func(p *Packet) string { return fmt.Sprintf("0x%08x", p.DETH.SrcQP) }),
	of(HasRETH|HasAtomicETH, "infiniband.reth.va", func(p *Packet) string { return fmt.Sprintf("0x%016x", p.RETH.VA|p.AtomicETH.VA) }),
	of(HasRETH|HasAtomicETH, "infiniband.reth.r_key", func(p *Packet) string { return fmt.Sprintf("0x%08x", p.RETH.RKey|p.AtomicETH.RKey) }),
	of(HasRETH, "infiniband.reth.dmalen", func(p *Packet) string { return num(p.RETH.DMALen) }),
	of(HasAtomicETH, "infiniband.atomiceth.swapdt", func(p *Packet) string { return num(p.AtomicETH.SwapAdd) }),
	of(HasAtomicETH, "infiniband.atomiceth.cmpdt", func(p *Packet) string { return num(p.AtomicETH.Compare) }),
	of(HasAETH, "infiniband.aeth.syndrome", func(p *Packet) string { return num(p.AETH.Syndrome) }),
	of(HasAETH, "infiniband.aeth.syndrome.opcode", func(p *Packet) string { return num(p.AETH.Syndrome.Kind()) }),
	syndrome(SyndromeACK, "infiniband.aeth.syndrome.credit_count"),
	syndrome(SyndromeRNRNAK, "infiniband.aeth.syndrome.timer"),
	syndrome(SyndromeNAK, "infiniband.aeth.syndrome.error_code"),
	of(HasAETH, "infiniband.aeth.msn", func(p *Packet) string { return num(p.AETH.MSN) }),
	of(HasAtomicAckETH, "infiniband.atomicacketh.origremdt", func(p *Packet) string { return num(p.AtomicAckETH) }),
	of(HasImmDt, "infiniband.immdt", func(p *Packet) string { return twice(p.ImmDt) }),
	of(HasIETH, "infiniband.ieth", func(p *Packet) string { return twice(p.IETH) }),
	of(HasPayload, "data.data", func(p *Packet) string { // tshark leaves the pad on it
		return hex.EncodeToString(append(bytes.Clone(p.Payload), make([]byte, padOf(p.PayloadLen))...))
	}),
	{"infiniband.invariant.crc", func(p *Packet, frame []byte) string {
		if foreign(p.BTH.Opcode) {
			return ""
		}
		var v View
		if err := v.Parse(frame); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("0x%08x", bits.ReverseBytes32(v.ICRC())) // it reads it with the most significant byte first
	}},
}

func TestTsharkReadsEveryPacketAsItWasMeant(t *testing.T) {
	packets := every()
	frames := make([][]byte, len(packets))
	for i := range packets {
		frames[i] = mustAppend(t, &packets[i])
	}
	agree(t, packets, frames)
}

func TestTsharkReadsRxesPacketsAsDecodeDoes(t *testing.T) {
	frames := rxeFrames(t)
	packets := make([]Packet, len(frames))
	for i, f := range frames {
		_, packets[i] = decode(t, f)
	}
	agree(t, packets, frames)
}

// agree compares what tshark says of the frames with the packets that they are.
func agree(t *testing.T, packets []Packet, frames [][]byte) {
	t.Helper()
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = c.field
	}
	wrong := 0
	for i, got := range tshark(t, frames, fields) {
		p := &packets[i]
		for _, c := range columns {
			if want := c.want(p, frames[i]); got[c.field] != want && wrong < 20 {
				wrong++
				t.Errorf("%v (frame %d, %x): %s is %q, want %q", p.BTH.Opcode, i+1, frames[i], c.field, got[c.field], want)
			}
		}
	}
}

func TestTsharkReadsPauseFramesAndARP(t *testing.T) {
	var pfc PFC
	pfc.Set(3, 0xffff)
	pfc.Set(5, 17)
	pfc.Set(0, 0)
	ask := ARP{Operation: ARPRequest, SenderMAC: macA, Sender: addr4A.As4(), Target: addr4B.As4()}
	eth := Ethernet{Dst: Broadcast, Src: macA, Type: EtherTypeARP}
	frames := [][]byte{AppendPause(nil, macA, 1234), AppendPFC(nil, macA, &pfc), PadFrame(ask.Append(eth.Append(nil)), 0)}
	want := []map[string]string{
		{"macc.opcode": "0x0001", "macc.pause_time": "1234"},
		{"macc.opcode": "0x0101", "macc.cbfc.enbv": "0x0029", "macc.cbfc.pause_time.c0": "0", "macc.cbfc.pause_time.c3": "65535", "macc.cbfc.pause_time.c5": "17"},
		{"arp.opcode": "1", "arp.src.hw_mac": macA.String(), "arp.src.proto_ipv4": "10.1.2.3", "arp.dst.hw_mac": "00:00:00:00:00:00", "arp.dst.proto_ipv4": "10.254.253.252"},
	}
	fields := []string{"_ws.malformed", "_ws.expert", "frame.len", "eth.src", "macc.opcode", "macc.pause_time", "macc.cbfc.enbv", "macc.cbfc.pause_time.c0", "macc.cbfc.pause_time.c3", "macc.cbfc.pause_time.c5",
		"arp.opcode", "arp.src.hw_mac", "arp.src.proto_ipv4", "arp.dst.hw_mac", "arp.dst.proto_ipv4"}
	for i, got := range tshark(t, frames, fields) {
		want[i]["frame.len"], want[i]["eth.src"] = num(MinFrameLen), macA.String()
		for _, f := range fields {
			if got[f] != want[i][f] {
				t.Errorf("frame %d: %s is %q, want %q", i+1, f, got[f], want[i][f])
			}
		}
	}
}
