package packet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// both makes a matcher and an oracle of the same events; connections come to both when the test says so.
func both(t testing.TB, events []Event, seed uint64, window int) (*Matcher, *oracle) {
	t.Helper()
	p, err := Compile(events, seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetWindow(window); err != nil {
		t.Fatal(err)
	}
	return NewMatcher(p), &oracle{events: events, seed: seed, window: p.Window, counts: make([]Count, len(events))}
}

// Whatever the events and the packets, the matcher's verdicts and counts are those that follow from the events as they are
// written and all packets of the past.
func TestTheMatcherDoesWhatTheEventsSay(t *testing.T) {
	hits := 0
	for seed := range uint64(1200) {
		d := drawer{rand.New(rand.NewPCG(seed, 1))}
		events, conns := d.events(), d.connections()
		m, o := both(t, events, seed, pick(d, 4, 16, DefaultWindow))
		for i := range conns {
			m.Connect(&conns[i])
		}
		o.conns = conns
		ps := &packets{d: d, conns: conns, next: map[int]int{}}
		for n := range 80 {
			f := ps.draw()
			got, want := m.Look(&f), o.look(&f)
			got.Flow = 0
			if got != want {
				t.Fatalf("seed %d, packet %d %+v of %+v:\ngot  %+v\nwant %+v\nevents %+v", seed, n, f, conns, got, want, events)
			}
			if got.Do != 0 {
				hits++
			}
		}
		if !slices.Equal(m.Counts(), o.counts) {
			t.Fatalf("seed %d: counts %v, want %v", seed, m.Counts(), o.counts)
		}
	}
	if hits < 4_000 {
		t.Errorf("only %d packets were hit: the test says little", hits)
	}
}

func TestLookingAtAPacketAllocatesNothing(t *testing.T) {
	d := drawer{rand.New(rand.NewPCG(3, 1))}
	conns := d.connections()
	m, _ := both(t, []Event{
		{Match{PSN: Set{{5, 9}}, Iteration: Set{{1, 2}}}, Do{{Verb: Drop}}},
		{Match{Class: Classes{Ack}, Every: 3}, Do{{Verb: Delay, Time: 5}}},
		{Match{Round: Set{{2, 2}}, Probability: 0.5}, Do{{Verb: MarkCE}}},
	}, 1, DefaultWindow)
	for i := range conns {
		m.Connect(&conns[i])
	}
	ps := &packets{d: d, conns: conns, next: map[int]int{}}
	var all []Facts
	for range 1000 {
		all = append(all, ps.draw())
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() { m.Look(&all[i%len(all)]); i++ }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if m.Hits() == 0 {
		t.Error("nothing was hit")
	}
}

// What is counted doesn't grow with the packets.
func TestMemoryIsBoundedByConnections(t *testing.T) {
	m, _ := both(t, []Event{{Match{Iteration: Set{{2, 2}}, Class: Classes{Write}}, Do{{Verb: Drop}}}}, 1, 64)
	d := drawer{rand.New(rand.NewPCG(4, 1))}
	conns := d.connections()
	for i := range conns {
		m.Connect(&conns[i])
	}
	if want := 2 * 64 * len(conns); len(m.passes) != want {
		t.Errorf("%d counters for %d connections, want %d: a window for each direction's requests", len(m.passes), len(conns), want)
	}
}

func TestAConnectionThatIsMadeAnewIsCountedAnew(t *testing.T) {
	d := drawer{rand.New(rand.NewPCG(5, 1))}
	c := d.connections()[0]
	m, _ := both(t, []Event{{Match{PSN: one(0), Iteration: one(1)}, Do{{Verb: Drop}}}}, 1, 64)
	first := func() bool {
		f := Facts{Dst: c.To.Addr, DestQP: c.To.QPN, PSN: c.From.PSN, Opcode: 0x0a, RoCE: true}
		v := m.Look(&f)
		return v.Has(Drop)
	}
	m.Connect(&c)
	if !first() || first() {
		t.Error("the first pass alone is dropped")
	}
	c.From.PSN = c.From.PSN.Add(100)
	if m.Connect(&c); !first() || first() {
		t.Error("of the new connection the first pass alone is dropped")
	}
}

func BenchmarkLook(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(map[int]string{1: "1 event", 16: "16 events", 256: "256 events"}[n], func(b *testing.B) {
			var events []Event
			for i := range n {
				events = append(events, Event{Match{PSN: one(uint32(i * 10)), Iteration: one(1)}, Do{{Verb: Drop}}})
			}
			m, _ := both(b, events, 1, DefaultWindow)
			d := drawer{rand.New(rand.NewPCG(6, 1))}
			conns := d.connections()
			for i := range conns {
				m.Connect(&conns[i])
			}
			f := Facts{Dst: conns[0].To.Addr, DestQP: conns[0].To.QPN, Opcode: 0x07, RoCE: true, TrafficClass: 106}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.PSN = conns[0].From.PSN.Add(i)
				m.Look(&f)
			}
		})
	}
}
