package rnic

import (
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/workloads/verbs"
)

func testPCIe(t *testing.T, c PCIeConfig) *PCIe {
	t.Helper()
	p, err := NewPCIe(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pull reads packets of 4 KiB one after the other through some NICs at once, and says what came in, bits a second.
func pull(n int, kind verbs.MemoryKind, slots ...*pcieSlot) float64 {
	var last loop.Time
	for range n {
		for _, s := range slots {
			last = max(last, s.readAt(0, 4096, kind))
		}
	}
	return float64(n*len(slots)*4096*8) / last.Sub(0).Seconds()
}

func TestALinkCarriesWhatMeasurementsSayItDoes(t *testing.T) {
	// Neugebauer et al., SIGCOMM 2018: gen3 x8 has 57.88 Gb/s for packets, of which a write of 256 bytes leaves 256/280.
	if r := float64(PCIeLink{3, 8}.Rate()) / 1e9; r < 57.8 || r > 58 {
		t.Errorf("gen3 x8 carries %.2f Gb/s of packets", r)
	}
	for gen := 2; gen <= 6; gen++ {
		if q := float64(PCIeLink{gen, 16}.Rate()) / float64(PCIeLink{gen - 1, 16}.Rate()); q < 1.8 || q > 2.01 {
			t.Errorf("gen%d is %.2f times gen%d", gen, q, gen-1)
		}
	}
	p := testPCIe(t, PCIeConfig{NIC: PCIeLink{4, 16}})
	want := float64(PCIeLink{4, 16}.Rate()) * 256 / 280
	if got := pull(10_000, verbs.HostMemory, p.attach()); got < 0.999*want || got > 1.001*want {
		t.Errorf("payload comes at %.1f Gb/s, want %.1f", got/1e9, want/1e9)
	}
}

// Two NICs share the way to host memory; each has a GPU of its own beside it.
func TestNICsOfAHostShareTheRootComplexButNotTheirGPUs(t *testing.T) {
	c := PCIeConfig{NIC: PCIeLink{4, 16}, GPU: PCIeLink{4, 16}, Host: PCIeLink{4, 16}}
	p := testPCIe(t, c)
	one := pull(10_000, verbs.HostMemory, p.attach())
	p = testPCIe(t, c)
	both := pull(10_000, verbs.HostMemory, p.attach(), p.attach())
	p = testPCIe(t, c)
	gpus := pull(10_000, verbs.GPUMemory, p.attach(), p.attach())
	if both < 0.99*one || both > 1.01*one {
		t.Errorf("one NIC reads %.1f Gb/s of host memory, two %.1f together", one/1e9, both/1e9)
	}
	if gpus < 1.98*one || gpus > 2.02*one {
		t.Errorf("one NIC reads %.1f Gb/s, two %.1f of their GPUs", one/1e9, gpus/1e9)
	}
}

func TestReadsAndWritesDoNotSlowEachOther(t *testing.T) {
	p := testPCIe(t, PCIeConfig{NIC: PCIeLink{4, 16}, Host: PCIeLink{4, 16}, HostRead: 500})
	s := p.attach()
	for range 100 {
		s.readAt(0, 4096, verbs.HostMemory)
	}
	if left := s.writeAt(0, 0, 64, verbs.HostMemory); left > 10 {
		t.Errorf("a write behind reads left at %v", left)
	}
	if at := s.readAt(1_000_000, 64, verbs.HostMemory); at < 1_000_500 || at > 1_000_510 {
		t.Errorf("a read of 64 bytes made at 1ms is there at %v, want 500 ns later", at)
	}
}

func TestARetrainedLinkIsSlowerFromThenOnAndSaysSo(t *testing.T) {
	p := testPCIe(t, PCIeConfig{NIC: PCIeLink{4, 16}})
	bad, good := p.attach(), p.attach()
	if err := p.Retrain(PCIeNIC, 0, PCIeLink{3, 4}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Trained(PCIeNIC, 0)
	if other, _ := p.Trained(PCIeNIC, 1); err != nil || got != (PCIeLink{3, 4}) || other != (PCIeLink{4, 16}) {
		t.Errorf("trained to %v and %v (%v)", got, other, err)
	}
	slow, fast := pull(1000, verbs.HostMemory, bad), pull(1000, verbs.HostMemory, good)
	if q := fast / slow; q < 7.9 || q > 8.1 {
		t.Errorf("gen4 x16 is %.2f times gen3 x4, want 8", q)
	}
	if p.Retrain(PCIeGPU, 2, PCIeLink{3, 4}) == nil || p.Retrain(PCIeNIC, 0, PCIeLink{3, 3}) == nil || p.Retrain(PCIeHost, 0, PCIeLink{7, 8}) == nil {
		t.Error("a link that there isn't was trained")
	}
}

func TestAPCIeThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []PCIeConfig{{NIC: PCIeLink{4, 5}}, {Host: PCIeLink{0, 8}}, {GPU: PCIeLink{9, 8}}, {MaxPayload: 100}, {GPURead: -time.Nanosecond}} {
		if _, err := NewPCIe(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// A device that costs nothing does once its slot is a bad one.
func TestARetrainedLinkOfADeviceWithoutStagesSlowsItDown(t *testing.T) {
	pcie, err := NewPCIe(PCIeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	l := profiled(func(_ int, p *Profile) { p.Stages = Stages{} })
	change := l.config
	l.config = func(c *Config) {
		change(c)
		if c.MAC[5] == 0 {
			c.PCIe = pcie
		}
	}
	e := l.pairOf(t, verbs.RC, 1<<20, nil)
	p := l.more(t, e, 1, func(int) uint8 { return 26 })[0]
	stream(t, p, 400)
	if fast := l.rate(p, time.Millisecond); fast < 95e9 {
		t.Fatalf("%.1f Gb/s over a slot that costs nothing", fast/1e9)
	}
	if err := pcie.Retrain(PCIeNIC, 0, PCIeLink{3, 1}); err != nil {
		t.Fatal(err)
	}
	l.until(l.v.Now().Add(100 * time.Microsecond))
	if slow, most := l.rate(p, time.Millisecond), float64((PCIeLink{3, 1}).Rate()); slow > most || slow < most/2 {
		t.Errorf("%.1f Gb/s over a slot of %.1f", slow/1e9, most/1e9)
	}
}
