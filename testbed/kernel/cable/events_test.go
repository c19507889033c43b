//go:build linux

package cable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/silicon"
)

// skb is a struct __sk_buff for test runs.
type skb [192]byte

func (s *skb) cb(i int) uint32 { return binary.LittleEndian.Uint32(s[skbCB+4*i:]) }

// picked runs a stage of events on a frame, as the first of a chain that leads nowhere.
func picked(t *testing.T, s *Stage, frame []byte) (verdict int32, out []byte, after skb) {
	t.Helper()
	var before skb
	binary.LittleEndian.PutUint32(before[skbCB:], place(1, 0, 0))
	run := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: before, ContextOut: &after}
	v, err := s.prog.Run(&run)
	if err != nil {
		t.Fatal(err)
	}
	return int32(v), run.DataOut, after
}

func eventsStage(t testing.TB, p *packet.Program, conns []packet.Connection) *Stage {
	t.Helper()
	f, err := newForwarder(1)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	s, err := newStage(f, Events{p}, p.Seed, 1)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		f.Close()
	})
	for i := range conns {
		s.Connect(&conns[i])
	}
	return s
}

// nowhere is the far end of a software node's wire.
type nowhereWire struct{}

func (nowhereWire) Send(*link.Frame, loop.Time) {}

// What the program in the kernel decides is what the matcher decides, and what it makes of a packet's bytes is what software nodes make of it,
// for events and packets of every kind.
func TestTheProgramDecidesAsTheMatcherAndChangesAsSoftwareNodes(t *testing.T) {
	testneed.Root(t)
	var decided [10]int
	for seed := range uint64(60) {
		d := newLots(seed)
		p, err := d.program(seed, 16)
		if err != nil {
			t.Fatal(err)
		}
		s := eventsStage(t, p, d.conns)
		if err := s.picks.verify(); err != nil {
			t.Fatal(err)
		}
		m := packet.NewMatcher(p)
		for i := range d.conns {
			m.Connect(&d.conns[i])
		}
		w := silicon.NewWire(nowhereWire{}, loop.NewVirtual(1).Node(1), &link.Pool{})
		if err := w.Pick("it", p, d.conns, roce.MAC{}, roce.MAC{}); err != nil {
			t.Fatal(err)
		}
		held := Events{p}.settles() == settlesHeld
		hits := uint64(0)
		for n := range 150 {
			in := d.frame()
			var view roce.View
			_ = view.Parse(in)
			facts, ok := packet.Of(&view)
			var want packet.Verdict
			if ok {
				want = m.Look(&facts)
			}
			at := func() string {
				return fmt.Sprintf("seed %d, packet %d (%+v), wanted %+v, rules %+v", seed, n, facts, want, p.Rules)
			}
			verdict, out, after := picked(t, s, in)
			if want.Do != 0 {
				hits++
			}
			for i := range 9 {
				decided[i] += int(want.Do >> i & 1)
			}
			if (verdict == verdictDrop) != want.Has(packet.Drop) {
				t.Fatalf("%s: verdict %d", at(), verdict)
			}
			var f link.Frame
			_ = f.Parse(bytes.Clone(in))
			w.Send(&f, 0)
			if want.Has(packet.Drop) {
				continue
			}
			if verdict != verdictNowhere {
				t.Fatalf("%s: verdict %d", at(), verdict)
			}
			if ok {
				f.Flush()
			}
			if !bytes.Equal(out, f.Bytes) {
				t.Fatalf("%s:\nbefore %x\nkernel %x\nsoft   %x", at(), in, out, f.Bytes)
			}
			fate, time := after.cb(1), time.Duration(uint64(after.cb(3))|uint64(after.cb(4))<<32)
			copies, hold := fate>>16&0xff, fate&0xffff
			if int(copies) != int(want.Copies) || int(hold) != int(want.Hold) || (fate>>25&1 == 1) != (want.Delay > 0 && want.Hold == 0) {
				t.Fatalf("%s: fate %#x", at(), fate)
			}
			if held && (after.cb(2) != want.Flow || want.Hold > 0 && time != want.AtMost || want.Hold == 0 && time != want.Delay) {
				t.Fatalf("%s: flow %d, time %v", at(), after.cb(2), time)
			}
		}
		counts, err := s.EventCounts()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range m.Counts() {
			if c != counts[i] {
				t.Errorf("seed %d, event %d: %+v, the matcher %+v", seed, i, counts[i], c)
			}
		}
		if c, err := s.Counts(); err != nil || c.Seen != 150 || c.Hits != hits {
			t.Errorf("seed %d: counted %+v, %d were hit: %v", seed, c, hits, err)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
	for i, v := range packet.Verbs() {
		if decided[i] == 0 {
			t.Errorf("no packet was to %s", v)
		}
	}
	t.Logf("verbs %v: %v packets", packet.Verbs(), decided[:9])
}
