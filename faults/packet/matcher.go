package packet

import (
	"math"
	"time"
)

// Verdict is what becomes of a packet. The zero value lets it pass as it is.
//
// What is done is done in this order: SetDSCP, then MarkCE or ClearECT, then Corrupt, then Truncate; then Duplicate's copies are made, which are
// looked at by no event; Delay and Hold keep the copies with the packet. A damaged packet's ICRC is wrong; a changed DSCP or ECN field is
// not covered by it, and IPv4's checksum is set right.
type Verdict struct {
	Do       uint16 // Has
	Part     uint8  // Corrupt: 0 payload, 1 header, 2 ICRC
	DSCP     uint8
	Truncate uint16
	Copies   uint16
	Hold     uint16 // packets of the same Flow that must have gone on before this one does
	Event    uint16 // the first that hit
	Flow     uint32 // a number for the packet's connection and direction; 0: unknown
	Delay    time.Duration
	AtMost   time.Duration // with Hold; 0: without end
}

// Bits of Verdict.Do and Rule.Do, in the order of Verbs.
const (
	DoDrop = 1 << iota
	DoCorrupt
	DoMarkCE
	DoClearECT
	DoSetDSCP
	DoDuplicate
	DoDelay
	DoHold
	DoTruncate
)

// Matcher runs a program at one place. It belongs to one goroutine.
type Matcher struct {
	prog   *Program
	table  *Table
	passes []uint32 // relative PSN << 8 | pass, up to 255
	rounds []round
	counts []Count
	slots  []slot // of the hash table, a power of two
}

// round is where a stream is in Lumina's counting.
type round struct{ next, n uint32 }

// Count is what an event has seen.
type Count struct {
	Seen uint64 // packets that its match passes, but for ordinal, every and probability
	Hits uint64 // packets that it did something to
}

// NewMatcher makes a matcher that knows no connection yet.
func NewMatcher(p *Program) *Matcher {
	m := &Matcher{prog: p, table: p.NewTable(), counts: make([]Count, p.Events)}
	m.rehash(16)
	return m
}

// Connect tells of a connection. Of packets that came before nothing is known.
func (m *Matcher) Connect(c *Connection) {
	keys := m.table.Add(c)
	m.passes = grown(m.passes, m.table.Passes)
	for len(m.rounds) < m.table.Rounds {
		m.rounds = append(m.rounds, round{next: 0, n: 1})
	}
	if 2*len(m.table.Entries) > len(m.slots) {
		m.rehash(4 * len(m.slots))
	}
	for _, k := range keys {
		m.insert(k, m.table.Find(k))
	}
}

func grown(s []uint32, n int) []uint32 {
	if n <= len(s) {
		return s
	}
	return append(s, make([]uint32, n-len(s))...)
}

// Counts are the events', in their order. The slice is the matcher's own.
func (m *Matcher) Counts() []Count { return m.counts }

// Hits are all events' hits together.
func (m *Matcher) Hits() (n uint64) {
	for _, c := range m.counts {
		n += c.Hits
	}
	return n
}

// Look counts a packet and says what becomes of it.
func (m *Matcher) Look(f *Facts) (v Verdict) {
	e := &m.table.Entries[0]
	if f.RoCE {
		e = &m.table.Entries[m.find(f)]
	}
	v.Flow = e.Flow
	o := f.classify()
	var psn, pass, turn uint32
	if o.stream < streams && e.Flow != 0 {
		base := e.Base[1]
		if o.stream == requests {
			base = e.Base[0]
		}
		psn = (uint32(f.PSN) - base) & MaxPSN
		if at := e.Passes[o.stream]; at >= 0 {
			pass = m.pass(uint32(at), psn)
		}
		if at := e.Rounds[o.stream]; at >= 0 {
			turn = m.rounds[at].turn(psn, o.position&First != 0)
		}
	}
	for _, i := range m.table.Lists[e.List : e.List+e.Len] {
		r := &m.prog.Rules[i]
		if r.Classes&o.class == 0 || r.Positions&o.position == 0 || r.DSCP>>(f.TrafficClass>>2)&1 == 0 || r.ECN>>(f.TrafficClass&3)&1 == 0 ||
			r.Flags != 0 && !r.sequenced(&o, psn, pass, turn) {
			continue
		}
		c := &m.counts[r.Event]
		c.Seen++
		if !r.chosen(m.prog.Seed, c.Seen) {
			continue
		}
		if c.Hits++; v.Do == 0 {
			v.Event = r.Event
		}
		v.add(r)
		if r.Do&DoDrop != 0 {
			break
		}
	}
	return v
}

// pass counts a pass of a PSN.
func (m *Matcher) pass(at, psn uint32) uint32 {
	p := &m.passes[at+psn&(m.prog.Window-1)]
	if *p == 0 || *p>>8 != psn {
		*p = psn << 8
	}
	if *p&0xff < 0xff {
		*p++
	}
	return *p & 0xff
}

// turn is the round that a packet is in.
func (r *round) turn(psn uint32, first bool) uint32 {
	if psn != r.next {
		r.n++
	} else if first {
		r.n = 1
	}
	r.next = (psn + 1) & MaxPSN
	return r.n
}

// sequenced judges what needs a PSN.
func (r *Rule) sequenced(o *opcode, psn, pass, turn uint32) bool {
	if o.stream >= streams {
		return false
	}
	if r.Flags&FlagPSN != 0 {
		found := false
		for _, x := range &r.PSN {
			found = found || x.From <= psn && psn <= x.To
		}
		if !found {
			return false
		}
	}
	if r.Flags&FlagPasses != 0 {
		if r.Flags&FlagRounds != 0 {
			pass = turn
		}
		return r.Passes>>(min(pass, MaxIteration+1)-1)&1 != 0
	}
	return true
}

// chosen judges an event's n-th packet by its number.
func (r *Rule) chosen(seed, n uint64) bool {
	switch {
	case r.First != 0 && (n < uint64(r.First) || n > uint64(r.Last) && r.Last != math.MaxUint32):
		return false
	case r.Every != 0 && n%uint64(r.Every) != 0:
		return false
	}
	return r.Threshold == math.MaxUint64 || draw(seed, uint64(r.Event), n-1) < r.Threshold
}

// draw is faults.Draw: SplitMix64 (Steele, Lea and Flood 2014, figure 15).
func draw(seed, purpose, ordinal uint64) uint64 {
	const gamma, mixA, mixB = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	z := seed + purpose*mixA + (ordinal+1)*gamma
	z = (z ^ z>>30) * mixA
	z = (z ^ z>>27) * mixB
	return z ^ z>>31
}

// add puts what a rule does to what others did before it: delays add up, copies too up to MaxCopies, the longer hold and the shorter rest count, of
// the rest the later.
func (v *Verdict) add(r *Rule) {
	v.Do |= r.Do
	if r.Do&DoCorrupt != 0 {
		v.Part = r.Part
	}
	if r.Do&DoMarkCE != 0 {
		v.Do &^= DoClearECT
	}
	if r.Do&DoClearECT != 0 {
		v.Do &^= DoMarkCE
	}
	if r.Do&DoSetDSCP != 0 {
		v.DSCP = r.SetDSCP
	}
	if r.Do&DoTruncate != 0 && (v.Truncate == 0 || r.Truncate < v.Truncate) {
		v.Truncate = r.Truncate
	}
	v.Copies = min(v.Copies+r.Copies, MaxCopies)
	v.Delay += time.Duration(r.Delay)
	if r.Hold > v.Hold {
		v.Hold, v.AtMost = r.Hold, time.Duration(r.AtMost)
	}
}

// Has says whether a verb is among what is done.
func (v *Verdict) Has(verb Verb) bool { return v.Do&verb.bit() != 0 }
