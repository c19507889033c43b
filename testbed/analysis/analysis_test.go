package analysis

import (
	"encoding/binary"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// frame is an RC packet between two hosts, or with port other than 4791 something else.
func frame(t *testing.T, src, dst string, port uint16, tos, opcode uint8, qpn, psn uint32) []byte {
	t.Helper()
	bth := make([]byte, 12+16)
	bth[0] = opcode
	binary.BigEndian.PutUint32(bth[4:], qpn)
	binary.BigEndian.PutUint32(bth[8:], psn|1<<31)
	ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, TOS: tos, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(src).To4(), DstIP: net.ParseIP(dst).To4()}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}, ip,
		&layers.UDP{SrcPort: 49200, DstPort: layers.UDPPort(port)}, gopacket.Payload(bth))
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const h1, h2 = "10.0.1.1", "10.0.1.3"

// recorded is a record with one capture, at h1, and counters that grew by as much.
func recorded(t *testing.T, sent, rcvd float64, frames ...[]byte) *record.Reader {
	t.Helper()
	w, err := record.Create(filepath.Join(t.TempDir(), "r"), record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	reading := func(phase metrics.Phase, s, r float64) {
		w.Reading(metrics.Standard, metrics.Reading{Phase: phase, Samples: []metrics.Sample{
			{Name: "sent_pkts", Labels: []string{"h1", "eth0"}, Value: s}, {Name: "rcvd_pkts", Labels: []string{"h1", "eth0"}, Value: r},
		}})
	}
	reading(metrics.Before, 10, 20)
	reading(metrics.After, 10+sent, 20+rcvd)
	w.Put(record.PlanFile, []byte(`[{"node":"h1","ports":[{"Ref":"h1:eth0","Addr":"10.0.1.1/31"}]},{"node":"leaf1","ports":[{"Ref":"leaf1:eth0","Addr":"10.0.1.0/31"}]}]`))
	file, err := w.Stream(record.CaptureName("h1", "eth0"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := record.NewCapture(file, "h1:eth0")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if err := c.Packet(1000*1000, f, len(f)); err != nil {
			t.Fatalf("packet %d: %v", i, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(record.Manifest{}); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func compare(t *testing.T, r *record.Reader) Comparison {
	t.Helper()
	all, err := CompareCounters(r, metrics.Standard, []string{record.CaptureName("h1", "eth0")})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestCountersAreHeldAgainstTheWire(t *testing.T) {
	const write, ack = 0x0a, 0x11
	frames := [][]byte{
		frame(t, h1, h2, 4791, 106, write, 17, 5),
		frame(t, h1, h2, 4791, 106, write, 17, 5), // again
		frame(t, h2, h1, 4791, 107, ack, 18, 5),
		frame(t, h1, h2, 4792, 0, write, 17, 9), // no RoCE
	}
	c := compare(t, recorded(t, 2, 1, frames...))
	if c.Problem() != "" || c.RetransmittedSeen != 1 || c.SentSeen != 2 || c.RcvdSeen != 1 {
		t.Errorf("%+v: %s", c, c.Problem())
	}
	// A damaged packet is on the wire and not counted.
	if c := compare(t, recorded(t, 2, 0, frames...)); c.Problem() != "" {
		t.Errorf("%s", c.Problem())
	}
	for want, r := range map[string]*record.Reader{
		"sent_pkts grew by 3, the capture has 2": recorded(t, 3, 1, frames...),
		"sent_pkts grew by 1, the capture has 2": recorded(t, 1, 1, frames...),
		"rcvd_pkts grew by 2, the capture has 1": recorded(t, 2, 2, frames...),
	} {
		if c := compare(t, r); !strings.Contains(c.Problem(), want) {
			t.Errorf("want %q, got %q", want, c.Problem())
		}
	}
}

func TestACapturesPacketsAreTakenApart(t *testing.T) {
	r := recorded(t, 1, 0, frame(t, h1, h2, 4791, 26<<2|3, 0x0a, 0x123456, 0xabcdef))
	b, err := r.File(record.CaptureName("h1", "eth0"))
	if err != nil {
		t.Fatal(err)
	}
	var got []Packet
	if err := ReadCapture(strings.NewReader(string(b)), func(p Packet) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	want := Packet{At: 1000 * 1000, Src: netip.MustParseAddr(h1), Dst: netip.MustParseAddr(h2), SrcPort: 49200, DSCP: 26, CE: true,
		Opcode: 0x0a, DestQPN: 0x123456, PSN: 0xabcdef, AckReq: true, Length: 14 + 20 + 8 + 28}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
