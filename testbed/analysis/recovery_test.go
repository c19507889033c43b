package analysis

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
)

// The connection of these tests: requests go to QP 0x22 from PSN 100 on, answers to QP 0x11.
var (
	alice = roce.AddrFrom(netip.MustParseAddr(h1))
	bob   = roce.AddrFrom(netip.MustParseAddr(h2))
	conn  = packet.Connection{Workload: "w", From: packet.End{Addr: alice, QPN: 0x11, PSN: 100}, To: packet.End{Addr: bob, QPN: 0x22, PSN: 900}}
)

const (
	write    = roce.RCRDMAWriteMiddle
	readReq  = roce.RCRDMAReadRequest
	readResp = roce.RCRDMAReadResponseMiddle
	ack      = roce.RCAcknowledge
)

// wire makes packets a microsecond apart, seen at the near end of what leaves to (requests to bob, or answers to alice).
type wire struct {
	to  roce.Addr
	all []Passed
}

func (w *wire) pass(dst roce.Addr, op roce.Opcode, psn int, syndrome roce.Syndrome) {
	qpn := uint32(0x22)
	if dst == alice {
		qpn = 0x11
	}
	w.all = append(w.all, Passed{At: time.Duration(len(w.all)+1) * time.Microsecond, Leaves: dst == w.to, Facts: packet.Facts{
		Dst: dst, DestQP: qpn, PSN: roce.PSN(100 + psn), Opcode: op, Syndrome: syndrome, RoCE: true,
	}})
}

const (
	positive = roce.Syndrome(0)
	sequence = roce.Syndrome(0x60)
	rnr      = roce.Syndrome(0x20)
)

// dropped runs events over a wire.
func dropped(t *testing.T, w *wire, m packet.Match) (out []string) {
	t.Helper()
	prog, err := packet.Compile([]packet.Event{{Match: m, Do: packet.Do{{Verb: packet.Drop}}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	all, hits := Recoveries(w.all, Struck{Program: prog, Connections: []packet.Connection{conn}, Force: []Span{{0, time.Hour}}, Timeouts: map[string]time.Duration{"w": 10 * time.Microsecond}})
	if int(hits) != len(all) {
		t.Errorf("%d hits, %d recoveries", hits, len(all))
	}
	for _, r := range all {
		out = append(out, fmt.Sprintf("%s %d/%d %s %v %v", r.Class, r.PSN, r.Iteration, r.How, r.Told, r.Took))
	}
	return out
}

func set(n ...uint32) (s packet.Set) {
	for _, i := range n {
		s = append(s, packet.Range{From: i, To: i})
	}
	return s
}

func TestARecoveryIsByWhatCameBackBeforeThePacketWasSentAgain(t *testing.T) {
	first := set(1)
	for name, c := range map[string]struct {
		to    roce.Addr
		match packet.Match
		make  func(w *wire)
		want  []string
	}{
		"a NAK of that PSN": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(bob, write, 6, 0)
			w.pass(alice, ack, 5, sequence)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 nak 2µs 3µs"}},
		"a NAK of one before it": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 3, sequence)
			w.pass(bob, write, 3, 0)
			w.pass(bob, write, 4, 0)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 nak 1µs 4µs"}},
		"a NAK of one behind it says nothing": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 6, sequence)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 timeout 0s 2µs"}},
		"a NAK from before it was lost says nothing": {bob, packet.Match{PSN: set(5), Iteration: set(2)}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, sequence)
			w.pass(bob, write, 5, 0)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/2 timeout 0s 1µs"}},
		"an RNR NAK": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 4, rnr)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 rnr-nak 1µs 2µs"}},
		"three in a row": {bob, packet.Match{PSN: set(5), Iteration: packet.Set{{From: 1, To: 3}}}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, sequence)
			w.pass(bob, write, 5, 0)
			w.pass(bob, write, 5, 0)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 nak 1µs 2µs", "write 5/2 timeout 0s 1µs", "write 5/3 timeout 0s 1µs"}},
		"the timer, though a NAK of before came late": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, sequence)
			for range 9 {
				w.pass(bob, write, 2, 0)
			}
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 timeout 1µs 11µs"}},
		"the timer, which seems short as the first waited on its way": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, sequence)
			for range 7 {
				w.pass(bob, write, 2, 0)
			}
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 timeout 1µs 9µs"}},
		"a NAK that came shortly before": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			for range 9 {
				w.pass(bob, write, 2, 0)
			}
			w.pass(alice, ack, 5, sequence)
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 nak 10µs 11µs"}},
		"an RNR NAK that asks for more than the timer's time": {bob, packet.Match{PSN: set(5), Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, rnr)
			for range 20 {
				w.pass(bob, write, 2, 0)
			}
			w.pass(bob, write, 5, 0)
		}, []string{"write 5/1 rnr-nak 1µs 22µs"}},
		"nothing any more": {bob, packet.Match{PSN: set(5)}, func(w *wire) { w.pass(bob, write, 5, 0) }, []string{"write 5/1 never 0s 0s"}},
		"a READ response behind it": {alice, packet.Match{PSN: set(5), Class: packet.Classes{packet.ReadResponse}, Iteration: first}, func(w *wire) {
			w.pass(bob, readReq, 0, 0)
			w.pass(alice, readResp, 5, 0)
			w.pass(alice, readResp, 6, 0)
			w.pass(bob, readReq, 5, 0)
			w.pass(alice, readResp, 5, 0)
		}, []string{"read-response 5/1 implied-nak 1µs 3µs"}},
		"the requester's timer, where no READ response came behind it": {alice, packet.Match{PSN: set(5), Class: packet.Classes{packet.ReadResponse}, Iteration: first}, func(w *wire) {
			w.pass(bob, readReq, 0, 0)
			w.pass(alice, readResp, 5, 0)
			w.pass(bob, readReq, 5, 0)
			w.pass(alice, readResp, 5, 0)
			w.pass(alice, readResp, 6, 0)
		}, []string{"read-response 5/1 timeout 0s 2µs"}},
		"an ACK behind it": {alice, packet.Match{PSN: set(5), Class: packet.Classes{packet.Ack}}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, positive)
			w.pass(bob, write, 6, 0)
			w.pass(alice, ack, 6, positive)
		}, []string{"ack 5/1 later 0s 2µs"}},
		"the request again, of an ACK": {alice, packet.Match{PSN: set(5), Class: packet.Classes{packet.Ack}, Iteration: first}, func(w *wire) {
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, positive)
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, positive)
		}, []string{"ack 5/1 timeout 0s 2µs"}},
		"the request again, of a NAK": {alice, packet.Match{PSN: set(5), Class: packet.Classes{packet.Nak}}, func(w *wire) {
			w.pass(alice, ack, 5, sequence)
			w.pass(bob, write, 5, 0)
			w.pass(alice, ack, 5, positive)
		}, []string{"nak:seq 5/1 timeout 0s 2µs"}},
	} {
		w := &wire{to: c.to}
		c.make(w)
		if got := dropped(t, w, c.match); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOnlyWhatPassedWhileTheEventsWereInForceIsLostAndCounted(t *testing.T) {
	w := &wire{to: bob}
	for range 4 {
		w.pass(bob, write, 5, 0)
	}
	prog, err := packet.Compile([]packet.Event{{Match: packet.Match{PSN: set(5), Iteration: set(1)}, Do: packet.Do{{Verb: packet.Drop}}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	us := time.Microsecond
	all, hits := Recoveries(w.all, Struck{Program: prog, Connections: []packet.Connection{conn}, Force: []Span{{2 * us, 3 * us}, {4 * us, 5 * us}}})
	if hits != 2 || len(all) != 2 || all[0].Lost != 2*us || all[1].Lost != 4*us || all[1].Iteration != 1 {
		t.Errorf("%d hits: %+v", hits, all)
	}
}
