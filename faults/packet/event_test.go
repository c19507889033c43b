package packet

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/topo/strict"
)

// file is what a scenario has of packet events.
type file struct {
	Events []Event  `yaml:"events"`
	Lumina []Lumina `yaml:"data-pkt-events"`
}

func read(t testing.TB, text string) (f file, err error) {
	t.Helper()
	if err := strict.Decode("events.yaml", []byte(text), &f); err != nil {
		return f, err
	}
	return f, Validate("events", f.Events)
}

func TestEventsAreReadAsTheyAreWritten(t *testing.T) {
	f, err := read(t, `
events:
  - match: {workload: w, qp: 0, psn: 5, iteration: 1..3}
    do: drop
  - match: {psn: [1, 3..4, '7..'], class: [ack, 'nak:seq'], direction: reverse, message: [first, last], ecn: ce, dscp: 26, every: 2, ordinal: 3..9, probability: 1%}
    do: [mark-ce, set-dscp 8, corrupt icrc, delay 20us, truncate 64, duplicate]
  - do: hold 3 1ms
  - {match: {class: Data, round: 2}, do: corrupt}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{
		{Match{Workload: "w", QP: one(0), PSN: one(5), Iteration: Set{{1, 3}}}, Do{{Verb: Drop}}},
		{Match{PSN: Set{{1, 1}, {3, 4}, {7, 1<<32 - 1}}, Class: Classes{Ack, NakSequence}, Direction: Reverse, Message: Parts{First, Last}, ECN: ECNs{ECN(roce.CE)},
			DSCP: one(26), Every: 2, Ordinal: Set{{3, 9}}, Probability: 0.01},
			Do{{Verb: MarkCE}, {Verb: SetDSCP, N: 8}, {Verb: Corrupt, Part: ICRC}, {Verb: Delay, Time: 20 * time.Microsecond}, {Verb: Truncate, N: 64}, {Verb: Duplicate, N: 1}}},
		{Match{}, Do{{Verb: Hold, N: 3, Time: time.Millisecond}}},
		{Match{Class: Classes{Data}, Round: one(2)}, Do{{Verb: Corrupt, Part: Payload}}},
	}
	if !reflect.DeepEqual(f.Events, want) {
		t.Errorf("got\n%+v\nwant\n%+v", f.Events, want)
	}
}

func TestWhatAnEventCannotBeIsSaidWithItsPlaceAndWhatWouldDo(t *testing.T) {
	for text, want := range map[string]string{
		"{do: dorp}":                                  `events.yaml:1:15: events[0].do: "dorp" is nothing that can be done to a packet (did you mean "drop"?)`,
		"{match: {psn: 5}}":                           `key "do" is missing`,
		"{match: {psm: 5}, do: drop}":                 `unknown key "psm" in events[0].match (did you mean "psn"?)`,
		"{match: {psn: 9..5}, do: drop}":              `"9..5" ends before it begins`,
		"{match: {psn: x}, do: drop}":                 `"x" is no number and no range`,
		"{match: {psn: 16777216}, do: drop}":          "events[0].match.psn: 16777216 is not within 0..16777215",
		"{match: {psn: []}, do: drop}":                "events[0].match.psn: there is no number in it (leave the key out for all)",
		"{do: hold -1}":                               `"-1" is no whole number`,
		"{match: {iteration: 0}, do: drop}":           "events[0].match.iteration: 0 is not within 1..31",
		"{match: {iteration: 40}, do: drop}":          "events[0].match.iteration: 40 is not within 1..31",
		"{match: {class: akc}, do: drop}":             `"akc" is no class of packets (did you mean "ack"?)`,
		"{match: {direction: back}, do: drop}":        `events[0].match.direction: "back" is no direction`,
		"{match: {dscp: 64}, do: drop}":               "events[0].match.dscp: 64 is not within 0..63",
		"{match: {ecn: ect}, do: drop}":               `"ect" is no ECN codepoint (did you mean "ect1"?)`,
		"{match: {message: lsat}, do: drop}":          `"lsat" is no place in a message (did you mean "last"?)`,
		"{match: {ordinal: [1, 5]}, do: drop}":        "events[0].match.ordinal: 1,5 is not one range",
		"{match: {iteration: 1, round: 1}, do: drop}": "events[0].match.round: an event counts passes (iteration) or rounds",
		"{match: {psn: 1, class: cnp}, do: drop}":     "events[0].match.class: what has no PSN can't be told apart by it",
		"{match: {workload: '['}, do: drop}":          "events[0].match.workload",
		"{do: [drop, mark-ce]}":                       "events[0].do: of a packet that is dropped nothing else is seen",
		"{do: [mark-ce, clear-ect]}":                  "the ECN field is either CE or Not-ECT",
		"{do: [delay 1us, hold 2]}":                   "a packet waits for packets",
		"{do: [delay 1us, delay 2us]}":                "delay is there twice",
		"{do: []}":                                    "nothing is done",
		"{do: drop it}":                               `drop takes no "it"`,
		"{do: corrupt tail}":                          `"tail" is no part that can be damaged`,
		"{do: set-dscp 64}":                           "64 is no DSCP from 0 to 63",
		"{do: set-dscp}":                              "set-dscp needs a number",
		"{do: delay}":                                 "delay needs a time",
		"{do: delay 0s}":                              "a delay must be above 0",
		"{do: delay 5}":                               "it lacks a unit",
		"{do: hold 300}":                              "300 is no number of packets from 1 to 256",
		"{do: hold 3 0s}":                             "isn't held",
		"{do: truncate 10}":                           "10 is no length from 34 to 65535",
		"{do: duplicate 9}":                           "9 is no number of copies from 1 to 8",
	} {
		if _, err := read(t, "events: ["+text+"]"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestLuminasBlockIsAcceptedAsItIs(t *testing.T) {
	f, err := read(t, `
  data-pkt-events: # A list of events to inject
    - qpn:  0
      psn:  4
      type: ecn
      iter: 1
    - qpn:  2
      psn:  3
      type: drop
      iter: 2
    - {qpn: 1, psn: 0, type: bit-error}
`)
	if err == nil {
		err = ValidateLumina("data-pkt-events", f.Lumina)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []Event
	for _, l := range f.Lumina {
		got = append(got, l.Event())
	}
	data := Classes{Data}
	want := []Event{
		{Match{QP: one(0), PSN: one(4), Round: one(1), Class: data}, Do{{Verb: MarkCE}}},
		{Match{QP: one(2), PSN: one(3), Round: one(2), Class: data}, Do{{Verb: Drop}}},
		{Match{QP: one(1), PSN: one(0), Round: one(1), Class: data}, Do{{Verb: Corrupt, Part: Header}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for text, want := range map[string]string{
		"{type: dorp}": `x[0].type: "dorp" is no type of event (did you mean "drop"?)`, "{type: ecn, psn: 16777216}": "x[0].psn", "{type: ecn, iter: 32}": "x[0].iter",
	} {
		f, err := read(t, "data-pkt-events: ["+text+"]")
		if err == nil {
			err = ValidateLumina("x", f.Lumina)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// The rounds of the paper's example: with every 4th packet dropped in round 1 and again in round 2, each is hit once.
func TestRoundsCountLikeLumina(t *testing.T) {
	m, _ := both(t, []Event{
		Lumina{QPN: 0, PSN: 4, Type: "drop", Iter: 1}.Event(),
		Lumina{QPN: 0, PSN: 4, Type: "drop", Iter: 2}.Event(),
		Lumina{QPN: 0, PSN: 6, Type: "ecn", Iter: 3}.Event(),
	}, 1, 64)
	c := drawnConnection()
	m.Connect(&c)
	var hit []int
	for i, psn := range []int{0, 1, 2, 3, 4, 5, 6 /* back */, 4, 5, 6 /* and again */, 4, 5, 6, 7} {
		f := Facts{Dst: c.To.Addr, DestQP: c.To.QPN, PSN: c.From.PSN.Add(psn), Opcode: roce.RCRDMAWriteMiddle, RoCE: true}
		if psn == 0 {
			f.Opcode = roce.RCRDMAWriteFirst
		}
		if v := m.Look(&f); v.Do != 0 {
			hit = append(hit, i)
		}
	}
	if !slices.Equal(hit, []int{4, 7, 12}) {
		t.Errorf("packets %v were hit, want 4 (round 1), 7 (round 2) and 12 (round 3)", hit)
	}
}

func drawnConnection() Connection {
	return Connection{From: End{Addr: addr(1), QPN: 0x11, PSN: 0xfffffe}, To: End{Addr: addr(2), QPN: 0x11, PSN: 7}}
}

func TestDropPSN5InThreeIterations(t *testing.T) {
	f, err := read(t, "events: [{match: {qp: 0, psn: 5, iteration: 1..3}, do: drop}]")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := both(t, f.Events, 1, 64)
	c := drawnConnection()
	m.Connect(&c)
	dropped := 0
	for range 5 {
		for psn := 3; psn < 9; psn++ {
			p := Facts{Dst: c.To.Addr, DestQP: c.To.QPN, PSN: c.From.PSN.Add(psn), Opcode: roce.RCSendMiddle, RoCE: true}
			if v := m.Look(&p); v.Has(Drop) {
				if dropped++; psn != 5 {
					t.Errorf("PSN %d was dropped", psn)
				}
			}
		}
	}
	if dropped != 3 {
		t.Errorf("%d passes were dropped, want 3", dropped)
	}
}

func TestActionsAndSetsSurviveBeingWritten(t *testing.T) {
	for seed := range uint64(50) {
		d := drawer{newRand(seed)}
		for _, a := range d.do() {
			var again Action
			if err := again.UnmarshalText([]byte(a.String())); err != nil || again != a {
				t.Errorf("%q came back as %+v, %v", a, again, err)
			}
		}
		s := d.set(50)
		var again Set
		if err := again.UnmarshalText([]byte(s.String())); err != nil || !slices.Equal(again, s) {
			t.Errorf("%v came back as %v, %v", s, again, err)
		}
	}
	for _, w := range words {
		var c Class
		if err := c.UnmarshalText([]byte(w.class.String())); err != nil || c != w.class {
			t.Errorf("%s came back as %v, %v", w.name, c, err)
		}
	}
}

func TestANormalSetIsTheSameSet(t *testing.T) {
	d := drawer{newRand(9)}
	for range 300 {
		s := d.set(30)
		n := s.Normal()
		for i := range uint32(40) {
			if n.Has(i) != s.Has(i) {
				t.Fatalf("%v became %v, which differ in %d", s, n, i)
			}
		}
		for i := 1; i < len(n); i++ {
			if n[i].From <= n[i-1].To+1 {
				t.Fatalf("%v became %v, whose ranges touch", s, n)
			}
		}
	}
}

// A frame's facts are the same in both of its forms, for every opcode.
func TestFactsAreTheSameInBothForms(t *testing.T) {
	for op := range 256 {
		for _, fam := range []string{"10.0.0.", "2001:db8::"} {
			p := roce.Packet{
				BTH: roce.BTH{Opcode: roce.Opcode(op), PKey: roce.DefaultPKey, DestQP: 0x123456, PSN: 0xabcdef},
				Src: roce.AddrFrom(netip.MustParseAddr(fam + "1")), Dst: roce.AddrFrom(netip.MustParseAddr(fam + "2")),
				AETH: roce.AETH{Syndrome: roce.NAK(roce.NAKRemoteAccessError)}, TrafficClass: 106, TTL: 9,
			}
			b, err := p.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			var v roce.View
			if err := v.Parse(b); err != nil {
				t.Fatalf("opcode %#x: %v", op, err)
			}
			got, ok := Of(&v)
			want := OfPacket(&p)
			if !v.Info().Is(roce.HasAETH) {
				want.Syndrome = 0
			}
			if !ok || got != want || got.Class() != want.Class() {
				t.Errorf("opcode %#x: bytes %+v, struct %+v", op, got, want)
			}
		}
	}
}
