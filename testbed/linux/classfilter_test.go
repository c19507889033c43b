//go:build linux

package linux

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

// opcodesTaken counts RoCE packets by opcode.
type opcodesTaken map[roce.Opcode]int

func (s opcodesTaken) Packet(_ loop.Time, data []byte, _ int) error {
	var v roce.View
	if err := v.Parse(data); err == nil && v.Kind() == roce.KindRoCE {
		s[v.Opcode()]++
	}
	return nil
}

// host1 ── leaf1 ── host2: packets with every opcode go from host1 to host2, and those of a class are picked out.
func TestACaptureOfAClassHasEveryPacketOfIt(t *testing.T) {
	p := spineLeaf(t, 1, 1, 2)
	_, w := wired(t, testName("class"), p)
	hosts := p.Topology.Hosts()
	src, dst := p.Ports(hosts[0].Name)[0], p.Ports(hosts[1].Name)[0]
	for _, class := range []packet.Class{packet.CNP, packet.Nak, packet.ReadRequest, packet.Data, packet.Any} {
		got := opcodesTaken{}
		stop, err := w.Node(src.Ref.Node).capture(src.Ref.Port, classFilter(class), func(time.Time) loop.Time { return 0 }, got)
		if err != nil {
			t.Fatalf("%v: %v", class, err)
		}
		if err := w.Node(src.Ref.Node).Do(func() error {
			for _, port := range []int{roce.Port, roce.Port + 1} {
				// Not connected: that nobody listens there is nothing to this socket.
				c, err := net.ListenPacket("udp4", "")
				if err != nil {
					return err
				}
				defer c.Close()
				to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst.Addr.Addr(), uint16(port)))
				for op := range 256 {
					b := make([]byte, 60)
					b[0] = byte(op)
					if _, err := c.WriteTo(b, to); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		given, missed, err := stop()
		if err != nil || missed != 0 {
			t.Errorf("%v: given %d, missed %d, %v", class, given, missed, err)
		}
		want := 0
		for op := range 256 {
			could := couldBe(roce.Opcode(op), class)
			if could {
				want++
			}
			if n := got[roce.Opcode(op)]; could != (n > 0) {
				t.Errorf("%v: %d packets with opcode %#02x", class, n, op)
			}
		}
		if class == packet.CNP && want != 1 {
			t.Errorf("%d opcodes could be a CNP's", want)
		}
		if n := len(classFilter(class)); n > unix.BPF_MAXINSNS {
			t.Errorf("%v: a filter of %d instructions", class, n)
		}
	}
}
