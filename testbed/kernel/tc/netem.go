//go:build linux

package tc

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// Netem delays packets; it does nothing else for us. Loss, duplication, corruption and
// overtaking are programs on the cable, which count what they hit. It keeps packets in order, as
// a cable does: one with less delay waits for the one before it. (netem alone would reorder by
// jitter, and whenever its delay is made shorter.)
type Netem struct {
	Delay  time.Duration // wall time, to the nanosecond
	Jitter time.Duration // the distribution's standard deviation, or half its width where uniform
	// Distribution is "" or "uniform", "normal", "pareto" or "paretonormal".
	Distribution string
}

// Kind is "netem".
func (Netem) Kind() string { return "netem" }

const (
	tcaNetemDelayDist = 2
	tcaNetemRate      = 6
	tcaNetemRate64    = 8
	tcaNetemLatency64 = 10
	tcaNetemJitter64  = 11

	// netemLimit is never reached: netem must not drop by itself.
	netemLimit = 1 << 30
	// netemRate, bytes/s, is no limit: a rate is what makes netem wait for the last packet's
	// time (net/sched/sch_netem.c, netem_enqueue). It adds 4 ns to a packet of 4 KB.
	netemRate = 1_000_000_000_000
)

func (q Netem) options(b *nl.Batch) {
	// struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter
	b.U32(0)
	b.U32(netemLimit)
	b.U32(0)
	b.U32(0)
	b.U32(0)
	b.U32(0)
	b.AttrU64(tcaNetemLatency64, uint64(q.Delay))
	b.AttrU64(tcaNetemJitter64, uint64(q.Jitter))
	b.Nest(tcaNetemRate, func() { // struct tc_netem_rate: rate, packet overhead, cell size, cell overhead
		b.U32(math.MaxUint32)
		b.U32(0)
		b.U32(0)
		b.U32(0)
	})
	b.AttrU64(tcaNetemRate64, netemRate)
	if table := DistributionTable(q.Distribution); table != nil {
		b.Nest(tcaNetemDelayDist, func() {
			for _, v := range table {
				b.U16(uint16(v))
			}
		})
	}
}

// netemReport is what the kernel says. It does not say which distribution it has.
type netemReport struct {
	Netem
	limit, loss, gap, duplicate uint32
	rate                        uint64
}

func (q Netem) sameAs(got Spec) error {
	g, ok := got.(netemReport)
	switch {
	case !ok:
		return differs("netem", q.Kind(), got)
	case g.Delay != q.Delay:
		return differs("delay", q.Delay, g.Delay)
	case g.Jitter != q.Jitter:
		return differs("jitter", q.Jitter, g.Jitter)
	case g.limit != netemLimit:
		return differs("limit", netemLimit, g.limit)
	case g.rate != netemRate:
		return differs("rate (bytes/s)", uint64(netemRate), g.rate)
	case g.loss != 0 || g.gap != 0 || g.duplicate != 0:
		return fmt.Errorf("netem impairs (loss %d, gap %d, duplicate %d) though nothing asked it to", g.loss, g.gap, g.duplicate)
	}
	return nil
}

func parseNetem(v []byte) Spec {
	if len(v) < 24 {
		return nil
	}
	e := binary.NativeEndian
	r := netemReport{limit: e.Uint32(v[4:]), loss: e.Uint32(v[8:]), gap: e.Uint32(v[12:]), duplicate: e.Uint32(v[16:])}
	a := nl.Attrs(v[24:])
	r.Delay = time.Duration(nl.U64At(a[tcaNetemLatency64]))
	r.Jitter = time.Duration(nl.U64At(a[tcaNetemJitter64]))
	r.rate = nl.U64At(a[tcaNetemRate64])
	return r
}
