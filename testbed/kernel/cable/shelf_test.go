//go:build linux

package cable

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// rawOn is a packet socket on a port.
func rawOn(t *testing.T, w *linux.Wiring, ref topo.PortRef) (fd int) {
	t.Helper()
	ns := w.Node(ref.Node)
	l, ok := ns.Link(ref.Port)
	if !ok {
		t.Fatalf("%s: no link", ref)
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8
	err := ns.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
		tv := unix.NsecToTimeval(int64(100 * time.Millisecond))
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// came are the RoCE frames that arrive until there are enough and nothing more comes, or for some seconds.
func came(t *testing.T, fd, enough int, is func([]byte) bool) (all [][]byte) {
	t.Helper()
	buf := make([]byte, 1<<14)
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EAGAIN {
			if len(all) >= enough {
				break
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if is(buf[:n]) {
			all = append(all, bytes.Clone(buf[:n]))
		}
	}
	return all
}

// ours says whether a frame is one of those that lots draw, whatever an event has done to it.
func ours(b []byte) bool { return len(b) >= 34 && bytes.HasPrefix(b, []byte{2, 0, 0, 0, 0, 9}) }

type keeper struct{ frames [][]byte }

func (k *keeper) Send(f *link.Frame, _ loop.Time) {
	f.Flush()
	k.frames = append(k.frames, bytes.Clone(f.Bytes))
}

// What leaves a cable, in which order, is what leaves a software node's wire: copies behind their packet, and what is held behind the packet that it
// has waited for. What is left when the fault ends goes on then.
func TestWhatIsHeldAndCopiedGoesOnInTheOrderOfSoftwareNodes(t *testing.T) {
	w, s := lay(t)
	from := topo.PortRef{Node: "h1", Port: "eth0"}
	port, _ := w.Plan().Port(from)
	out, in := rawOn(t, w, from), rawOn(t, w, port.Peer)
	held := 0
	for seed := range uint64(12) {
		d := newLots(100 + seed)
		for i := range d.conns {
			d.conns[i].From.Addr, d.conns[i].To.Addr = host(0), host(2)
		}
		var events []packet.Event
		for len(events) < 3 {
			e := d.event()
			e.Do = one(d, packet.Do{{Verb: packet.Hold, N: 1 + d.IntN(8)}}, packet.Do{{Verb: packet.Hold, N: 1 + d.IntN(4)}, {Verb: packet.Duplicate, N: 1 + d.IntN(3)}},
				packet.Do{{Verb: packet.Drop}}, packet.Do{{Verb: packet.Duplicate, N: 2}}, packet.Do{{Verb: packet.MarkCE}, {Verb: packet.Hold, N: 2}}, packet.Do{{Verb: packet.Truncate, N: 60}})
			if packet.Validate("", []packet.Event{e}) == nil {
				events = append(events, e)
			}
		}
		p, err := packet.Compile(events, seed)
		if err != nil {
			t.Fatal(err)
		}
		imp := loaded(t, s, from, fmt.Sprint("it", seed), Events{p}, seed)
		for i := range d.conns {
			imp.Stage.Connect(&d.conns[i])
		}
		change(t, s, from, func(w Wire) Wire { return w.With(imp) })

		want := &keeper{}
		soft := silicon.NewWire(want, loop.NewVirtual(1).Node(1), &link.Pool{})
		if err := soft.Pick("it", p, d.conns, roce.MAC{}, roce.MAC{}); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			b := d.frame()
			var v roce.View
			// One way, and one flow to the kernel: it spreads flows over processors, which is no order.
			if v.Parse(b) != nil || v.Kind() != roce.KindRoCE || v.SrcAddr() != host(0) || v.DstAddr() != host(2) || v.SrcPort() != 50000 {
				continue
			}
			copy(b, []byte{2, 0, 0, 0, 0, 9})
			if err := unix.Send(out, b, 0); err != nil {
				t.Fatal(err)
			}
			var f link.Frame
			_ = f.Parse(bytes.Clone(b))
			soft.Send(&f, 0)
		}
		got := came(t, in, len(want.frames), ours)
		before := len(want.frames)
		if err := s.Change(from, func(w Wire) Wire { return w.Without(imp.ID) }); err != nil {
			t.Fatal(err)
		}
		if err := imp.Stage.Settle(); err != nil {
			t.Fatal(err)
		}
		soft.Unpick("it")
		held += len(want.frames) - before
		got = append(got, came(t, in, len(want.frames)-before, ours)...)
		if len(got) != len(want.frames) {
			t.Fatalf("seed %d: %d frames came, %d when it healed; want %d, %d: %+v", seed, len(got), len(got)-before, len(want.frames), len(want.frames)-before, events)
		}
		for i := range got {
			if !bytes.Equal(got[i], want.frames[i]) {
				t.Fatalf("seed %d: frame %d is\n%x, want\n%x", seed, i, got[i], want.frames[i])
			}
		}
		if err := imp.Stage.Err(); err != nil {
			t.Error(err)
		}
		if e := imp.Stage.end; e != nil && e.shelf.books.held != 0 {
			t.Errorf("seed %d: %d slots are still in use", seed, e.shelf.books.held)
		}
	}
	if held == 0 {
		t.Error("nothing was held when an event healed: the lots are wrong")
	}
}

// What waits for a time goes on when it is over, and counts for what is held of its flow.
func TestADelayedPacketIsOvertakenAndAHeldOneGoesOnWhenItsTimeIsOver(t *testing.T) {
	w, s := lay(t)
	from := topo.PortRef{Node: "h1", Port: "eth0"}
	port, _ := w.Plan().Port(from)
	out, in := rawOn(t, w, from), rawOn(t, w, port.Peer)
	c := packet.Connection{From: packet.End{Addr: host(0), QPN: 0x11}, To: packet.End{Addr: host(2), QPN: 0x12}}
	only := func(psn uint32) packet.Match { return packet.Match{PSN: packet.Set{{From: psn, To: psn}}} }
	// 1 is late; 3 waits for 100 packets or a longer time; 4 waits for three: for 5, for 1 and for 3.
	p, err := packet.Compile([]packet.Event{
		{Match: only(1), Do: packet.Do{{Verb: packet.Delay, Time: 60 * time.Millisecond}, {Verb: packet.Duplicate, N: 1}}},
		{Match: only(3), Do: packet.Do{{Verb: packet.Hold, N: 100, Time: 120 * time.Millisecond}}},
		{Match: only(4), Do: packet.Do{{Verb: packet.Hold, N: 3}}},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	imp := loaded(t, s, from, "it", Events{p}, 1)
	imp.Stage.Connect(&c)
	change(t, s, from, func(w Wire) Wire { return w.With(imp) })
	for psn := range uint32(6) {
		q := roce.Packet{TTL: 64, Src: host(0), Dst: host(2), SrcPort: 50000, BTH: roce.BTH{DestQP: 0x12, Opcode: roce.RCSendOnly, PSN: roce.PSN(psn)}}
		b, err := q.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		copy(b, []byte{2, 0, 0, 0, 0, 9})
		if err := unix.Send(out, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	var psns []int
	for _, b := range came(t, in, 7, ours) {
		var v roce.View
		if err := v.Parse(b); err != nil {
			t.Fatal(err)
		}
		psns = append(psns, int(v.PSN()))
	}
	if got := fmt.Sprint(psns); got != "[0 2 5 1 1 3 4]" {
		t.Errorf("PSNs came as %s", got)
	}
	if err := imp.Stage.Err(); err != nil {
		t.Error(err)
	}
	change(t, s, from, func(w Wire) Wire { return w.Without("it") })
}

// A shelf that is full says so, and lets packets pass rather than lose them.
func TestWhatDoesNotFitOnTheShelfGoesOnAndIsReported(t *testing.T) {
	w, s := lay(t)
	from := topo.PortRef{Node: "h1", Port: "eth0"}
	port, _ := w.Plan().Port(from)
	out, in := rawOn(t, w, from), rawOn(t, w, port.Peer)
	p, err := packet.Compile([]packet.Event{{Match: packet.Match{Class: packet.Classes{packet.Send}}, Do: packet.Do{{Verb: packet.Delay, Time: time.Minute}}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	imp := loaded(t, s, from, "it", Events{p}, 1)
	change(t, s, from, func(w Wire) Wire { return w.With(imp) })
	q := roce.Packet{TTL: 64, Src: host(0), Dst: host(2), SrcPort: 50000, BTH: roce.BTH{DestQP: 0x12, Opcode: roce.RCSendOnly}}
	b, err := q.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(b, []byte{2, 0, 0, 0, 0, 9})
	for range shelfSlots + 3 {
		if err := unix.Send(out, b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(came(t, in, 3, ours)); n != 3 {
		t.Errorf("%d packets went on, not 3", n)
	}
	if err := imp.Stage.Err(); err == nil || !strings.Contains(err.Error(), "3 packets could not be held back") {
		t.Errorf("it says %v", err)
	}
	change(t, s, from, func(w Wire) Wire { return w.Without("it") })
	if err := imp.Stage.Settle(); err != nil {
		t.Fatal(err)
	}
	if n := len(came(t, in, shelfSlots, ours)); n != shelfSlots {
		t.Errorf("%d packets went on when it ended, not %d", n, shelfSlots)
	}
}

func TestTwoFaultsCannotHoldBackPacketsOfOneDirection(t *testing.T) {
	hold, err := packet.Compile([]packet.Event{{Do: packet.Do{{Verb: packet.Hold, N: 2}}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	err = Wire{}.With(Impairment{ID: "a", Model: Events{hold}}).With(Impairment{ID: "b", Model: Events{hold}}).Check()
	if err == nil || !strings.Contains(err.Error(), "a and b both hold back") {
		t.Errorf("it says %v", err)
	}
}
