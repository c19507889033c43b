//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/kernel/nl"
	"github.com/rocebed/rocebed/testbed/kernel/tc"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

// bed is two hosts on a switch; the switch's port to h2 (number 1) and the one to h1 (2) are the engine's.
//
//	h1 ── eth0 leaf1 eth1 ── h2
type bed struct {
	t *testing.T
	w *linux.Wiring
	e *Engine
}

const (
	toH2, toH1 = 1, 2
	lineRate   = 10 * topo.Mbps
)

var beds int

// lay makes a bed whose ports are declared as Declared, changed.
func lay(t *testing.T, change func(*Port)) *bed {
	t.Helper()
	testneed.Rxe(t) // a kernel that has rxe in namespaces has the engine's discipline, in the guest
	ctx := context.Background()
	none := time.Duration(0)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{Delay: &none}}
	top, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := top.Plan(spec.PlanOptions())
	if err != nil {
		t.Fatal(err)
	}
	beds++
	tb, err := linux.Acquire(ctx, fmt.Sprintf("e%d-%d", os.Getpid(), beds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	b := &bed{t: t}
	if b.w, err = tb.Wire(ctx, plan, linux.WireOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.e, err = Open(Config{Testbed: fmt.Sprint("test", beds), Ports: 2, Nodes: 1, Slots: 4096, Flows: 200, MaxIndex: 1 << 16}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.e.SetMemory(0, 1<<20); err != nil {
		t.Fatal(err)
	}
	b.renew(time.Hour)
	p := Declared()
	change(&p)
	for number, name := range map[int]string{toH2: "eth1", toH1: "eth0"} {
		b.attach(number, name, p)
	}
	return b
}

// Declared is a port at 10 Mb/s whose priority 3 is lossless.
func Declared() Port {
	p := Port{Rate: lineRate, MTU: 1500, Obey: 1 << 3, Sends: 1 << 3}
	for d := range p.Priority {
		p.Priority[d] = uint8(d / 8)
	}
	for i := range p.Queues {
		p.Queues[i] = Queue{Reserved: 200_000, Weight: 1}
	}
	p.Queues[6].Weight = 0
	p.Groups[3] = Group{Lossless: true, XOFF: 50_000, XON: 3000, Headroom: 30_000}
	return p
}

// attach makes a port of the switch one of the engine's.
func (b *bed) attach(number int, port string, p Port) {
	b.t.Helper()
	ns := b.w.Node("leaf1")
	l, _ := ns.Link(port)
	var conn *tc.Conn
	err := ns.Do(func() (err error) { conn, err = tc.Open(); return err })
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if err := b.e.Add(number, Place{Ifindex: l.Index, Slots: 2048}, p); err != nil {
		b.t.Fatal(err)
	}
	var batch nl.Batch
	tree := []tc.Object{{ID: Handle(number), Parent: tc.Root, Spec: tc.Engine{Name: b.e.Kind()}}}
	have, err := conn.Tree(l.Index)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, op := range tc.Diff(have, tree) {
		tc.AppendOp(&batch, l.Index, op, port)
	}
	tc.AppendHookPlace(&batch, l.Index, port)
	tc.AppendHook(&batch, l.Index, b.e.Arrive().FD(), port)
	tc.AppendEgressHook(&batch, l.Index, b.e.Pause().FD(), port)
	if err := conn.Send(&batch); err != nil {
		b.t.Fatal(err)
	}
	have, err = conn.Tree(l.Index)
	if err == nil {
		err = tc.Verify(have, tree)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) renew(d time.Duration) {
	b.t.Helper()
	if err := b.e.Renew(d); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) read(number int) Reading {
	b.t.Helper()
	r, err := b.e.Read(number)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// flood sends datagrams from h1 to h2 with a DSCP until stopped, 16 of them at a time.
func (b *bed) flood(dscp, port int) (stop func()) {
	b.t.Helper()
	h2, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	at := net.JoinHostPort(h2.Addr.Addr().String(), fmt.Sprint(port))
	var c *net.UDPConn
	err := b.w.Node("h1").Do(func() error {
		conn, err := net.Dial("udp", at)
		if err != nil {
			return err
		}
		c = conn.(*net.UDPConn)
		return setDSCP(c, dscp)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1400)
		tick := time.NewTicker(500 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			for range 16 {
				_, _ = c.Write(buf) // h2 has no such port, and says so
			}
		}
	}()
	return func() { close(end); <-ended; c.Close() }
}

// setDSCP has what a socket sends carry a DSCP, and ECT(0).
func setDSCP(c net.Conn, dscp int) error {
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	var set error
	return errors.Join(raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, dscp<<2|2) }), set)
}

// roce is a socket of h1 that sends to RoCE's port of h2, and h2's.
func (b *bed) roce() (h2 netip.Addr, got *net.UDPConn, sent net.Conn) {
	b.t.Helper()
	p, _ := b.w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	at := netip.AddrPortFrom(p.Addr.Addr(), 4791)
	if err := b.w.Node("h2").Do(func() (err error) { got, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); return err }); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { got.Close() })
	if err := got.SetReadBuffer(1 << 20); err != nil {
		b.t.Fatal(err)
	}
	if err := b.w.Node("h1").Do(func() (err error) { sent, err = net.Dial("udp", at.String()); return err }); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { sent.Close() })
	return at.Addr(), got, sent
}

// until waits for a condition of a port.
func (b *bed) until(number int, what string, is func(Reading) bool) Reading {
	b.t.Helper()
	var r Reading
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if r = b.read(number); is(r) {
			return r
		}
	}
	b.t.Fatalf("%s: never; last seen: %+v", what, r)
	return r
}

// pause sends a pause frame from h2 to the switch.
func (b *bed) pause(priority uint8, quanta uint16) {
	b.t.Helper()
	err := b.w.Node("h2").Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		l, _ := b.w.Node("h2").Link("eth0")
		var f roce.PFC
		f.Set(priority, quanta)
		return unix.Sendto(fd, roce.AppendPFC(nil, roce.MAC{2, 0, 0, 0, 0, 9}, &f), 0, &unix.SockaddrLinklayer{Ifindex: l.Index})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
