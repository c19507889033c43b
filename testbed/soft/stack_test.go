//go:build linux

package soft

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo"
)

// inNode runs fn in a node's namespace.
func inNode(t *testing.T, f *Fabric, node string, fn func() error) {
	t.Helper()
	if err := f.Wiring().Node(node).Do(fn); err != nil {
		t.Fatal(err)
	}
}

func addressOf(f *Fabric, node string) netip.Addr {
	return f.Plan().Ports(node)[0].Addr.Addr()
}

// echo sends an ICMP echo request with a TTL from the calling thread's namespace, and returns who answered and how: ICMP's type.
func echo(to netip.Addr, ttl int) (from netip.Addr, kind byte, err error) {
	network, local, request := "ip4:icmp", "0.0.0.0", byte(8)
	if to.Is6() {
		network, local, request = "ip6:ipv6-icmp", "::", 128
	}
	c, err := net.ListenPacket(network, local)
	if err != nil {
		return from, 0, err
	}
	defer c.Close()
	raw, err := c.(*net.IPConn).SyscallConn()
	if err != nil {
		return from, 0, err
	}
	var serr error
	_ = raw.Control(func(fd uintptr) {
		if to.Is6() {
			serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, ttl)
		} else {
			serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL, ttl)
		}
	})
	if serr != nil {
		return from, 0, serr
	}
	b := []byte{request, 0, 0, 0, 0x12, 0x34, 0, 1, 'r', 'o', 'c', 'e'}
	sum := roce.Checksum(b, 0) // the kernel makes ICMPv6's
	b[2], b[3] = byte(sum>>8), byte(sum)
	if _, err := c.WriteTo(b, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return from, 0, err
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for {
		answer := make([]byte, 1500)
		n, addr, err := c.ReadFrom(answer)
		if err != nil {
			return from, 0, fmt.Errorf("no answer from %v: %w", to, err)
		}
		if n > 0 && answer[0] != request && answer[0] != 135 && answer[0] != 136 { // neighbour discovery
			a, _ := netip.AddrFromSlice(addr.(*net.IPAddr).IP)
			return a.Unmap(), answer[0], nil
		}
	}
}

func forEachFamily(t *testing.T, test func(t *testing.T, f *Fabric)) {
	for _, family := range []topo.Family{topo.IPv4, topo.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			spec := topo.Spec{SpineLeaf: &topo.SpineLeaf{Spines: 2, Leaves: 2, HostsPerLeaf: 1}, LinkSettings: topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps}}
			tp, err := spec.Build()
			if err != nil {
				t.Fatal(err)
			}
			plan, err := tp.Plan(topo.PlanOptions{Family: family})
			if err != nil {
				t.Fatal(err)
			}
			test(t, build(t, plan, 1, nil))
		})
	}
}

func TestPingAndTracerouteGoThroughSoftSwitches(t *testing.T) {
	forEachFamily(t, func(t *testing.T, f *Fabric) {
		to := addressOf(f, "h2")
		inNode(t, f, "h1", func() error {
			for hop := 1; hop <= 4; hop++ {
				from, kind, err := echo(to, hop)
				if err != nil {
					return fmt.Errorf("hop %d: %w", hop, err)
				}
				owner, _ := f.Plan().Owner(from)
				reply := map[bool]byte{false: 0, true: 129}[to.Is6()]
				exceeded := map[bool]byte{false: 11, true: 3}[to.Is6()]
				if last := hop == 4; last != (owner.Node == "h2") || last && kind != reply || !last && kind != exceeded {
					t.Errorf("hop %d: %v (%s) answers with ICMP type %d", hop, from, owner.Node, kind)
				}
			}
			return nil
		})
	})
}

func TestTCPGoesThroughSoftSwitchesWhole(t *testing.T) {
	forEachFamily(t, func(t *testing.T, f *Fabric) {
		data := make([]byte, 20<<20)
		rand.New(rand.NewSource(1)).Read(data)
		var l net.Listener
		inNode(t, f, "h2", func() (err error) {
			l, err = net.Listen("tcp", net.JoinHostPort(addressOf(f, "h2").String(), "0"))
			return err
		})
		defer l.Close()
		var out net.Conn
		inNode(t, f, "h1", func() (err error) {
			out, err = net.DialTimeout("tcp", l.Addr().String(), patience)
			return err
		})
		go func() {
			_, _ = out.Write(data)
			out.Close()
		}()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		_ = in.SetReadDeadline(time.Now().Add(patience))
		got, err := io.ReadAll(in)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d of %d bytes came, the same: %v; %v", len(got), len(data), bytes.Equal(got, data), err)
		}
	})
}

func TestTheKernelSaysNothingToRoCE(t *testing.T) {
	f := build(t, starPlan(t, 2, topo.LinkSettings{MTU: 4200, Rate: 10 * topo.Gbps}), 1, nil)
	// h1's kernel sends datagrams to RoCE's port of h2, where no program listens, as well as to another such port: of that
	// alone it hears that it is unreachable.
	inNode(t, f, "h1", func() error {
		for _, port := range []string{"4791", "4792"} {
			c, err := net.Dial("udp", net.JoinHostPort(addressOf(f, "h2").String(), port))
			if err != nil {
				return err
			}
			defer c.Close()
			refused := func() bool {
				_, _ = c.Write(make([]byte, 64))
				_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				_, err := c.Read(make([]byte, 64))
				return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
			}
			if got, want := refused(), port == "4792"; got != want {
				t.Errorf("port %s: told that it is unreachable: %v", port, got)
			}
		}
		return nil
	})
}
