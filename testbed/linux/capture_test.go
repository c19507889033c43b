//go:build linux

package linux

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// taken counts packets by their payload.
type taken map[string]int

func (s taken) Packet(_ loop.Time, data []byte, length int) error {
	if len(data) != length {
		return fmt.Errorf("%d of %d bytes", len(data), length)
	}
	if i := bytes.Index(data, []byte("packet ")); i >= 0 {
		s[string(data[i:])]++
	}
	return nil
}

// host1 — leaf1 — host2, captured at leaf1's port to host1: every packet passes there once.
func TestACaptureTakesEveryPacketThatPassesAPort(t *testing.T) {
	p := spineLeaf(t, 1, 1, 2)
	_, w := wired(t, testName("capture"), p)
	hosts := p.Topology.Hosts()
	src, dst := p.Ports(hosts[0].Name)[0], p.Ports(hosts[1].Name)[0]
	epoch := time.Now()
	var last loop.Time
	got := taken{}
	stop, err := w.Node(src.Peer.Node).Capture(src.Peer.Port, func(at time.Time) loop.Time { last = loop.Time(at.Sub(epoch)); return last }, got)
	if err != nil {
		t.Fatal(err)
	}
	var sink net.PacketConn
	if err := w.Node(dst.Ref.Node).Do(func() (err error) {
		sink, err = net.ListenPacket("udp4", net.JoinHostPort(dst.Addr.Addr().String(), "4791"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	var c net.Conn
	if err := w.Node(src.Ref.Node).Do(func() (err error) {
		c, err = net.Dial("udp4", sink.LocalAddr().String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const packets = 200
	for i := range packets {
		if _, err := fmt.Fprintf(c, "packet %d", i); err != nil {
			t.Fatal(err)
		}
		_ = sink.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, _, err := sink.ReadFrom(make([]byte, 100)); err != nil {
			t.Fatalf("packet %d did not arrive: %v", i, err)
		}
	}
	given, missed, err := stop()
	if err != nil || missed != 0 || given < packets {
		t.Fatalf("given %d, missed %d, %v", given, missed, err)
	}
	for i := range packets {
		if n := got[fmt.Sprintf("packet %d", i)]; n != 1 {
			t.Errorf("packet %d was taken %d times", i, n)
		}
	}
	if d := time.Duration(last); d <= 0 || d > time.Since(epoch) {
		t.Errorf("the last packet is %v after the epoch", d)
	}
}
