package rnic

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/workloads/verbs"
)

// phantoms gives both ends of a pair a region of phantom memory.
func phantoms(t testing.TB, l *lab, p [2]*end, size int) (mems [2]verbs.PhantomMemory, mrs [2]verbs.MR) {
	t.Helper()
	for i := range p {
		m, err := p[i].AllocPhantom(size, verbs.GPUMemory)
		if err != nil {
			t.Fatal(err)
		}
		mems[i] = m
		p[i].pd.RegMR(m, 0, size, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead, func(r verbs.MR, err error) {
			if err != nil {
				t.Fatal(err)
			}
			mrs[i] = r
		})
	}
	l.settle(t, func() bool { return mrs[0] != nil && mrs[1] != nil })
	return mems, mrs
}

// Whatever operation, pieces, offsets and losses: what arrives is what was stamped, where it belongs, and nothing else
// has changed.
func TestWhatWasStampedArrivesAsItWouldInBytes(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		l := profiled(nil)
		config := l.config
		l.config = func(c *Config) { config(c); c.Phantom = true }
		p := l.pairOf(t, verbs.RC, 1<<20, nil)
		const size = 200_000
		mems, mrs := phantoms(t, l, p, size)
		if seed%2 == 1 {
			l.wires[0].lose, l.wires[1].lose = 0.02, 0.02
		}
		const there, here = 7, 9 // streams
		mems[0].Stamp(0, size, here, 5_000_000)
		mems[1].Stamp(0, size, there, 3_000_000)
		n, far := 1+rng.IntN(60_000), rng.IntN(100_000)
		// Three pieces of the near memory, in an order of their own.
		cut := []int{0, rng.IntN(n + 1), n}
		sgl := []verbs.SGE{
			{Addr: mems[0].Addr() + 100_000, Length: uint32(cut[1]), LKey: mrs[0].LKey()},
			{Addr: mems[0].Addr() + 10, Length: uint32(n - cut[1]), LKey: mrs[0].LKey()},
		}
		near := func(stream uint64, off uint64) int { // where the near pieces differ from a stream
			if i := mems[0].Differs(100_000, cut[1], stream, off); i >= 0 {
				return i
			}
			if i := mems[0].Differs(10, n-cut[1], stream, off+uint64(cut[1])); i >= 0 {
				return cut[1] + i
			}
			return -1
		}
		wr := verbs.SendWR{Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: sgl, RemoteAddr: mems[1].Addr() + uint64(far), RKey: mrs[1].RKey()}
		switch rng.IntN(3) {
		case 0:
			wr.Op = verbs.OpRDMARead
		case 1:
			wr.Op = verbs.OpSend
			if err := p[1].qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{{Addr: mems[1].Addr() + uint64(far), Length: uint32(n + 5), LKey: mrs[1].LKey()}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		if wcs := l.await(t, p[0], 1); wcs[0].Status != verbs.Success {
			t.Fatalf("seed %d: %v: %v", seed, wr.Op, wcs[0].Status)
		}
		if wr.Op == verbs.OpRDMARead {
			if i := near(there, 3_000_000+uint64(far)); i >= 0 {
				t.Errorf("seed %d: READ: byte %d of %d is wrong", seed, i, n)
			}
			if i := mems[1].Differs(0, size, there, 3_000_000); i >= 0 {
				t.Errorf("seed %d: READ changed its source at %d", seed, i)
			}
			continue
		}
		if i := mems[1].Differs(far, cut[1], here, 5_100_000); i >= 0 {
			t.Errorf("seed %d: %v: byte %d of %d is wrong", seed, wr.Op, i, n)
		}
		if i := mems[1].Differs(far+cut[1], n-cut[1], here, 5_000_010); i >= 0 {
			t.Errorf("seed %d: %v: byte %d of %d is wrong", seed, wr.Op, cut[1]+i, n)
		}
		if mems[1].Differs(0, far, there, 3_000_000) >= 0 || mems[1].Differs(far+n, size-far-n, there, 3_000_000+uint64(far+n)) >= 0 {
			t.Errorf("seed %d: %v of %d bytes to %d changed more", seed, wr.Op, n, far)
		}
	}
}

// Transport bugs that bytes would show show in phantom memory as well.
func TestPhantomMemoryShowsWhatATransportDoesWrong(t *testing.T) {
	for name, c := range map[string]struct {
		bug Bugs
		op  verbs.Opcode
	}{
		"the last packet is not placed":    {BugShortLast, verbs.OpRDMAWrite},
		"READ responses at a wrong offset": {BugReadOffset, verbs.OpRDMARead},
	} {
		wrong := false
		for seed := range uint64(20) {
			l := newLab(false)
			l.config = func(c2 *Config) { c2.Phantom, c2.Bugs = true, c.bug }
			p := l.pairOf(t, verbs.RC, 4096, nil)
			mems, mrs := phantoms(t, l, p, 100_000)
			mems[0].Stamp(0, 100_000, 9, 0)
			mems[1].Stamp(0, 100_000, 7, 0)
			l.wires[0].rng, l.wires[1].rng = rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed, 4))
			l.wires[0].lose, l.wires[1].lose = 0.05, 0.05
			wr := verbs.SendWR{Op: c.op, Flags: verbs.Signaled, RemoteAddr: mems[1].Addr(), RKey: mrs[1].RKey(),
				SGL: []verbs.SGE{{Addr: mems[0].Addr(), Length: 50_500, LKey: mrs[0].LKey()}}}
			if err := p[0].qp.PostSend(wr); err != nil {
				t.Fatal(err)
			}
			l.await(t, p[0], 1)
			if c.op == verbs.OpRDMARead {
				wrong = wrong || mems[0].Differs(0, 50_500, 7, 0) >= 0
			} else {
				wrong = wrong || mems[1].Differs(0, 50_500, 9, 0) >= 0
			}
		}
		if !wrong {
			t.Errorf("%s: nothing shows it", name)
		}
	}
}

func TestPhantomMemoryIsForThoseWhoAskForItAndNotForAtomics(t *testing.T) {
	l := newLab(false)
	d, err := l.open(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.AllocPhantom(4096, verbs.HostMemory); err == nil || d.Phantom() {
		t.Error("a device that was not made for it gives phantom memory")
	}
	l = newLab(false)
	l.config = func(c *Config) { c.Phantom = true }
	p := l.pairOf(t, verbs.RC, 4096, nil)
	m, err := p[0].AllocPhantom(8, verbs.HostMemory)
	if err != nil {
		t.Fatal(err)
	}
	if m.Bytes() != nil || m.Len() != 8 || !p[0].Phantom() || p[0].mem.Bytes() == nil {
		t.Error("phantom memory has bytes, or other memory has none")
	}
	refused := make(chan error, 1)
	p[0].pd.RegMR(m, 0, 8, verbs.LocalWrite|verbs.RemoteAtomic, func(_ verbs.MR, err error) { refused <- err })
	l.until(l.v.Now().Add(time.Microsecond))
	if <-refused == nil {
		t.Error("phantom memory is registered for atomics")
	}
	if m.Free() != nil || m.Len() != 0 {
		t.Error("it isn't freed")
	}
}

// Content that comes to a receive whose memory was freed finds nothing there.
func TestContentForFreedMemoryIsLostAndHarmless(t *testing.T) {
	l := newLab(false)
	l.config = func(c *Config) { c.Phantom = true }
	p := l.pairOf(t, verbs.RC, 8192, nil)
	mems, mrs := phantoms(t, l, p, 8192)
	for _, stream := range []uint64{0, 9} {
		mems[0].Stamp(0, 8192, stream, 0)
		if err := p[1].qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{{Addr: mems[1].Addr(), Length: 8192, LKey: mrs[1].LKey()}}}); err != nil {
			t.Fatal(err)
		}
		freed := false
		l.wires[0].tap = func(f *link.Frame) bool { // once the first packet has arrived
			if f.Packet.BTH.Opcode == roce.RCSendLast && !freed && stream == 9 {
				freed = true
				if err := mems[1].Free(); err != nil {
					t.Error(err)
				}
			}
			return true
		}
		wr := verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{{Addr: mems[0].Addr(), Length: 8192, LKey: mrs[0].LKey()}}}
		if err := p[0].qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		l.await(t, p[0], 1)
	}
	// And zeros, which would clear bytes.
	scatter([]sge{{length: 100, mem: &memory{}}}, 0, nil, []link.Extent{{Len: 100}})
}

// Bytes that come to phantom memory are something of their own there, zeros are zeros, and what comes from phantom
// memory leaves bytes as they are.
func TestBytesAndPhantomMemoryMeetWithoutLying(t *testing.T) {
	l := newLab(false)
	l.config = func(c *Config) { c.Phantom = true }
	p := l.pairOf(t, verbs.RC, 8192, nil)
	mems, mrs := phantoms(t, l, p, 8192)
	mems[0].Stamp(0, 8192, 9, 0)
	mems[1].Stamp(0, 8192, 9, 0)
	copy(p[0].mem.bytes[100:], "something")
	write := func(from verbs.SGE, to uint64, key uint32) {
		t.Helper()
		if err := p[0].qp.PostSend(verbs.SendWR{Op: verbs.OpRDMAWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{from}, RemoteAddr: to, RKey: key}); err != nil {
			t.Fatal(err)
		}
		if wc := l.await(t, p[0], 1)[0]; wc.Status != verbs.Success {
			t.Fatal(wc.Status)
		}
	}
	write(p[0].sge(100, 50)[0], mems[1].Addr()+1000, mrs[1].RKey()) // bytes to phantom
	if mems[1].Differs(0, 8192, 9, 0) != 1000 || mems[1].Differs(1050, 7000, 9, 1050) >= 0 || mems[1].Differs(1000, 50, 0, 0) < 0 {
		t.Error("bytes in phantom memory look like what was there, or like zeros")
	}
	write(p[0].sge(4000, 50)[0], mems[1].Addr()+1000, mrs[1].RKey()) // zeros
	if mems[1].Differs(1000, 50, 0, 0) >= 0 {
		t.Error("zeros aren't")
	}
	copy(p[1].mem.bytes, "untouched")
	write(verbs.SGE{Addr: mems[0].Addr(), Length: 50, LKey: mrs[0].LKey()}, p[1].mem.addr, p[1].mr.was) // phantom to bytes
	if string(p[1].mem.bytes[:9]) != "untouched" {
		t.Error("content became bytes")
	}
}
