//go:build linux

package tc

import (
	"encoding/binary"

	"github.com/rocebed/rocebed/testbed/kernel/nl"
)

// Report is a qdisc or class as the kernel has it, with its counters.
type Report struct {
	Object
	Stats Stats
}

// Stats are the counters of a qdisc or class.
type Stats struct {
	Bytes, Packets uint64 // sent
	Drops          uint64
	Overlimits     uint64
	Requeues       uint64
	QueuePackets   uint64 // waiting now
	QueueBytes     uint64
	// Marked is red's: packets it marked, by probability and because the queue was above Max.
	Marked, MarkedByChance uint64
}

// unknown is a qdisc or class of a kind that we don't make.
type unknown struct{ kind string }

func (u unknown) Kind() string      { return u.kind }
func (unknown) options(*nl.Batch)   {}
func (unknown) sameAs(s Spec) error { return differs("kind", "one of ours", s.Kind()) }

// The statistics of include/uapi/linux/gen_stats.h.
const (
	statsBasic = 1
	statsQueue = 3
	statsApp   = 4
	statsPkt64 = 8
)

// parse reads an RTM_NEWQDISC or RTM_NEWTCLASS payload.
func parse(payload []byte, class bool) (ifindex int, r Report, ok bool) {
	if len(payload) < tcmsgLen {
		return 0, r, false
	}
	ifindex, r.ID, r.Parent = header(payload)
	r.Class = class
	a := nl.Attrs(payload[tcmsgLen:])
	kind, options := nl.StringAt(a[tcaKind]), a[tcaOptions]
	switch {
	case kind == "htb" && class:
		r.Spec = parseHTBClass(nl.Attrs(options))
		// The kernel reports a class without a parent class under TC_H_ROOT; we name its qdisc.
		if r.Parent == Root {
			r.Parent = r.ID &^ 0xffff
		}
	case kind == "htb":
		r.Spec = parseHTB(nl.Attrs(options))
	case kind == "red" && !class:
		r.Spec = parseRED(nl.Attrs(options))
	case kind == "bfifo" && !class && len(options) >= 4:
		r.Spec = FIFO{Limit: binary.NativeEndian.Uint32(options)}
	case kind == "netem" && !class:
		r.Spec = parseNetem(options)
	}
	if r.Spec == nil {
		r.Spec = parseEngine(kind)
	}
	if r.Spec == nil {
		r.Spec = unknown{kind}
	}
	r.Stats = parseStats(nl.Attrs(a[tcaStats2]), kind)
	return ifindex, r, true
}

func parseStats(a map[uint16][]byte, kind string) (s Stats) {
	if v := a[statsBasic]; len(v) >= 12 {
		s.Bytes, s.Packets = nl.U64At(v), uint64(nl.U32At(v[8:]))
	}
	if v := a[statsPkt64]; len(v) >= 8 {
		s.Packets = nl.U64At(v)
	}
	if v := a[statsQueue]; len(v) >= 20 {
		s.QueuePackets, s.QueueBytes = uint64(nl.U32At(v)), uint64(nl.U32At(v[4:]))
		s.Drops, s.Requeues, s.Overlimits = uint64(nl.U32At(v[8:])), uint64(nl.U32At(v[12:])), uint64(nl.U32At(v[16:]))
	}
	// struct tc_red_xstats: early, pdrop, other, marked.
	if v := a[statsApp]; kind == "red" && len(v) >= 16 {
		s.MarkedByChance, s.Marked = uint64(nl.U32At(v)), uint64(nl.U32At(v[12:]))
	}
	return s
}
