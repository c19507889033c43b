package packet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rocebed/rocebed/datapath/roce"
)

// Whatever a file says of events, it is refused or can be compiled and run.
func FuzzEvents(f *testing.F) {
	f.Add("events: [{match: {qp: 0, psn: 5, iteration: 1..3}, do: drop}]")
	f.Add("events: [{match: {class: [ack, 'nak:seq'], ecn: ce, every: 2}, do: [mark-ce, hold 3 1ms]}]")
	f.Add("data-pkt-events: [{qpn: 0, psn: 4, type: ecn, iter: 1}]")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := read(t, text)
		if err != nil {
			return
		}
		events := got.Events
		if ValidateLumina("x", got.Lumina) == nil {
			for _, l := range got.Lumina {
				events = append(events, l.Event())
			}
		}
		p, err := Compile(events, 1)
		if err != nil {
			return
		}
		if n := len(p.Encode(nil)); n != RuleLen*len(p.Rules) {
			t.Fatalf("%d rules are %d bytes", len(p.Rules), n)
		}
		d := drawer{rand.New(rand.NewPCG(uint64(len(text)), 3))}
		conns := d.connections()
		m := NewMatcher(p)
		for i := range conns {
			m.Connect(&conns[i])
		}
		ps := &packets{d: d, conns: conns, next: map[int]int{}}
		for range 20 {
			facts := ps.draw()
			m.Look(&facts)
		}
	})
}

// Whatever packets come, matcher, oracle and flat form agree.
func FuzzMatcher(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2, 3, 250})
	f.Add(uint64(77), bytes.Repeat([]byte{7, 9}, 40))
	f.Fuzz(func(t *testing.T, seed uint64, trace []byte) {
		d := drawer{rand.New(rand.NewPCG(seed, 4))}
		events, conns := d.events(), d.connections()
		m, o := both(t, events, seed, 8)
		for i := range conns {
			m.Connect(&conns[i])
		}
		o.conns = conns
		k := newInKernel(m.prog, conns)
		ops := []roce.Opcode{0x06, 0x07, 0x08, 0x0a, 0x11, 0x0d, 0x0c, 0x81}
		for i, b := range trace[:min(len(trace), 200)] {
			c := &conns[int(b)%len(conns)]
			fact := Facts{Dst: c.To.Addr, DestQP: c.To.QPN, PSN: c.From.PSN.Add(int(b >> 4)), TrafficClass: 104 | b&3, RoCE: b != 255}
			fact.Opcode = ops[int(b)*7%len(ops)]
			got, flat, want := m.Look(&fact), k.look(&fact), o.look(&fact)
			if flat != got {
				t.Fatalf("packet %d: flat %+v, matcher %+v", i, flat, got)
			}
			if got.Flow = 0; got != want {
				t.Fatalf("packet %d: matcher %+v, oracle %+v", i, got, want)
			}
		}
	})
}
