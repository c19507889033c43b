package silicon

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/rnic"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/topo"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// bus is three hosts with two GPUs each, whose NICs are wired to each other without a switch:
//
//	h1 ═ h2 ═ h3 ═ h1     1 µs each way
type bus struct {
	v      *loop.Virtual
	frames link.Pool
	devs   []*rnic.Device
	rng    *rand.Rand
	lose   float64
	meddle func(f *link.Frame)
}

const busDelay = time.Microsecond

// busWire is a host's way out.
type busWire struct {
	b    *bus
	from *loop.Node
}

func (w *busWire) Send(f *link.Frame, at loop.Time) {
	b := w.b
	if f.Kind != roce.KindRoCE || b.lose > 0 && b.rng.Float64() < b.lose {
		b.frames.Put(f)
		return
	}
	if b.meddle != nil {
		b.meddle(f)
	}
	f.ArriveAt(b.devs[f.Dst], 0)
	w.from.Send(b.v.Node(f.Dst), 0, at.Add(busDelay), &f.Timer)
}

// run runs workloads on the bus and returns their report.
func (b *bus) run(t *testing.T, text string, change func(*rnic.Config)) *workloads.Report {
	t.Helper()
	b.v, b.rng = loop.NewVirtual(busDelay), rand.New(rand.NewPCG(1, 2))
	top := &topo.Topology{Name: "bus"}
	cfg := workloads.Config{Topology: top, Seed: 42, LookAhead: busDelay, ControlTimeout: 5 * time.Second}
	addr := func(i int) roce.Addr { return roce.Addr4([4]byte{10, 0, 0, byte(1 + i)}) }
	for i := range 3 {
		name := fmt.Sprintf("h%d", i+1)
		top.Nodes = append(top.Nodes, topo.Node{Name: name, Role: topo.Host, GPUs: 2, Ports: []topo.Port{{Name: "eth0"}}})
		c := rnic.Config{
			Name: name, Loop: b.v.Node(uint32(i)), MAC: roce.MAC{2, 5: byte(i)}, Addr: addr(i), MTU: 4200, Rate: 100e9, Seed: uint64(i),
			Profile: rnic.Default(), Frames: &b.frames, Wire: &busWire{b, b.v.Node(uint32(i))}, Phantom: true,
			Resolve: func(a roce.Addr) (rnic.Neighbor, bool) {
				for k := range 3 {
					if a == addr(k) {
						return rnic.Neighbor{MAC: roce.MAC{2, 5: byte(k)}, Dst: uint32(k)}, true
					}
				}
				return rnic.Neighbor{}, false
			},
		}
		if change != nil {
			change(&c)
		}
		d, err := rnic.New(c)
		if err != nil {
			t.Fatal(err)
		}
		b.devs = append(b.devs, d)
		cfg.NICs = append(cfg.NICs, workloads.NIC{Port: topo.PortRef{Node: name, Port: "eth0"}, Device: d, GID: addr(i).Netip()})
	}
	var s struct {
		Workloads []workloads.Spec `yaml:"workloads"`
	}
	if err := strict.Decode("workloads.yaml", []byte("workloads: "+strings.ReplaceAll(text, "\n", "\n  ")), &s); err != nil {
		t.Fatal(err)
	}
	e, err := workloads.NewEngine(cfg, s.Workloads)
	if err != nil {
		t.Fatal(err)
	}
	var r *workloads.Report
	e.Start(func(done *workloads.Report) { r = done })
	if !b.v.Run(func() bool { return r != nil }) {
		t.Fatalf("nothing is left to happen at %v, and no report", b.v.Now())
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return r
}

const everything = `
- {name: writes, kind: all-pairs, size: 100KB, messages: 10, qps: 2}
- {name: reads, kind: read, from: [h1], to: [h2], size: 70001B, messages: 12}
- {name: sends, kind: send, from: [h2], to: [h3], size: 30KB, messages: 12, signaling: selective}
- {name: adds, kind: atomic, from: [h1, h2], to: [h3], messages: 20}
- {name: sum, kind: all-reduce, size: 300KB, slice: 20KB, messages: 3}
- {name: swap, kind: all-to-all, size: 120KB, slice: 10KB, messages: 2, after: sum}
- {name: loose, kind: write, transport: uc, from: [h1], to: [h2], size: 9KB, messages: 30}
- {name: grams, kind: send, transport: ud, from: [h1], to: [h2], size: 900B, messages: 30}`

// Every kind of workload passes over memory without bytes, and says that it checked all of it.
func TestWorkloadsRunAndAreCheckedInPhantomMemory(t *testing.T) {
	for _, lose := range []float64{0, 0.01} {
		b := &bus{lose: lose}
		for _, r := range b.run(t, everything, nil).Results {
			if !r.Passed || r.Bytes == 0 || r.VerifiedBytes != r.Bytes || r.WrongBytes != 0 {
				t.Errorf("loss %v: %s: passed %v (%s), %d of %d bytes verified, %d wrong", lose, r.Name, r.Passed, r.Failure, r.VerifiedBytes, r.Bytes, r.WrongBytes)
			}
		}
	}
}

// What a fabric could do to bytes is found where there are none: content that is lost though it was acknowledged, that
// comes from elsewhere, and that comes twice.
func TestPhantomMemoryCatchesWhatBytesWouldShow(t *testing.T) {
	const (
		writes = `
- {name: w, kind: write, from: [h1], to: [h2], size: 64KB, messages: 20}`
		reads = `
- {name: w, kind: read, from: [h1], to: [h2], size: 64KB, messages: 20}`
		sum = `
- {name: w, kind: all-reduce, size: 300KB, slice: 20KB, messages: 2}`
		swap = `
- {name: w, kind: all-to-all, size: 120KB, slice: 10KB, messages: 2}`
	)
	var before []link.Extent
	for name, meddle := range map[string]func(f *link.Frame){
		"lost": func(f *link.Frame) {
			f.Content = append(f.Content[:0], link.Extent{Len: f.Packet.PayloadLen})
		},
		"misplaced": func(f *link.Frame) { f.Content[0].Off += 4 },
		"twice": func(f *link.Frame) {
			f.Content = append(f.Content[:0], before...)
		},
	} {
		for _, text := range []string{writes, reads, sum, swap} {
			n := 0
			b := &bus{}
			b.meddle = func(f *link.Frame) {
				if f.Packet.PayloadLen != 4096 || len(f.Content) == 0 {
					return
				}
				n++
				if n == 20 {
					before = append(before[:0], f.Content...)
				}
				if n == 21 {
					meddle(f)
				}
			}
			r := b.run(t, text, nil).Results[0]
			if n < 21 {
				t.Fatalf("%s, %s: only %d packets", name, r.Kind, n)
			}
			if r.Passed || r.Violations == 0 || r.WrongBytes == 0 || r.WrongBytes > 4*4096*3 {
				t.Errorf("%s, %s: passed %v, %d violations, %d bytes wrong (%s)", name, r.Kind, r.Passed, r.Violations, r.WrongBytes, r.Failure)
			}
		}
	}
}

// A transport that writes duplicates again is found.
func TestPhantomMemoryCatchesABrokenTransport(t *testing.T) {
	caught := 0
	for seed := range uint64(6) {
		b := &bus{lose: 0.02}
		r := b.run(t, `
- {name: w, kind: write, from: [h1], to: [h2], size: 40001B, messages: 60, depth: 8}`, func(c *rnic.Config) { c.Bugs, c.Seed = rnic.BugShortLast, seed }).Results[0]
		if !r.Passed && r.Violations > 0 {
			caught++
		}
	}
	if caught != 6 {
		t.Errorf("caught %d times of 6", caught)
	}
}
