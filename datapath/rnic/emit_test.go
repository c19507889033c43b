package rnic

import (
	"errors"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// What a host's own stack sends has its turn on the line, and is no packet of the RNIC's.
func TestAHostsOwnDatagramsShareTheLineAndAreNoneOfTheDevices(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		l := newLab(v6)
		e := l.pairOf(t, verbs.RC, 1<<20, nil)
		var ends []loop.Time
		seen := 0
		l.wires[0].tap = func(f *link.Frame) bool {
			ends = append(ends, l.v.Now())
			if f.Kind != roce.KindRoCE {
				v := &f.View
				seen++
				if v.SrcAddr() != l.addrs[0] || v.DstAddr() != l.addrs[1] || v.SrcPort() != 1000 || v.DstPort() != 9 || f.DSCP() != 8 || f.Dst != 1 {
					t.Errorf("a datagram from %v:%d to %v:%d, DSCP %d, to port %d", v.SrcAddr(), v.SrcPort(), v.DstAddr(), v.DstPort(), f.DSCP(), f.Dst)
				}
				l4 := v.L4()
				if sum := roce.Checksum(l4, roce.PseudoSum(v.SrcAddr(), v.DstAddr(), roce.ProtocolUDP, len(l4))); sum != 0 {
					t.Errorf("its checksum is off by %#x", sum)
				}
			}
			return true
		}
		before := e[0].Counters()
		g := Datagram{To: l.addrs[1].Netip(), SrcPort: 1000, DstPort: 9, TrafficClass: 8 << 2, Len: 1000}
		for range 10 {
			if err := e[0].Emit(g); err != nil {
				t.Fatal(err)
			}
		}
		l.until(l.v.Now().Add(time.Millisecond))
		after := e[0].Counters()
		if seen != 10 || after.TxPackets != before.TxPackets || after.Priority[1].TxPackets-before.Priority[1].TxPackets != 10 {
			t.Errorf("%d datagrams were seen; the device counts %d packets more, and %d of priority 1", seen, after.TxPackets-before.TxPackets, after.Priority[1].TxPackets-before.Priority[1].TxPackets)
		}
		if c := e[1].Counters(); c.StrayPackets != 0 || c.RxPackets != 0 {
			t.Errorf("the far device counts %d packets and %d strays", c.RxPackets, c.StrayPackets)
		}
		g.Len = 9000
		if err := e[0].Emit(g); !errors.Is(err, ErrInvalid) {
			t.Errorf("a datagram longer than the MTU: %v", err)
		}
		g.Len = 1000
		full := 0
		for range 2 * emitRoom {
			if errors.Is(e[0].Emit(g), ErrFull) {
				full++
			}
		}
		if full < emitRoom-2 {
			t.Errorf("%d of %d datagrams found the queue full, which holds %d", full, 2*emitRoom, emitRoom)
		}
		l.until(l.v.Now().Add(time.Millisecond))
	}
}

func TestAQueuePairThatIgnoresCNPsIsNotSlowedDownByOne(t *testing.T) {
	l := profiled(withDCQCN("mlx5", nil))
	e := l.pairOf(t, verbs.RC, 1<<20, func(_ int, i *verbs.QPInit, _ *verbs.QPAttr) { i.IgnoreCNPs = true })
	f := l.frames.Get()
	f.Kind, f.Packet = roce.KindRoCE, roce.NewCNP(e[0].qp.num)
	f.Packet.Dst, f.Packet.Src = l.addrs[0], l.addrs[1]
	e[0].Receive(f)
	if c := e[0].Counters(); c.CNPIgnored != 1 || c.CNPHandled != 0 || e[0].qp.pace != nil {
		t.Errorf("%d ignored, %d handled, its rate is limited: %v", c.CNPIgnored, c.CNPHandled, e[0].qp.pace != nil)
	}
}
