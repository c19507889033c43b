package asic

import (
	"testing"

	"github.com/rocebed/rocebed/datapath/dcqcn"
	"github.com/rocebed/rocebed/datapath/link"
	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/datapath/roce"
)

// sinkWire gives frames back to where the bench takes them from.
type sinkWire struct{ pool *link.Pool }

func (w *sinkWire) Send(f *link.Frame, _ loop.Time) { w.pool.Put(f) }

func quietBench(tb testing.TB, n int, tune func(*Config)) *bench {
	return newBench(tb, n, 100*gig, func(c *Config) {
		for i := range c.Ports {
			c.Ports[i].Wire = &sinkWire{c.Frames}
		}
		if tune != nil {
			tune(c)
		}
	})
}

// stream is what feeds a benchmark: frames for one port, on a clock that it moves by stepping its own timer.
type stream struct {
	b     *bench
	timer loop.Timer
	every loop.Duration
	left  int
	burst int // frames at a time, from ports 0, 1, …
	to    uint32
}

func (s *stream) start() {
	s.timer.Fire = s.tick
	s.b.loop.Arm(&s.timer, s.b.clock.Now())
	for s.left > 0 {
		s.b.clock.Step()
	}
}

func (s *stream) tick() {
	for i := range s.burst {
		f := s.b.frame(s.to, 26, 4158)
		f.Flow = uint32(s.left)
		f.Port = uint16(i)
		s.b.Receive(f)
		s.left--
	}
	if s.left > 0 {
		s.b.loop.Arm(&s.timer, s.b.clock.Now().Add(s.every))
	}
}

// The cost of a frame with the feeding timer's event, which is what its arrival costs in a simulation.
func BenchmarkAFrameThroughAnIdlePort(b *testing.B) {
	s := &stream{b: quietBench(b, 4, nil), every: 400, burst: 1, to: 3, left: b.N}
	b.ReportAllocs()
	b.ResetTimer()
	s.start()
}

func BenchmarkAFrameOverEqualCostPorts(b *testing.B) {
	s := &stream{b: quietBench(b, 9, nil), every: 400, burst: 1, to: spread0, left: b.N}
	b.ReportAllocs()
	b.ResetTimer()
	s.start()
}

// Two ports send to one at half its rate each, so that every other frame waits for the one before.
func BenchmarkAFrameThroughABusyPort(b *testing.B) {
	s := &stream{b: quietBench(b, 4, nil), every: 670, burst: 2, to: 3, left: b.N}
	b.ReportAllocs()
	b.ResetTimer()
	s.start()
}

// Two ports send to one at its whole rate each, and stop while they are paused: the port is never idle.
func BenchmarkAFrameUnderPFC(b *testing.B) {
	bn := newBench(b, 4, 100*gig, func(c *Config) {
		m := dcqcn.Marking{Kmin: 100 * dcqcn.KB, Kmax: 400 * dcqcn.KB, Pmax: 0.1}
		c.Settings.Port.Queues[3].ECN = &m
		c.Settings.Port.Groups[3].Alpha, c.Settings.Port.Groups[3].XOFF = 0, 200*dcqcn.KB
	})
	p := &pausedSource{b: bn, left: b.N}
	bn.quiet, bn.onSend = true, p.heard
	b.ReportAllocs()
	b.ResetTimer()
	p.start()
	b.StopTimer()
	var pauses uint64
	for i := range bn.ports {
		pauses += bn.ports[i].pauser.Frames[3]
	}
	b.ReportMetric(float64(pauses)/float64(b.N), "pauses/op")
}

// pausedSource sends from ports 0 and 1 to port 3 unless it is paused there.
type pausedSource struct {
	b      *bench
	timer  loop.Timer
	paused [4]bool
	left   int
}

func (p *pausedSource) heard(port int, f *link.Frame, _ loop.Time) {
	if f.Kind == roce.KindPFC {
		p.paused[port] = f.PFC.Quanta[3] > 0
	}
}

func (p *pausedSource) start() {
	p.timer.Fire = p.tick
	p.b.loop.Arm(&p.timer, p.b.clock.Now())
	for p.left > 0 {
		p.b.clock.Step()
	}
}

func (p *pausedSource) tick() {
	for i := range 2 {
		if !p.paused[i] {
			p.b.give(i, p.b.frame(3, 26, 4158))
			p.left--
		}
	}
	p.b.loop.Arm(&p.timer, p.b.clock.Now().Add(335))
}
