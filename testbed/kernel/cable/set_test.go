//go:build linux

package cable

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
)

var beds int

// lay makes two hosts on a switch, with cables that have no delay.
//
//	h1 ── leaf1 ── h2
func lay(t *testing.T) (*linux.Wiring, *Set) {
	t.Helper()
	testneed.Root(t)
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
	bed, err := linux.Acquire(ctx, fmt.Sprintf("c%d-%d", os.Getpid(), beds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	w, err := bed.Wire(ctx, plan, linux.WireOptions{Cables: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Lay(w, func(l *topo.Link) time.Duration { return l.Delay }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	return w, s
}

// flow is a stream of numbered datagrams from h1 to h2.
type flow struct {
	t    *testing.T
	from net.Conn
	to   net.PacketConn
	sent int
}

func newFlow(t *testing.T, w *linux.Wiring) *flow {
	t.Helper()
	f := &flow{t: t}
	port, _ := w.Plan().Port(topo.PortRef{Node: "h2", Port: "eth0"})
	at := net.JoinHostPort(port.Addr.Addr().String(), "4791")
	err := w.Node("h2").Do(func() (err error) { f.to, err = net.ListenPacket("udp", at); return err })
	if err != nil {
		t.Fatal(err)
	}
	err = w.Node("h1").Do(func() (err error) { f.from, err = net.Dial("udp", at); return err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.from.Close(); f.to.Close() })
	return f
}

// send sends n datagrams and returns how many came until nothing came any more.
func (f *flow) send(n int) (came int) {
	f.t.Helper()
	for range n {
		f.sent++
		if _, err := fmt.Fprintf(f.from, "data %60d", f.sent); err != nil {
			f.t.Fatal(err)
		}
	}
	buf := make([]byte, 2000)
	for quiet := 0; quiet < 3; {
		if err := f.to.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			f.t.Fatal(err)
		}
		k, _, err := f.to.ReadFrom(buf)
		switch {
		case err != nil:
			quiet++
		case strings.HasPrefix(string(buf[:k]), "data"):
			came++
		}
	}
	return came
}

func change(t *testing.T, s *Set, from topo.PortRef, to func(Wire) Wire) {
	t.Helper()
	if err := s.Change(from, to); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(from); err != nil {
		t.Fatal(err)
	}
}

// loaded is an impairment whose program is loaded until the test's end.
func loaded(t *testing.T, s *Set, from topo.PortRef, id string, m Model, seed uint64) Impairment {
	t.Helper()
	stage, err := s.Load(from, m, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	return Impairment{ID: id, Model: m, Seed: seed, Stage: stage}
}

func TestACableCarriesAndCountsExactlyWhatItLosesAndCopies(t *testing.T) {
	w, s := lay(t)
	f := newFlow(t, w)
	from := topo.PortRef{Node: "leaf1", Port: "eth1"}
	if err := s.Verify(from); err != nil {
		t.Fatal(err)
	}
	const n = 100 // doubled, they fit a socket's buffer
	if came := f.send(n); came != n {
		t.Fatalf("%d of %d datagrams came over a whole cable", came, n)
	}
	nth, double, more := loaded(t, s, from, "nth", NthLoss{10}, 0), loaded(t, s, from, "copy", Duplicate{1}, 0), loaded(t, s, from, "more", RandomLoss{0.5}, 3)
	counts := func(i Impairment) Counts {
		t.Helper()
		c, err := i.Stage.Counts()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	change(t, s, from, func(d Wire) Wire { return d.With(nth) })
	if came := f.send(n); came != n-n/10 {
		t.Errorf("every 10th of %d lost: %d came", n, came)
	}
	// A copy is put in behind the loss, whenever it was put in: what is lost isn't copied.
	change(t, s, from, func(d Wire) Wire { return d.With(double) })
	if came := f.send(n); came != 2*(n-n/10) {
		t.Errorf("every 10th of %d lost and the rest doubled: %d came", n, came)
	}
	if c := counts(nth); c.Seen != 2*n || c.Hits != 2*n/10 {
		t.Errorf("the loss counted %+v", c)
	}
	if c := counts(double); c.Seen != n-n/10 || c.Hits != c.Seen {
		t.Errorf("the copying counted %+v", c)
	}
	change(t, s, from, func(d Wire) Wire { return d.With(more) })
	before := counts(nth)
	came := f.send(n)
	lost := counts(more).Hits + counts(nth).Hits - before.Hits
	if came != 2*(n-int(lost)) {
		t.Errorf("%d of %d lost and the rest doubled: %d came", lost, n, came)
	}

	// Taken off one by one, in no order.
	for _, id := range []string{"copy", "nth", "more"} {
		change(t, s, from, func(d Wire) Wire { return d.Without(id) })
	}
	last := counts(nth)
	if came := f.send(n); came != n {
		t.Errorf("%d of %d datagrams came over a healed cable", came, n)
	}
	if c := counts(nth); c != last {
		t.Errorf("taken off, and it went on counting: %+v, then %+v", last, c)
	}
	// Put in again it begins anew.
	if err := nth.Stage.Reset(); err != nil {
		t.Fatal(err)
	}
	change(t, s, from, func(d Wire) Wire { return d.With(nth) })
	if came := f.send(n); came != n-n/10 || counts(nth) != (Counts{Seen: n, Hits: n / 10}) {
		t.Errorf("put in again: %d came, %+v", came, counts(nth))
	}
}

func TestACorruptedDatagramDoesNotReachItsSocket(t *testing.T) {
	w, s := lay(t)
	f := newFlow(t, w)
	from := topo.PortRef{Node: "leaf1", Port: "eth1"}
	flip := loaded(t, s, from, "flip", Corrupt{0.3}, 5)
	change(t, s, from, func(d Wire) Wire { return d.With(flip) })
	const n = 200
	came := f.send(n)
	c, err := flip.Stage.Counts()
	if err != nil {
		t.Fatal(err)
	}
	// The UDP checksum, which is there since offloads are off, catches every single bit.
	if c.Hits == 0 || came != n-int(c.Hits) {
		t.Errorf("%d sent, %d flipped, %d came", n, c.Hits, came)
	}
}

func TestOneDirectionOfACableIsLeftAloneByTheOther(t *testing.T) {
	w, s := lay(t)
	f := newFlow(t, w)
	from := topo.PortRef{Node: "h2", Port: "eth0"}
	change(t, s, from, func(d Wire) Wire { return d.With(loaded(t, s, from, "all", RandomLoss{1}, 0)) })
	if came := f.send(50); came != 50 {
		t.Errorf("%d of 50 came though only the other direction loses", came)
	}
}

func TestAChangeThatIsRefusedChangesNothing(t *testing.T) {
	_, s := lay(t)
	from := topo.PortRef{Node: "leaf1", Port: "eth1"}
	change(t, s, from, func(d Wire) Wire { return d.With(loaded(t, s, from, "a", RandomLoss{0.1}, 0)) })
	for reason, bad := range map[string]Impairment{
		"twice":          {ID: "a", Model: RandomLoss{0.2}},
		"not above 0":    {ID: "b", Model: RandomLoss{0}},
		"not loaded":     {ID: "b", Model: RandomLoss{0.2}},
		"no distributio": {ID: "b", Delay: Delay{Delay: 1, Jitter: 1, Distribution: "bathtub"}},
		"a delay of":     {ID: "b", Delay: Delay{Delay: 2 * time.Hour}},
		"as far as":      {ID: "b", Delay: Delay{Delay: time.Minute, Jitter: 3 * time.Second}},
	} {
		err := s.Change(from, func(d Wire) Wire { return d.With(bad) })
		if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), from.String()) {
			t.Errorf("expected %q, got %v", reason, err)
		}
		if err := s.Verify(from); err != nil {
			t.Errorf("after the refusal: %v", err)
		}
	}
	if err := s.Change(topo.PortRef{Node: "x", Port: "y"}, func(d Wire) Wire { return d }); err == nil {
		t.Error("a cable that doesn't exist was changed")
	}
}

func TestSomeoneElsesProgramOnACableIsNoticed(t *testing.T) {
	_, s := lay(t)
	from := topo.PortRef{Node: "leaf1", Port: "eth1"}
	d := s.wires[from]
	stray := loaded(t, s, from, "stray", RandomLoss{0.5}, 1).Stage
	err := s.ns.Do(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: d.in, Program: stray.prog, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		defer l.Close()
		if err := s.verify(d); err == nil {
			t.Error("a stray program was not noticed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(from); err != nil {
		t.Error(err)
	}
}
