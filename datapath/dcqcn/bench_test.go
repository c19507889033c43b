package dcqcn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/loop"
)

// BenchmarkRPCNP is one CNP an operation, a period of α apart, with the increase between.
func BenchmarkRPCNP(b *testing.B) {
	rp := flow(b, "paper", 40*Gbps, nil)
	var now loop.Time
	b.ReportAllocs()
	for b.Loop() {
		now += 60 * us
		rp.OnCNP(now)
	}
}

// BenchmarkRPTimer is one increase an operation, driven by NextTimer.
func BenchmarkRPTimer(b *testing.B) {
	rp := flow(b, "mlx5", 400*Gbps, nil)
	b.ReportAllocs()
	for b.Loop() {
		at, ok := rp.NextTimer()
		if !ok {
			rp.OnCNP(at)
			continue
		}
		rp.OnTimer(at)
	}
}

// BenchmarkRPSentAtLineRate is one packet of a flow that nothing holds back.
func BenchmarkRPSentAtLineRate(b *testing.B) {
	rp := flow(b, "paper", 40*Gbps, nil)
	b.ReportAllocs()
	for b.Loop() {
		rp.OnSent(0, 1000)
	}
}

// BenchmarkRPSentLimited is one packet of a flow that recovers, and the look at its rate.
func BenchmarkRPSentLimited(b *testing.B) {
	rp := flow(b, "paper", 40*Gbps, nil)
	var now loop.Time
	var sum Rate
	b.ReportAllocs()
	for b.Loop() {
		if now += 400; now%(50*us) == 0 {
			rp.OnCNP(now)
		}
		rp.OnSent(now, 1000)
		sum += rp.Rate()
	}
}

// BenchmarkRPCatchUp is the longest catching up: a flow of the mlx5 profile at its least rate
// that sends nothing until it is back at 400 Gb/s, five megabits at a time.
func BenchmarkRPCatchUp(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		rp := flow(b, "mlx5", 400*Gbps, func(p *Params) { p.RateToSetOnFirstCNP = p.RPGMinRate })
		rp.OnCNP(0)
		rp.OnTimer(loop.Time(time.Hour))
		if rp.Limited() {
			b.Fatal("not caught up")
		}
	}
}

// BenchmarkNPMarked is one marked packet, of a thousand flows in turn.
func BenchmarkNPMarked(b *testing.B) {
	np := newNP(b, 50*time.Microsecond, 4096)
	var now loop.Time
	i := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 80
		i++
		np.OnMarked(now, i%1000)
	}
}

// BenchmarkCPMark is one packet that meets a queue between Kmin and Kmax.
func BenchmarkCPMark(b *testing.B) {
	c := CP{named(b, "paper").Marking, rand.NewPCG(1, 2)}
	marks := 0
	b.ReportAllocs()
	for b.Loop() {
		if c.Mark(100 * KB) {
			marks++
		}
	}
}
