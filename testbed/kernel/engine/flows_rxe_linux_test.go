//go:build linux

package engine

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// More flows than one turn looks at have each their rate, and none of them waits for another.
func TestHundredsOfFlowsHaveEachTheirRate(t *testing.T) {
	const n, packets = 200, 8
	b := lay(t, func(p *Port) {
		p.Paced = true
		for i := range p.Queues {
			p.Queues[i].Reserved = 4_000_000
		}
	})
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	var got net.PacketConn // nobody reads it; without it h2 would say that there is no such port
	if err := b.w.Node("h2").Do(func() (err error) {
		got, err = net.ListenPacket("udp", net.JoinHostPort(h2.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	var sent net.Conn
	if err := b.w.Node("h1").Do(func() (err error) {
		if sent, err = net.Dial("udp", got.LocalAddr().String()); err != nil {
			return err
		}
		raw, err := sent.(*net.UDPConn).SyscallConn()
		if err != nil {
			return err
		}
		return errors.Join(raw.Control(func(fd uintptr) { // all that waits is the socket's
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20)
		}), err)
	}); err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	var flows []*Flow
	for i := range n {
		f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2.Addr.Addr(), QPN: uint32(i)}, 20_000) // 2.3 packets a second; 4 Mb/s of the line's 10 in all
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	packet := make([]byte, 1000)
	packet[0] = 10 // RC WRITE only
	for range packets {
		for i := range n {
			packet[7] = byte(i)
			if _, err := sent.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; <-tick.C {
		var total, least, most uint64
		least = packets
		waiting := 0
		for _, f := range flows {
			r, err := f.Read()
			if err != nil {
				t.Fatal(err)
			}
			total, least, most, waiting = total+r.TxFrames, min(least, r.TxFrames), max(most, r.TxFrames), waiting+r.Packets
		}
		if total >= n*packets/2 {
			if most > least+2 {
				t.Errorf("when half was sent, one flow had sent %d packets and another %d", most, least)
			}
			if waiting == 0 {
				t.Error("nothing waits any more")
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d packets were sent and %d wait", total, waiting)
		}
	}
}
