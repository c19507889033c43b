package analysis

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// frame is a packet between two hosts, or with port other than RoCE's something else.
func frame(t *testing.T, src, dst string, port uint16, tos uint8, opcode roce.Opcode, qpn uint32, psn roce.PSN) []byte {
	t.Helper()
	p := roce.Packet{
		BTH: roce.BTH{Opcode: opcode, AckReq: true, DestQP: qpn, PSN: psn},
		Src: roce.AddrFrom(netip.MustParseAddr(src)), Dst: roce.AddrFrom(netip.MustParseAddr(dst)), TrafficClass: tos, TTL: 64, SrcPort: 49200,
	}
	b, err := p.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(b[roce.EthernetLen+roce.IPv4Len+2:], port)
	return b
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
	return compareEnding(t, r, Ending{})
}

func compareEnding(t *testing.T, r *record.Reader, ending Ending) Comparison {
	t.Helper()
	all, err := CompareCounters(r, metrics.Standard, []string{record.CaptureName("h1", "eth0")}, ending)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestCountersAreHeldAgainstTheWire(t *testing.T) {
	const write, ack = roce.RCRDMAWriteOnly, roce.RCAcknowledge
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

func TestPacketsThatPassWhileCapturesEndMayBeMissingThereAndNoMore(t *testing.T) {
	frames := [][]byte{
		frame(t, h1, h2, 4791, 106, roce.RCRDMAWriteOnly, 17, 5),
		frame(t, h2, h1, 4791, 107, roce.RCAcknowledge, 18, 5),
	}
	reading := func(node string, sent, rcvd float64) []metrics.Sample {
		return []metrics.Sample{{Name: "sent_pkts", Labels: []string{node, "eth0"}, Value: sent}, {Name: "rcvd_pkts", Labels: []string{node, "eth0"}, Value: rcvd}}
	}
	// Three more were sent, and two came, while captures ended.
	late := Ending{Before: reading("h1", 11, 21), After: reading("h1", 14, 23)}
	for _, c := range []struct {
		sent, rcvd float64
		ending     Ending
		want       string
	}{
		{1, 1, late, ""},
		{4, 3, late, ""},
		{5, 3, late, "sent_pkts grew by 5, the capture has 1"},
		{0, 1, late, "sent_pkts grew by 0, the capture has 1"},
		{4, 4, late, "rcvd_pkts grew by 4, the capture has 1"},
		{4, 1, Ending{Before: reading("h2", 11, 21), After: reading("h2", 14, 23)}, "sent_pkts grew by 4, the capture has 1"},
	} {
		if got := compareEnding(t, recorded(t, c.sent, c.rcvd, frames...), c.ending); !strings.Contains(got.Problem(), c.want) || c.want == "" && got.Problem() != "" {
			t.Errorf("%v sent, %v received: want %q, got %q", c.sent, c.rcvd, c.want, got.Problem())
		}
	}
}

func TestACapturesPacketsAreTakenApart(t *testing.T) {
	r := recorded(t, 1, 0, frame(t, h1, h2, 4791, 26<<2|3, 0x0a, 0x123456, 0xabcdef))
	b, err := r.File(record.CaptureName("h1", "eth0"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	say := func(p *Packet) error {
		got = append(got, fmt.Sprintln(p.At, p.SrcAddr(), p.DstAddr(), p.SrcPort(), p.DSCP(), p.ECN() == roce.CE, p.BTH(), len(p.Frame())))
		return nil
	}
	if err := ReadCapture(bytes.NewReader(b), say); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintln(time.Millisecond, h1, h2, 49200, 26, true, roce.BTH{Opcode: roce.RCRDMAWriteOnly, DestQP: 0x123456, PSN: 0xabcdef, AckReq: true}, 14+20+8+12+16+4)
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestADamagedPacketIsPassedOverAndACutOneIsAnError(t *testing.T) {
	damaged := frame(t, h1, h2, roce.Port, 0, roce.RCRDMAWriteOnly, 17, 5)
	damaged[roce.EthernetLen+roce.IPv4Len+4] ^= 0x40 // UDP's length
	whole := frame(t, h1, h2, roce.Port, 0, roce.RCRDMAWriteOnly, 17, 6)
	if c := compare(t, recorded(t, 1, 0, damaged, whole)); c.SentSeen != 1 || c.Problem() != "" {
		t.Errorf("%+v: %s", c, c.Problem())
	}
	var out bytes.Buffer
	c, err := record.NewCapture(closer{&out}, "h1:eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Packet(0, whole[:50], len(whole)), c.Close()); err != nil {
		t.Fatal(err)
	}
	err = ReadCapture(&out, func(*Packet) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "packet 1: 50 bytes of 74 were captured") {
		t.Errorf("%v", err)
	}
}

type closer struct{ *bytes.Buffer }

func (closer) Close() error { return nil }
