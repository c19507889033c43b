//go:build linux

package linux

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/topo"
)

// spineLeaf plans a fabric of leaves with hosts and spines above them.
func spineLeaf(tb testing.TB, spines, leaves, hosts int) *topo.Plan {
	tb.Helper()
	return plan(tb, spineLeafSpec(spines, leaves, hosts))
}

func spineLeafSpec(spines, leaves, hosts int) *topo.Spec {
	return &topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: spines, Leaves: leaves, HostsPerLeaf: hosts}}
}

func plan(tb testing.TB, spec *topo.Spec) *topo.Plan {
	tb.Helper()
	t, err := spec.Build()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := t.Plan(spec.PlanOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// testName is a testbed name that no other test run has.
func testName(suffix string) string { return fmt.Sprintf("t%d-%s", os.Getpid(), suffix) }

func acquire(tb testing.TB, name string) *Testbed {
	tb.Helper()
	testneed.Root(tb)
	bed, err := Acquire(context.Background(), name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := bed.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return bed
}

func wired(tb testing.TB, name string, p *topo.Plan) (*Testbed, *Wiring) {
	tb.Helper()
	bed := acquire(tb, name)
	w, err := bed.Wire(context.Background(), p, WireOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return bed, w
}

// eventually waits for ok, which also says what it saw.
func eventually(tb testing.TB, what string, ok func() (bool, string)) {
	tb.Helper()
	seen := ""
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); <-time.After(2 * time.Millisecond) {
		var yes bool
		if yes, seen = ok(); yes {
			return
		}
	}
	tb.Fatalf("%s did not come true; last seen: %s", what, seen)
}

// echo answers every datagram that reaches addr in the namespace until the test ends.
func echo(tb testing.TB, n *Namespace, addr string) {
	tb.Helper()
	var c net.PacketConn
	if err := n.Do(func() (err error) { c, err = net.ListenPacket("udp", addr); return err }); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 65536)
		for {
			k, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:k], from)
		}
	}()
	tb.Cleanup(func() { c.Close(); <-done })
}

func TestEveryHostReachesEveryOtherOverEveryNIC(t *testing.T) {
	p := spineLeaf(t, 2, 2, 3)
	_, w := wired(t, testName("reach"), p)
	checkReach(t, w)
}

// checkReach sends a datagram from every NIC to every NIC of other hosts, bound to the sending
// NIC's address, and waits for the echo. Nothing may be lost, not the first packet either.
func checkReach(t *testing.T, w *Wiring) {
	t.Helper()
	nics := w.Plan().Topology.NICs()
	for _, ref := range nics {
		port, _ := w.Plan().Port(ref)
		echo(t, w.Node(ref.Node), net.JoinHostPort(port.Addr.Addr().String(), "7777"))
	}
	for _, from := range nics {
		src, _ := w.Plan().Port(from)
		for _, to := range nics {
			if from.Node == to.Node {
				continue
			}
			dst, _ := w.Plan().Port(to)
			var c net.Conn
			err := w.Node(from.Node).Do(func() (err error) {
				c, err = (&net.Dialer{LocalAddr: &net.UDPAddr{IP: src.Addr.Addr().AsSlice()}}).Dial("udp", net.JoinHostPort(dst.Addr.Addr().String(), "7777"))
				return err
			})
			if err != nil {
				t.Fatalf("%s to %s: %v", from, to, err)
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			msg := from.String() + ">" + to.String()
			_, err = c.Write([]byte(msg))
			buf := make([]byte, 100)
			k := 0
			if err == nil {
				k, err = c.Read(buf)
			}
			c.Close()
			if err != nil || string(buf[:k]) != msg {
				t.Fatalf("%s (%s) to %s (%s): got %q, error %v", from, src.Addr, to, dst.Addr, buf[:k], err)
			}
		}
	}
}
