//go:build linux

package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// A build that is interrupted, wherever it is, leaves no device, no namespace, no journal.
func TestABuildThatIsInterruptedLeavesNothing(t *testing.T) {
	testneed.Rxe(t)
	p := planned(t, star(2, topo.Gbps, time.Microsecond))
	before := len(devices(t))
	stages := map[string]bool{}
	for at := 0; ; at++ {
		ctx, cancel := context.WithCancel(context.Background())
		name := fmt.Sprintf("cut%d-%d", os.Getpid(), at)
		bed, err := linux.Acquire(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		step, stage := 0, ""
		f, err := Build(ctx, Config{Testbed: bed, Plan: p, Dilation: testDilation, Progress: func(s string, _, _ int) {
			if step == at {
				stage = s
				cancel()
			}
			step++
		}})
		cancel()
		if err == nil {
			// One step later than the last that can be interrupted.
			if cerr := f.Close(context.Background()); cerr != nil {
				t.Fatal(cerr)
			}
			if stage == "" {
				break
			}
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted at %q: %v", stage, err)
		}
		stages[stage] = true
		if n := len(devices(t)); n != before {
			t.Errorf("interrupted at %q: %d RDMA devices are left", stage, n-before)
		}
		if _, err := os.Stat(linux.StateDir(name)); err == nil {
			t.Errorf("interrupted at %q: the testbed's folder is left", stage)
		}
	}
	for _, s := range []string{"namespaces", "links", "ports", "cables", "rdma devices"} {
		if !stages[s] {
			t.Errorf("never interrupted at %q; only at %v", s, stages)
		}
	}
}

// leaf1r0 ── h1:eth0, h2:eth0 ; leaf1r1 ── h1:eth1, h2:eth1 ; a spine joins the leaves
func TestEveryNICOfAHostSendsThroughItself(t *testing.T) {
	delay := time.Microsecond
	f := build(t, topo.Spec{RailOptimised: &topo.RailOptimised{HostsPerGroup: 2, Rails: 2, Spines: 1}, LinkSettings: topo.LinkSettings{Rate: topo.Gbps, Delay: &delay}}, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h1, h2 := f.hostNamed(t, "h1"), f.hostNamed(t, "h2")
	for i, from := range h1.nics {
		for j, to := range h2.nics {
			before := collect(t, f)
			x := &transfer{size: 1 << 14, depth: 1}
			var err error
			if x.src, err = newEndpoint(ctx, h1, from, x.size, x.depth); err == nil {
				if x.dst, err = newEndpoint(ctx, h2, to, x.size, x.depth); err == nil {
					err = errors.Join(x.src.connect(ctx, x.dst, patient, testRetries), x.dst.connect(ctx, x.src, patient, testRetries))
				}
			}
			if err == nil {
				_, _, err = x.run(ctx, 5, 0)
			}
			if err = errors.Join(err, x.close(ctx)); err != nil {
				t.Fatalf("NIC %d to NIC %d: %v", i, j, err)
			}
			after := collect(t, f)
			for k, nic := range h1.nics {
				n := after.of(t, "if_tx_packets", "h1", nic.Port.Port) - before.of(t, "if_tx_packets", "h1", nic.Port.Port)
				if (n > 0) != (k == i) {
					t.Errorf("NIC %d to NIC %d: NIC %d sent %v packets", i, j, k, n)
				}
			}
		}
	}
}

// What isn't ECN-capable passes a marker unharmed, however long the queue.
func TestREDDropsNothing(t *testing.T) {
	f := build(t, star(2, topo.Gbps, time.Microsecond), Config{Switches: fabric.SwitchSettings{SwitchModel: fabric.SwitchModel{ECN: &fabric.ECNSettings{Marker: fabric.MarkerRED, KMin: 1000, KMax: 2000, PMax: 1}}}})
	const n = 100 // they fit a socket's buffer
	to, _ := f.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	at := net.JoinHostPort(to.Addr.Addr().String(), "5000")
	var server net.PacketConn
	var client net.Conn
	err := errors.Join(
		f.wiring.Node("h2").Do(func() (err error) { server, err = net.ListenPacket("udp", at); return err }),
		f.wiring.Node("h1").Do(func() (err error) { client, err = net.Dial("udp", at); return err }),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer client.Close()
	for range n {
		if _, err := client.Write(make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 1000)
	for i := range n {
		if err := server.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := server.ReadFrom(buf); err != nil {
			t.Fatalf("%d of %d datagrams came: %v", i, n, err)
		}
	}
	if m := collect(t, f).of(t, "ecn_marked", "leaf1", "eth1", slotMark); m != 0 {
		t.Errorf("%v datagrams that are not ECN-capable were marked", m)
	}
}
