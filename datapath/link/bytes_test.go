package link

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rocebed/rocebed/datapath/roce"
)

// packets are one with each kind of header that a switch looks at.
func packets(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, fam := range []string{"10.0.0.", "2001:db8::"} {
		p := roce.Packet{
			Src: roce.AddrFrom(netip.MustParseAddr(fam + "1")), Dst: roce.AddrFrom(netip.MustParseAddr(fam + "2")),
			TrafficClass: 106, TTL: 64, SrcPort: 0xc123, PayloadLen: 100,
		}
		b, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		out["RoCE of "+fam] = b
	}
	tcp := (&roce.Ethernet{Type: roce.EtherTypeIPv4}).Append(nil)
	tcp = (&roce.IPv4{TTL: 9, Protocol: roce.ProtocolTCP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}).Append(tcp, 20)
	tcp = append(binary.BigEndian.AppendUint32(tcp, 0x1234_5678), make([]byte, 16)...)
	out["TCP"] = tcp
	return out
}

func TestWhatASwitchChangesIsInTheBytesOnceTheyAreFlushed(t *testing.T) {
	for name, b := range packets(t) {
		var f Frame
		if err := f.Parse(bytes.Clone(b)); err != nil {
			t.Fatal(name, err)
		}
		f.Flush()
		if !bytes.Equal(f.Bytes, b) {
			t.Errorf("%s: flushing what wasn't changed changes it", name)
		}
		f.MarkCE()
		f.TTL--
		f.Flush()
		var g Frame
		if err := g.Parse(f.Bytes); err != nil {
			t.Fatal(name, err)
		}
		if g.ECN() != roce.CE || g.TTL != f.TTL || !g.View.IPv4OK() || int(g.Len) != len(b) {
			t.Errorf("%s: after marking and a hop: ECN %v, TTL %d, checksum right: %v", name, g.ECN(), g.TTL, g.View.IPv4OK())
		}
		if g.Kind == roce.KindRoCE && !g.View.ICRCOK() {
			t.Errorf("%s: the ICRC is wrong", name)
		}
	}
}

func TestAFrameFromASocketHasTheFlowOfTheOneThatWasSent(t *testing.T) {
	number := func(a roce.Addr) uint32 { return uint32(a[15]) }
	for name, b := range packets(t) {
		var f Frame
		if err := f.Parse(b); err != nil {
			t.Fatal(name, err)
		}
		f.Classify(number)
		v := &f.View
		want := FlowHash(v.SrcAddr(), v.DstAddr(), roce.ProtocolTCP, 0x1234, 0x5678)
		if f.Kind == roce.KindRoCE {
			want = FlowHash(v.SrcAddr(), v.DstAddr(), roce.ProtocolUDP, 0xc123, roce.Port)
		}
		if f.Dst != 2 || f.Flow != want {
			t.Errorf("%s: to port %d with flow %x, want port 2 and %x", name, f.Dst, f.Flow, want)
		}
	}
	var arp Frame
	if err := arp.Parse(append((&roce.Ethernet{Type: roce.EtherTypeARP}).Append(nil), make([]byte, 46)...)); err != nil {
		t.Fatal(err)
	}
	if arp.Classify(number); arp.Dst != NoDst {
		t.Errorf("ARP is for port %d", arp.Dst)
	}
}
