//go:build linux

package cable

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/silicon"
	"github.com/rocebed/rocebed/topo"
)

// arp is no IP.
func arp() []byte {
	b := make([]byte, 60)
	b[12], b[13] = 0x08, 0x06
	return b
}

// Each model on IPv4, IPv6 and ARP, packet by packet as on a software node's wire.
func TestModelsHitThePacketsThatSoftwareNodesHit(t *testing.T) {
	testneed.Root(t)
	v6 := frame(200)
	v6[12], v6[13], v6[14], v6[19] = 0x86, 0xdd, 0x60, 146
	v4 := frame(200)
	v4[17] = 186
	for name, c := range map[string]struct {
		kernel Model
		soft   silicon.Model
	}{
		"severed": {Sever{}, silicon.Sever{}}, "black hole": {BlackHole{}, silicon.BlackHole{}},
		"too long": {TooLong{185}, silicon.TooLong{MTU: 185}}, "not too long": {TooLong{186}, silicon.TooLong{MTU: 186}},
		"bit errors": {BitErrors{1e-4}, silicon.BitErrors{Rate: 1e-4}}, "nothing but bit errors": {BitErrors{0.4}, silicon.BitErrors{Rate: 0.4}},
	} {
		const seed = 5
		for _, in := range [][]byte{v4, v6, arp()} {
			w := silicon.NewWire(nowhereWire{}, loop.NewVirtual(1).Node(1), &link.Pool{})
			if err := w.Add(silicon.Impairment{ID: "it", Model: c.soft, Seed: seed}); err != nil {
				t.Fatal(err)
			}
			last := uint64(0)
			k := each(t, c.kernel, seed, 400, in, func(i int, v int32, out []byte) {
				var f link.Frame
				_ = f.Parse(bytes.Clone(in))
				w.Send(&f, 0)
				_, _, hits, _ := w.Find("it")
				_, damages := c.kernel.(BitErrors)
				switch lost := v == verdictDrop; {
				case lost != (hits > last && !damages):
					t.Fatalf("%s, packet %d of %x…: lost %v, in software hit %v", name, i, in[12:14], lost, hits > last)
				case !lost && !bytes.Equal(out, f.Bytes):
					t.Fatalf("%s, packet %d:\nkernel %x\nsoft   %x", name, i, out, f.Bytes)
				}
				last = hits
			})
			if k.Hits != last {
				t.Errorf("%s: counted %d, in software %d", name, k.Hits, last)
			}
		}
	}
}

func TestParametersThatSayNothingAreRefused(t *testing.T) {
	for _, m := range []Model{TooLong{}, TooLong{1 << 20}, BitErrors{}, BitErrors{faults.BitErrorRate(0.5)}, Overtaken{P: 0.5}, Overtaken{P: 1, Window: 1}, Overtaken{Window: 1}} {
		if err := m.check(); err == nil {
			t.Errorf("%#v was taken", m)
		}
	}
}

// A window holds back as on a software node's wire, beside copies, which stay with their packet.
func TestAWindowOfPacketsOvertakesAsWithSoftwareNodes(t *testing.T) {
	w, s := lay(t)
	from := topo.PortRef{Node: "h1", Port: "eth0"}
	port, _ := w.Plan().Port(from)
	out, in := rawOn(t, w, from), rawOn(t, w, port.Peer)
	late := loaded(t, s, from, "late", Overtaken{P: 0.4, Gap: 3, Window: 5}, 8)
	twice := loaded(t, s, from, "twice", Duplicate{0.3}, 9)
	change(t, s, from, func(w Wire) Wire { return w.With(late).With(twice) })
	want := &keeper{}
	soft := silicon.NewWire(want, loop.NewVirtual(1).Node(1), &link.Pool{})
	for _, i := range []silicon.Impairment{{ID: "late", Model: silicon.Overtaken{P: 0.4, Gap: 3, Window: 5}, Seed: 8}, {ID: "twice", Model: silicon.Duplicate{P: 0.3}, Seed: 9}} {
		if err := soft.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	for psn := range 300 {
		q := roce.Packet{TTL: 64, Src: host(0), Dst: host(2), SrcPort: 50000, BTH: roce.BTH{DestQP: 0x12, Opcode: roce.RCSendOnly, PSN: roce.PSN(psn)}}
		b, err := q.Append(nil)
		if err != nil {
			t.Fatal(err)
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
	change(t, s, from, func(w Wire) Wire { return w.Without("late") })
	if err := late.Stage.Settle(); err != nil {
		t.Fatal(err)
	}
	before := len(want.frames)
	soft.Remove("late")
	got = append(got, came(t, in, len(want.frames)-before, ours)...)
	if len(got) != len(want.frames) {
		t.Fatalf("%d frames came, %d with software nodes", len(got), len(want.frames))
	}
	for i := range got {
		if !bytes.Equal(got[i], want.frames[i]) {
			t.Fatalf("frame %d is\n%x, want\n%x", i, got[i], want.frames[i])
		}
	}
	_, _, hits, _ := soft.Find("twice")
	if c, err := twice.Stage.Counts(); err != nil || c.Hits != hits {
		t.Errorf("copied %+v, %d with software nodes: %v", c, hits, err)
	}
}
