//go:build linux

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/rocebed/rocebed/topo"
)

// shares is a memory of which priority 3's group and priority 1's queue share what is left, and frames of some priorities that stay.
func shares(alpha uint32, stuck uint8) func(*Port) {
	return func(p *Port) {
		p.Stuck = stuck
		p.Queues[1] = Queue{Weight: 1, Alpha: 8 << 10}
		p.Groups[3] = Group{Lossless: true, Alpha: alpha, XON: 1000, Headroom: 30_000}
	}
}

// fills sends five frames of priority 3, one after the other, and leaves so much memory for them that their group asks for a pause with the last: it holds then
// half of what nobody else does.
func (b *bed) fills() Reading {
	b.t.Helper()
	const frames, size = 5, 1400
	m, err := b.e.Memory(0)
	if err == nil {
		err = b.e.SetMemory(0, topo.Bytes(m.Used+2*frames*(size+42)))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	h2, _, sent := b.roce()
	if err := setDSCP(sent, 24); err != nil {
		b.t.Fatal(err)
	}
	for i := range frames {
		before := b.read(toH1).Groups[3]
		if before.Pausing {
			b.t.Fatalf("before frame %d the group is %+v", i, before)
		}
		if _, err := sent.Write(make([]byte, size)); err != nil {
			b.t.Fatal(err)
		}
		b.until(toH1, fmt.Sprintf("frame %d to %v is on the group's account", i, h2), func(r Reading) bool { return r.Groups[3].Frames > before.Frames })
	}
	r := b.read(toH1)
	if g := r.Groups[3]; !g.Pausing || g.Held == 0 || g.Headroom > 0 {
		b.t.Fatalf("the group is %+v", g)
	}
	return r
}

// A group whose threshold follows what others leave goes on when they leave more, while its own frames can't go.
func TestAPauseEndsWhenOthersMakeRoom(t *testing.T) {
	b := lay(t, shares(1<<10, 1<<3|1<<1))
	if err := b.e.SetMemory(0, 200_000); err != nil {
		t.Fatal(err)
	}
	events, err := b.e.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	stop := b.flood(8, 9)
	b.until(toH2, "the others fill the memory", func(r Reading) bool { return r.Queues[1].Drops > 100 })
	stop()
	paused := b.fills().Groups[3]
	p := Declared()
	shares(1<<10, 1<<3)(&p)
	if err := b.e.Declare(toH2, p); err != nil {
		t.Fatal(err)
	}
	goesOn := b.until(toH1, "the pause ends", func(r Reading) bool { return !r.Groups[3].Pausing }).Groups[3]
	if goesOn.Held != paused.Held || goesOn.XOFFs != 1 {
		t.Errorf("its own frames left: it held %d, and %d when the pause ended; %d pauses", paused.Held, goesOn.Held, goesOn.XOFFs)
	}
	events.SetDeadline(time.Now().Add(5 * time.Second))
	for {
		e, err := events.Next()
		if err != nil {
			t.Fatalf("nobody was told that the pause is over: %v", err)
		}
		if e.Kind == XON && e.Port == toH1 && e.Priority == 3 {
			break
		}
	}
}

// The same when what is declared leaves more, with no frame that leaves at all.
func TestAPauseEndsWhenMoreIsDeclared(t *testing.T) {
	for name, more := range map[string]func(*bed) error{
		"memory": func(b *bed) error { return b.e.SetMemory(0, 1_000_000) },
		"alpha":  func(b *bed) error { p := Declared(); shares(8<<10, 1<<3)(&p); return b.e.Declare(toH1, p) },
	} {
		b := lay(t, shares(1<<10, 1<<3))
		held := b.fills().Groups[3].Held
		if err := more(b); err != nil {
			t.Fatal(err)
		}
		if g := b.read(toH1).Groups[3]; g.Pausing || g.Held != held {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// A pause that would have nothing to end it, since the group holds nothing, isn't begun.
func TestAGroupThatHoldsNothingDoesNotPause(t *testing.T) {
	b := lay(t, func(p *Port) { p.Groups[3] = Group{Lossless: true, Alpha: 1 << 10, XON: 1000} })
	if err := b.e.SetMemory(0, 0); err != nil {
		t.Fatal(err)
	}
	stop := b.flood(24, 9)
	defer stop()
	r := b.until(toH1, "frames are dropped", func(r Reading) bool { return r.Groups[3].HeadroomDrops > 20 })
	if g := r.Groups[3]; g.Pausing || g.XOFFs > 0 || g.Held > 0 {
		t.Errorf("the group is %+v", g)
	}
	if err := b.e.SetMemory(0, 1<<20); err != nil {
		t.Fatal(err)
	}
	b.until(toH2, "they go when there is memory", func(r Reading) bool { return r.Queues[3].TxFrames > 20 })
}
