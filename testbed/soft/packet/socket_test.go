//go:build linux

package packet

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

const patience = 20 * time.Second

// pair is h1 and h2, with one link between them through a switch that has no sockets: h1's peer is leaf1:eth0.
func pair(t *testing.T) (h1, leaf *linux.Namespace) {
	t.Helper()
	testneed.Root(t)
	spec := topo.Spec{Star: &topo.Star{Hosts: 2}, LinkSettings: topo.LinkSettings{MTU: 4200}}
	tp, err := spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := tp.Plan(topo.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bed, err := linux.Acquire(context.Background(), fmt.Sprintf("t%d-packet", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	all := func(*topo.Node) bool { return true }
	w, err := bed.Wire(context.Background(), plan, linux.WireOptions{Bare: all, Unsteered: all})
	if err != nil {
		t.Fatal(err)
	}
	return w.Node("h1"), w.Node("leaf1")
}

func open(t *testing.T, ns *linux.Namespace, opt Options) (*Socket, *Poller) {
	t.Helper()
	opt.MTU = 4200
	s, err := Open(ns, "eth0", opt)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPoller(ns.Node(), -1)
	if err == nil {
		err = p.Add(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Release()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, p
}

// waitFor waits in the poller until done says so.
func waitFor(t *testing.T, p *Poller, what string, done func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !done(); {
		if time.Now().After(until) {
			t.Fatal("waited in vain for " + what)
		}
		if err := p.Wait(10 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// frame is a frame of n bytes, 18 or more, that is told from others by its number.
func frame(n int, number uint32) []byte {
	f := make([]byte, n)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	binary.BigEndian.PutUint32(f[14:], number)
	for i := 18; i < n; i++ {
		f[i] = byte(i * 7)
	}
	return f
}

func TestFramesOfEverySizeCrossInOrderAndInPieces(t *testing.T) {
	h1, leaf := pair(t)
	out, outPoll := open(t, h1, Options{})
	in, inPoll := open(t, leaf, Options{Room: 1 << 20})
	const total = 20_000 // the ring goes round many times
	size := func(i int) int { return 60 + i*37%(4214-60+1) }
	sent, got := 0, 0
	for until := time.Now().Add(patience); got < total; {
		if time.Now().After(until) {
			t.Fatalf("%d of %d frames arrived, %d were sent", got, total, sent)
		}
		for sent < total && sent < got+100 && out.Room() {
			f := frame(size(sent), uint32(sent))
			head := append(out.Head(), f[:30]...)
			out.Add(head, f[30:len(f)-4], append(head, f[len(f)-4:]...)[30:])
			sent++
		}
		n := out.Added()
		if k, lost, err := out.Send(); lost || err != nil {
			t.Fatal(err)
		} else if sent -= n - k; out.Full() {
			waitFor(t, outPoll, "room", func() bool { return !out.Full() })
		}
		for b, _ := in.Next(); b != nil; b, _ = in.Next() {
			if want := frame(size(got), uint32(got)); !bytes.Equal(b, want) {
				t.Fatalf("frame %d of %d bytes came as %d bytes: %x…", got, len(want), len(b), b[:30])
			}
			got++
		}
		in.Release(in.Held())
		if err := inPoll.Wait(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := in.Drops(); n != 0 || err != nil {
		t.Errorf("%d drops, %v", n, err)
	}
	if b, _ := out.Next(); b != nil {
		t.Errorf("the sender's socket got what it sent: %x", b)
	}
}

func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	h1, leaf := pair(t)
	out, poll := open(t, h1, Options{})
	in, _ := open(t, leaf, Options{Room: 1})
	const total = 2000
	for sent := 0; sent < total; {
		for i := sent; i < total && out.Room(); i++ {
			out.Add(frame(4000, uint32(i)), nil, nil)
		}
		k, lost, err := out.Send()
		if lost || err != nil {
			t.Fatal(err)
		}
		if sent += k; out.Full() {
			waitFor(t, poll, "room", func() bool { return !out.Full() })
		}
	}
	// Frames that were sent are in the ring, were dropped, or are still on their way through a backlog.
	got := 0
	for until := time.Now().Add(patience); ; {
		for taken(in) {
			got++
		}
		drops, err := in.Drops()
		if err != nil {
			t.Fatal(err)
		}
		if got+int(drops) == total && drops > 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("of %d frames %d came and %d are counted as dropped", total, got, drops)
		}
	}
}

func TestAFrameThatIsTooLongIsLostAndTheOthersGo(t *testing.T) {
	h1, leaf := pair(t)
	out, _ := open(t, h1, Options{})
	in, inPoll := open(t, leaf, Options{})
	for i, n := range []int{100, 5000, 200} {
		out.Add(frame(n, uint32(i)), nil, nil)
	}
	sent, lost, err := out.Send()
	if sent != 1 || !lost || err != unix.EMSGSIZE {
		t.Fatalf("%d sent, lost %v, %v; want 1, and the second lost with EMSGSIZE", sent, lost, err)
	}
	out.Add(frame(200, 2), nil, nil)
	if sent, lost, err = out.Send(); sent != 1 || lost {
		t.Fatal(err)
	}
	got := 0
	waitFor(t, inPoll, "the two that fit", func() bool {
		for taken(in) {
			got++
		}
		in.Release(in.Held())
		return got == 2
	})
}

func TestARNICGetsRoCEAndPauseFramesAlone(t *testing.T) {
	h1, leaf := pair(t)
	out, _ := open(t, leaf, Options{})
	in, poll := open(t, h1, Options{Filter: RoCE})
	var wanted, others [][]byte
	for _, a := range []string{"10.0.0.1", "2001:db8::1"} {
		p := roce.Packet{Src: roce.AddrFrom(netip.MustParseAddr(a)), Dst: roce.AddrFrom(netip.MustParseAddr(a)), PayloadLen: 64, TTL: 64}
		b, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		wanted = append(wanted, b)
		l4 := roce.EthernetLen + roce.IPv4Len
		if a[0] == '2' {
			l4 = roce.EthernetLen + roce.IPv6Len
		}
		other := bytes.Clone(b)
		binary.BigEndian.PutUint16(other[l4+2:], 4790)
		others = append(others, other)
		tcp := bytes.Clone(b)
		if a[0] == '2' {
			tcp[roce.EthernetLen+6] = roce.ProtocolTCP
		} else {
			tcp[roce.EthernetLen+9] = roce.ProtocolTCP
			fragment := bytes.Clone(b)
			fragment[roce.EthernetLen+7] = 1
			others = append(others, fragment)
		}
		others = append(others, tcp)
	}
	wanted = append(wanted, roce.AppendPFC(nil, roce.MAC{2}, &roce.PFC{Enabled: 8}), roce.AppendPause(nil, roce.MAC{2}, 7))
	others = append(others, frame(60, 0), (&roce.Ethernet{Type: roce.EtherTypeARP}).Append(nil))
	for _, b := range append(others, wanted...) {
		out.Add(b, nil, nil)
	}
	if _, lost, err := out.Send(); lost || err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	waitFor(t, poll, "RoCE and pause frames", func() bool {
		for b, _ := in.Next(); b != nil; b, _ = in.Next() {
			got = append(got, bytes.Clone(b))
		}
		in.Release(in.Held())
		return len(got) >= len(wanted)
	})
	for i, b := range got {
		if i >= len(wanted) || !bytes.Equal(b, wanted[i]) {
			t.Errorf("frame %d: got %x", i, b)
		}
	}
}

func TestATagThatTheKernelTookOutIsBack(t *testing.T) {
	h1, leaf := pair(t)
	out, _ := open(t, h1, Options{})
	in, poll := open(t, leaf, Options{})
	eth := roce.Ethernet{Dst: roce.MAC{2, 1}, Src: roce.MAC{2, 2}, Tagged: true, TCI: roce.NewTCI(3, false, 7), Type: 0x88b5}
	want := append(eth.Append(nil), frame(100, 9)...)
	out.Add(want, nil, nil)
	if _, lost, err := out.Send(); lost || err != nil {
		t.Fatal(err)
	}
	waitFor(t, poll, "a tagged frame", func() bool {
		b, _ := in.Next()
		if b == nil {
			return false
		}
		if !bytes.Equal(b, want) {
			t.Errorf("got  %x\nwant %x", b, want)
		}
		in.Release(1)
		return true
	})
}

func taken(s *Socket) bool {
	b, _ := s.Next()
	return b != nil
}
