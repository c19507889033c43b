//go:build linux

package engine

import (
	"net"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// A flow with a rate of its own keeps it while others use the rest of the line, begins behind what of it waits in the queue, and
// leaves without overtaking itself.
func TestAFlowIsPacedAndStaysInOrder(t *testing.T) {
	b := lay(t, func(p *Port) { p.Paced = true; p.Groups[3].Lossless = false })
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	var got net.PacketConn
	if err := b.w.Node("h2").Do(func() (err error) {
		got, err = net.ListenPacket("udp", net.JoinHostPort(h2.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if err := got.(*net.UDPConn).SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	var sent net.Conn
	if err := b.w.Node("h1").Do(func() (err error) { sent, err = net.Dial("udp", got.LocalAddr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	number := byte(0)
	send := func(n int) {
		for range n { // RC WRITE only, to QP 0x123456
			number++
			packet := make([]byte, 1000)
			packet[0], packet[5], packet[6], packet[7], packet[11] = 10, 0x12, 0x34, 0x56, number
			if _, err := sent.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer b.flood(8, 9)()
	b.until(toH2, "the line is full", func(r Reading) bool { return r.Queues[1].Bytes > 50_000 })
	send(40) // into the queue
	opened := Now()
	f, err := b.e.OpenFlow(FlowKey{Port: toH2, To: h2.Addr.Addr(), QPN: 0x123456}, topo.Mbps)
	if err != nil {
		t.Fatal(err)
	}
	send(60)
	read := func() FlowReading {
		r, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sends := func(frames uint64) FlowReading {
		r := read()
		for deadline := time.Now().Add(20 * time.Second); r.TxFrames < frames; r = read() {
			if time.Now().After(deadline) {
				t.Fatalf("the flow doesn't send %d frames; last seen: %+v", frames, r)
			}
			<-tick.C
		}
		return r
	}
	a, at := sends(10), Now()
	sends(50)
	// What the machine was late is made up for, so that never more has gone than the rate allows since the flow began.
	gone, now := read().TxBytes, Now()
	least, most := float64(gone-a.TxBytes)*8/(now-at).Seconds(), float64(gone)*8/(now-opened).Seconds()
	if least < 0.8e6 || most > 1.02e6 {
		t.Errorf("a flow of 1 Mb/s was given %.3f Mb/s, and altogether %.3f", least/1e6, most/1e6)
	}
	closed := false
	for deadline := time.Now().Add(20 * time.Second); !closed && time.Now().Before(deadline); <-tick.C {
		if closed, err = f.Close(); err != nil {
			t.Fatal(err)
		}
		if number < 130 {
			send(1)
		}
	}
	if !closed {
		t.Fatal("the flow never closed")
	}
	send(10)
	for want := byte(1); want <= number; want++ {
		buf := make([]byte, 2000)
		_ = got.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, _, err := got.ReadFrom(buf); err != nil {
			t.Fatalf("packet %d of %d: %v", want, number, err)
		}
		if buf[11] != want {
			t.Fatalf("packet %d came where %d was due", buf[11], want)
		}
	}
}
