package packet

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
)

// inKernel does what flat.go says, with nothing but the bytes of the flat form: what a program in C would.
type inKernel struct {
	rules, entries []byte
	lists          []uint16
	index          map[[KeyLen]byte]int
	passes         []uint32
	rounds         []struct{ next, n uint32 }
	counts         []Count
	seed           uint64
	window         uint32
}

func newInKernel(p *Program, conns []Connection) *inKernel {
	t := p.NewTable()
	k := &inKernel{rules: p.Encode(nil), index: map[[KeyLen]byte]int{}, counts: make([]Count, p.Events), seed: p.Seed, window: p.Window}
	for i := range conns {
		for _, key := range t.Add(&conns[i]) {
			k.index[[KeyLen]byte(key.Encode(nil))] = int(t.Find(key))
		}
	}
	for i := range t.Entries {
		k.entries = t.Entries[i].Encode(k.entries)
	}
	k.lists, k.passes = t.Lists, make([]uint32, t.Passes)
	for range t.Rounds {
		k.rounds = append(k.rounds, struct{ next, n uint32 }{0, 1})
	}
	return k
}

func (k *inKernel) look(f *Facts) (v Verdict) {
	le := binary.LittleEndian
	e := k.entries
	if f.RoCE {
		key := Key{f.Dst, f.DestQP}
		e = e[EntryLen*k.index[[KeyLen]byte(key.Encode(nil))]:]
	}
	e = e[:EntryLen]
	v.Flow = le.Uint32(e[48:])
	o := f.classify()
	var psn, pass, turn uint32
	if o.stream < streams && v.Flow != 0 {
		base := le.Uint32(e[12:])
		if o.stream == 0 {
			base = le.Uint32(e[8:])
		}
		psn = (uint32(f.PSN) - base) & 0xffffff
		if at := int32(le.Uint32(e[16+4*int(o.stream):])); at >= 0 {
			p := &k.passes[uint32(at)+psn%k.window]
			if *p == 0 || *p>>8 != psn {
				*p = psn << 8
			}
			if *p&255 < 255 {
				*p++
			}
			pass = *p & 255
		}
		if at := int32(le.Uint32(e[32+4*int(o.stream):])); at >= 0 {
			r := &k.rounds[at]
			if psn != r.next {
				r.n++
			} else if o.position&First != 0 {
				r.n = 1
			}
			r.next, turn = (psn+1)&0xffffff, r.n
		}
	}
	list, n := le.Uint32(e), le.Uint32(e[4:])
	for _, i := range k.lists[list : list+n] {
		r := k.rules[RuleLen*int(i):][:RuleLen]
		if le.Uint32(r)&uint32(o.class) == 0 || r[4]&uint8(o.position) == 0 || le.Uint64(r[8:])>>(f.TrafficClass>>2)&1 == 0 || r[6]>>(f.TrafficClass&3)&1 == 0 {
			continue
		}
		if flags := r[7]; flags != 0 {
			within := flags&1 == 0
			for j := range 4 {
				within = within || le.Uint32(r[16+8*j:]) <= psn && psn <= le.Uint32(r[20+8*j:])
			}
			count := pass
			if flags&4 != 0 {
				count = turn
			}
			if o.stream >= streams || !within || flags&2 != 0 && le.Uint32(r[48:])>>(min(count, 32)-1)&1 == 0 {
				continue
			}
		}
		event := le.Uint16(r[72:])
		c := &k.counts[event]
		c.Seen++
		first, last, every, threshold := le.Uint32(r[52:]), le.Uint32(r[56:]), le.Uint32(r[60:]), le.Uint64(r[64:])
		if first != 0 && (c.Seen < uint64(first) || last != math.MaxUint32 && c.Seen > uint64(last)) || every != 0 && c.Seen%uint64(every) != 0 ||
			threshold != math.MaxUint64 && draw(k.seed, uint64(event), c.Seen-1) >= threshold {
			continue
		}
		if c.Hits++; v.Do == 0 {
			v.Event = event
		}
		v.add(&Rule{Do: le.Uint16(r[74:]), Part: r[76], SetDSCP: r[77], Truncate: le.Uint16(r[78:]), Hold: le.Uint16(r[80:]), Copies: le.Uint16(r[82:]),
			Delay: le.Uint64(r[88:]), AtMost: le.Uint64(r[96:])})
		if v.Do&DoDrop != 0 {
			break
		}
	}
	return v
}

// The flat form has all that a matcher knows, and flat.go says how to use it.
func TestTheFlatFormDoesWhatTheMatcherDoes(t *testing.T) {
	for seed := range uint64(800) {
		d := drawer{rand.New(rand.NewPCG(seed, 2))}
		events, conns := d.events(), d.connections()
		m, _ := both(t, events, seed, 16)
		for i := range conns {
			m.Connect(&conns[i])
		}
		k := newInKernel(m.prog, conns)
		ps := &packets{d: d, conns: conns, next: map[int]int{}}
		for n := range 60 {
			f := ps.draw()
			if got, want := k.look(&f), m.Look(&f); got != want {
				t.Fatalf("seed %d, packet %d %+v: flat %+v, matcher %+v; events %+v", seed, n, f, got, want, events)
			}
		}
	}
}

// The bytes themselves are agreed with programs that aren't compiled with this package: a change here is one there.
func TestTheFlatFormIsAgreed(t *testing.T) {
	p, err := Compile([]Event{{
		Match: Match{QP: one(0), PSN: Set{{5, 5}, {7, 9}}, Iteration: Set{{1, 3}}, Class: Classes{Data}, Message: Parts{Last}, DSCP: one(26), ECN: ECNs{ECN(roce.ECT0)},
			Direction: Forward, Ordinal: Set{{2, 10}}, Every: 3, Probability: 0.25},
		Do: Do{{Verb: MarkCE}, {Verb: SetDSCP, N: 8}, {Verb: Corrupt, Part: ICRC}, {Verb: Truncate, N: 64}, {Verb: Duplicate, N: 2}, {Verb: Hold, N: 3, Time: time.Millisecond}},
	}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	golden := func(what string, b []byte, size int, want string) {
		t.Helper()
		if got := hex.EncodeToString(b); got != want || len(b) != size {
			t.Errorf("%s has %d bytes, want %d:\ngot  %s\nwant %s", what, len(b), size, got, want)
		}
	}
	golden("a rule", p.Encode(nil), RuleLen, "0b000000"+"04010403"+"0000000400000000"+
		"0500000005000000"+"0700000009000000"+"0100000000000000"+"0100000000000000"+
		"07000000"+"02000000"+"0a000000"+"03000000"+"0000000000000040"+
		"0000"+"b601"+"02"+"08"+"4000"+"0300"+"0200"+"00000000"+"0000000000000000"+"40420f0000000000")
	c := Connection{From: End{Addr: addr(1), QPN: 0x11, PSN: 0xfffff0}, To: End{Addr: addr(2), QPN: 0x12, PSN: 3}}
	table := p.NewTable()
	keys := table.Add(&c)
	golden("a key", keys[0].Encode(nil), KeyLen, "00000000000000000000ffff0a000002"+"12000000")
	golden("an entry", table.Entries[table.Find(keys[0])].Encode(nil), EntryLen, "0000000001000000"+"f0ffff00"+"03000000"+
		"00000000"+"00200000"+"ffffffff"+"ffffffff"+"ffffffffffffffffffffffffffffffff"+"01000000"+"00000000")
}
