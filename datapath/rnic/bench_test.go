package rnic

import (
	"testing"

	"github.com/rocebed/rocebed/workloads/verbs"
)

// BenchmarkWrite moves messages of 2 MB by RC WRITE between two devices over a wire that costs nothing
// but its event. An op is a data packet.
func BenchmarkWrite(b *testing.B) { benchmark(b, verbs.OpRDMAWrite, 2<<20) }

// BenchmarkRead is the same by RC READ.
func BenchmarkRead(b *testing.B) { benchmark(b, verbs.OpRDMARead, 2<<20) }

// BenchmarkSmallWrites is messages of one short packet each.
func BenchmarkSmallWrites(b *testing.B) { benchmark(b, verbs.OpRDMAWrite, 64) }

// BenchmarkStages is BenchmarkWrite with the hardware's stages of a profile; memory is phantom, so that no byte is copied.
func BenchmarkStages(b *testing.B) {
	for _, name := range []string{"ideal", "default", "connectx-like"} {
		b.Run(name, func(b *testing.B) {
			benchmarkWith(b, verbs.OpRDMAWrite, 2<<20, func(c *Config) {
				c.Profile, _ = ProfileNamed(name)
				c.Profile.AckRequestEvery, c.Phantom = 4, true
			})
		})
	}
}

func benchmark(b *testing.B, op verbs.Opcode, size int) {
	benchmarkWith(b, op, size, func(c *Config) { c.Profile.AckRequestEvery, c.Profile.MaxUnacked = 4, 256 })
}

func benchmarkWith(b *testing.B, op verbs.Opcode, size int, config func(c *Config)) {
	l := newLab(false)
	l.config = config
	e := l.pairOf(b, verbs.RC, size, func(_ int, _ *verbs.QPInit, a *verbs.QPAttr) {
		a.PathMTU, a.Timeout, a.MaxRDAtomic, a.MaxDestRDAtomic = 4096, 14, 16, 16
	})
	wr := verbs.SendWR{Op: op, Flags: verbs.Signaled, SGL: e[0].sge(0, size), RemoteAddr: e[1].mem.addr, RKey: e[1].mr.was}
	if e[0].Phantom() {
		mems, mrs := phantoms(b, l, e, size)
		wr.SGL, wr.RemoteAddr, wr.RKey = []verbs.SGE{{Addr: mems[0].Addr(), Length: uint32(size), LKey: mrs[0].LKey()}}, mems[1].Addr(), mrs[1].RKey()
		mems[0].Stamp(0, size, 7, 0)
	}
	packets := max(1, size/4096)
	const deep = 16
	var wcs [deep]verbs.WC
	posted, done := 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for done*packets < b.N {
		for posted-done < deep {
			if err := e[0].qp.PostSend(wr); err != nil {
				b.Fatal(err)
			}
			posted++
		}
		l.v.Step()
		n := e[0].cq.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			if wc.Status != verbs.Success {
				b.Fatal(wc.Status)
			}
		}
		done += n
	}
	b.StopTimer()
	b.ReportMetric(float64(done*packets)/b.Elapsed().Seconds(), "packets/s")
}
