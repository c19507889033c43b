//go:build linux

package tc

import (
	"fmt"
	"math"
	"time"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// tickShift turns nanoseconds into the scheduler's ticks (PSCHED_SHIFT, include/net/pkt_sched.h).
const tickShift = 6

// differs says that a parameter isn't as asked for.
func differs(name string, want, got any) error {
	return fmt.Errorf("%s is %v, not %v", name, got, want)
}

// HTB is the root of a port's tree.
type HTB struct {
	Default uint32 // minor number of the class for what nothing classifies
}

// Kind is "htb".
func (HTB) Kind() string { return "htb" }

// Attributes and structures of include/uapi/linux/pkt_sched.h.
const (
	tcaHTBParms  = 1
	tcaHTBInit   = 2
	tcaHTBRate64 = 6
	tcaHTBCeil64 = 7

	htbVersion    = 3
	rateToQuantum = 10
)

func (q HTB) options(b *nl.Batch) {
	b.Nest(tcaHTBInit, func() { // struct tc_htb_glob
		b.U32(htbVersion)
		b.U32(rateToQuantum)
		b.U32(q.Default)
		b.U32(0)
		b.U32(0)
	})
}

func (q HTB) sameAs(got Spec) error {
	if g, ok := got.(HTB); !ok || g != q {
		return differs("htb", q, got)
	}
	return nil
}

func parseHTB(options map[uint16][]byte) Spec {
	v := options[tcaHTBInit]
	if len(v) < 20 {
		return nil
	}
	return HTB{Default: nl.U32At(v[8:])}
}

// HTBClass is one class of htb.
type HTBClass struct {
	Rate, Ceil        uint64 // bytes/s
	Burst             uint64 // bytes, for both buckets
	Quantum           uint32 // bytes served in turn among equals
	Priority          uint32 // 0 is served first
	Overhead, Minimum uint16 // bytes added to every frame, and the least it is charged
}

// Kind is "htb".
func (HTBClass) Kind() string { return "htb" }

// linkEthernet makes the kernel compute transmission times itself, without tables.
const linkEthernet = 1

// ticks is how long n bytes take at a rate, in the scheduler's ticks.
func ticks(n, bytesPerSecond uint64) uint32 {
	return uint32(min(n*uint64(time.Second)/bytesPerSecond>>tickShift, math.MaxUint32))
}

func (c HTBClass) ratespec(b *nl.Batch, rate uint64) { // struct tc_ratespec
	b.U8(0)
	b.U8(linkEthernet)
	b.U16(c.Overhead)
	b.U16(0)
	b.U16(c.Minimum)
	b.U32(uint32(min(rate, math.MaxUint32)))
}

func (c HTBClass) options(b *nl.Batch) {
	b.Nest(tcaHTBParms, func() { // struct tc_htb_opt
		c.ratespec(b, c.Rate)
		c.ratespec(b, c.Ceil)
		b.U32(ticks(c.Burst, c.Rate))
		b.U32(ticks(c.Burst, c.Ceil))
		b.U32(c.Quantum)
		b.U32(0)
		b.U32(c.Priority)
	})
	if c.Rate > math.MaxUint32 {
		b.AttrU64(tcaHTBRate64, c.Rate)
	}
	if c.Ceil > math.MaxUint32 {
		b.AttrU64(tcaHTBCeil64, c.Ceil)
	}
}

// htbClassReport is what the kernel says of a class: bursts in ticks.
type htbClassReport struct {
	HTBClass
	buffer, ceilBuffer uint32
}

func (c HTBClass) sameAs(got Spec) error {
	g, ok := got.(htbClassReport)
	if !ok {
		return differs("class", c.Kind(), got)
	}
	switch {
	case g.Rate != c.Rate:
		return differs("rate (bytes/s)", c.Rate, g.Rate)
	case g.Ceil != c.Ceil:
		return differs("ceil (bytes/s)", c.Ceil, g.Ceil)
	case g.Priority != c.Priority:
		return differs("priority", c.Priority, g.Priority)
	case g.Overhead != c.Overhead || g.Minimum != c.Minimum:
		return differs("overhead", c.Overhead, g.Overhead)
	case !near(g.buffer, ticks(c.Burst, c.Rate)) || !near(g.ceilBuffer, ticks(c.Burst, c.Ceil)):
		return differs("burst (ticks)", ticks(c.Burst, c.Rate), g.buffer)
	}
	return nil
}

// near allows for the rounding of a value that went to nanoseconds and back.
func near(a, b uint32) bool { return max(a, b)-min(a, b) <= 1 }

func parseHTBClass(options map[uint16][]byte) Spec {
	v := options[tcaHTBParms]
	if len(v) < 44 {
		return nil
	}
	r := htbClassReport{buffer: nl.U32At(v[24:]), ceilBuffer: nl.U32At(v[28:])}
	r.Rate, r.Ceil = uint64(nl.U32At(v[8:])), uint64(nl.U32At(v[20:]))
	r.Overhead, r.Minimum = uint16(nl.U32At(v[0:])>>16), uint16(nl.U32At(v[4:])>>16)
	r.Quantum, r.Priority = nl.U32At(v[32:]), nl.U32At(v[40:])
	if w := nl.U64At(options[tcaHTBRate64]); w != 0 {
		r.Rate = w
	}
	if w := nl.U64At(options[tcaHTBCeil64]); w != 0 {
		r.Ceil = w
	}
	return r
}

// FIFO is a queue of so many bytes that drops at the tail.
type FIFO struct{ Limit uint32 }

// Kind is "bfifo".
func (FIFO) Kind() string { return "bfifo" }

func (q FIFO) options(b *nl.Batch) { b.U32(q.Limit) }

func (q FIFO) sameAs(got Spec) error {
	if g, ok := got.(FIFO); !ok || g != q {
		return differs("bfifo limit", q, got)
	}
	return nil
}

// RED marks packets by the queue's instantaneous length and never drops.
type RED struct {
	Min, Max uint32 // bytes
	MaxP     uint32 // marking probability at Max, in units of 2^-32
}

// Kind is "red".
func (RED) Kind() string { return "red" }

const (
	tcaREDParms = 1
	tcaREDStab  = 2
	tcaREDMaxP  = 3
	tcaREDFlags = 4

	redECN    = 1
	redNoDrop = 8
	redFlags  = redECN | redNoDrop
)

func (q RED) options(b *nl.Batch) {
	b.Nest(tcaREDParms, func() { // struct tc_red_qopt
		// No limit: with one, red would make a queue of its own at every change and lose what
		// is in the one we gave it.
		b.U32(0)
		b.U32(q.Min)
		b.U32(q.Max)
		b.U8(0) // Wlog 0: the average is the last length
		b.U8(0) // Plog; MAX_P counts
		b.U8(0) // Scell_log: idle time in microseconds
		b.U8(0) // flags: all in the attribute, since the kernel refuses some here and some there
	})
	// How far the average shrinks by idle time: at once, so that nothing is remembered.
	stab := make([]byte, 256)
	for i := range stab {
		stab[i] = 31
	}
	b.Attr(tcaREDStab, stab)
	b.AttrU32(tcaREDMaxP, q.MaxP)
	b.Nest(tcaREDFlags, func() { // struct nla_bitfield32: value, selector
		b.U32(redFlags)
		b.U32(redFlags)
	})
}

type redReport struct {
	RED
	flags uint32
	wlog  uint8
}

func (q RED) sameAs(got Spec) error {
	g, ok := got.(redReport)
	switch {
	case !ok:
		return differs("red", q.Kind(), got)
	case g.RED != q:
		return differs("red", q, g.RED)
	case g.flags != redFlags:
		return differs("red flags", redFlags, g.flags)
	case g.wlog != 0:
		return differs("red averaging", 0, g.wlog)
	}
	return nil
}

func parseRED(options map[uint16][]byte) Spec {
	v := options[tcaREDParms]
	if len(v) < 16 {
		return nil
	}
	r := redReport{RED: RED{Min: nl.U32At(v[4:]), Max: nl.U32At(v[8:]), MaxP: nl.U32At(options[tcaREDMaxP])}, wlog: v[12]}
	r.flags = uint32(v[15]) | nl.U32At(options[tcaREDFlags])
	return r
}
