package testbed

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/topo"
)

// Messages of 16 packets, one at a time, over h1 ── leaf1 ──events──▶ leaf2 ── h2. An ACK that doesn't come is waited for 17 ms.
const pickedOnRxe = `apiVersion: rocebed/v1
name: picked
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 8, depth: 1, qp: {traffic_class: 106, timeout: 12}}
faults:
  - {name: it, kind: packets, at: [leaf1-leaf2], direction: %s, events: [%s]}
expect:
  - 'workloads["w"].verified_bytes == 8 * bytesize("64KiB")'
`

// pickedRun runs events on real rxe and gives what passed both ends of the link one way: h1's packets, or with ingress h2's.
func pickedRun(t *testing.T, direction, events string) onLink {
	t.Helper()
	source := fmt.Sprintf(pickedOnRxe, direction, events)
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	l := &s.Topology.Links[s.Topology.LinksBetween("leaf1", "leaf2")[0]]
	from, to := l.A, l.B
	if from.Node != "leaf1" {
		from, to = to, from
	}
	out, r := runOnRxe(t, t.Context(), source, RunOptions{Captures: []topo.PortRef{from, to}})
	if !out.Passed() {
		t.Fatalf("%s: problems %q, expectations %v", events, out.Summary.Problems, out.Summary.Expectations)
	}
	got := onLink{fault: out.Summary.Faults[0], left: passedAt(t, r, from), arrived: passedAt(t, r, to)}
	sender := 0
	if direction == "ingress" {
		got.left, got.arrived = got.arrived, got.left
		sender = 1
	}
	port, _ := s.Plan.Port(s.Topology.NICs()[sender])
	for _, all := range []*[]passed{&got.left, &got.arrived} {
		*all = slices.DeleteFunc(*all, func(p passed) bool { return p.from != port.Addr.Addr() })
	}
	return got
}

func TestOnRxeAPacketIsDroppedInThreeIterations(t *testing.T) {
	l := pickedRun(t, "egress", "{match: {workload: w, qp: 0, psn: 5, iteration: 1..3}, do: drop}")
	count := func(all []passed) (n int) {
		for _, psn := range requests(t, all, psnOf(l.left[0])) {
			if psn == 5 {
				n++
			}
		}
		return n
	}
	if lost := l.lost(t); count(l.left) != 4 || count(l.arrived) != 1 || len(lost) != 3 || l.fault.Hits != 3 {
		t.Errorf("PSN 5 was sent %d times and came %d times; %d packets are missing, counted %d", count(l.left), count(l.arrived), len(lost), l.fault.Hits)
	}
}

// All kinds of actions on one queue pair: what came is what was sent with the events' verdicts done to it, to the byte and in order.
func TestOnRxePacketsAreHeldCopiedMarkedAndDamagedAsTheEventsSay(t *testing.T) {
	const events = `{match: {workload: w, qp: 0, psn: 20, iteration: 1}, do: hold 3},
      {match: {workload: w, qp: 0, psn: 36, iteration: 1}, do: duplicate 2},
      {match: {workload: w, qp: 0, psn: 52, iteration: 1, direction: forward}, do: mark-ce},
      {match: {workload: w, qp: 0, psn: 53, iteration: 1, direction: forward}, do: [clear-ect, set-dscp 8]},
      {match: {workload: w, qp: 0, psn: 68, iteration: 1}, do: corrupt icrc},
      {match: {workload: w, qp: 0, psn: 84, iteration: 1}, do: truncate 100},
      {match: {workload: w, qp: 0, psn: 100, iteration: 1..2}, do: corrupt payload}`
	l := pickedRun(t, "egress", events)
	f, err := Parse("test.yaml", fmt.Appendf(nil, pickedOnRxe, "egress", events))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := packet.Compile(f.Faults[0].PacketEvents(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m := packet.NewMatcher(prog)
	facts := func(p passed) (f packet.Facts) {
		var v roce.View
		_ = v.Parse([]byte(p.bytes))
		f, _ = packet.Of(&v)
		return f
	}
	first := facts(l.left[0])
	m.Connect(&packet.Connection{Workload: "w", To: packet.End{Addr: first.Dst, QPN: first.DestQP}, From: packet.End{PSN: first.PSN}})

	type parcel struct {
		passed
		packet.Verdict
	}
	var want []parcel
	send := func(p parcel) {
		if p.Has(packet.Truncate) {
			return // is no RoCE any more, which is all that is read
		}
		for range p.Copies + 1 {
			want = append(want, p)
		}
	}
	var shelf packet.Shelf[parcel]
	for _, p := range l.left {
		f := facts(p)
		switch v := m.Look(&f); {
		case v.Hold > 0:
			shelf.Put(v.Flow, v.Hold, parcel{p, v})
		default:
			send(parcel{p, v})
			shelf.Pass(v.Flow, send)
		}
	}
	if uint64(l.fault.Hits) != m.Hits() || len(l.arrived) != len(want) {
		t.Fatalf("%d packets arrived, not %d; counted %d, not %d", len(l.arrived), len(want), l.fault.Hits, m.Hits())
	}
	for i, w := range want {
		a, b := w.bytes, l.arrived[i].bytes
		where := func(from, to int) bool { // one bit differs, in between
			n := 0
			for k := range min(len(a), len(b)) {
				if x := a[k] ^ b[k]; x != 0 {
					n += bits.OnesCount8(x)
					if k < from || k >= to {
						return false
					}
				}
			}
			return n == 1 && len(a) == len(b)
		}
		const ipv4Checksum, head = 24, 14 + 20 + 8 + 12
		class := func(tc byte) bool {
			return b[15] == tc && b[:15] == a[:15] && b[16:ipv4Checksum] == a[16:ipv4Checksum] && b[ipv4Checksum+2:] == a[ipv4Checksum+2:] && l.arrived[i].sound
		}
		ok := a == b
		switch {
		case w.Has(packet.MarkCE):
			ok = class(a[15] | 3)
		case w.Has(packet.SetDSCP):
			ok = class(8 << 2)
		case w.Has(packet.Corrupt) && w.Part == 2:
			ok = where(len(a)-4, len(a))
		case w.Has(packet.Corrupt):
			ok = where(head, len(a)-4)
		}
		if !ok {
			t.Fatalf("packet %d, %+v:\nleft    %x\narrived %x", i, w.Verdict, a[:100], b[:min(len(b), 100)])
		}
	}
}

// The NAK that tells of a lost packet is lost, too: the requester's timer must help.
func TestOnRxeANakIsDropped(t *testing.T) {
	l := pickedRun(t, "both", "{match: {workload: w, qp: 0, psn: 5, iteration: 1, direction: forward}, do: drop}, {match: {class: 'nak:seq', ordinal: 1}, do: drop}")
	if len(l.left) == 0 || l.fault.Hits != 2 {
		t.Errorf("counted %d", l.fault.Hits)
	}
	l = pickedRun(t, "ingress", "{match: {class: ack, ordinal: 2..3}, do: drop}")
	if lost := l.lost(t); len(lost) != 2 || lost[0] != 1 || lost[1] != 2 || l.fault.Hits != 2 {
		t.Errorf("ACKs %v were lost, counted %d", lost, l.fault.Hits)
	}
}

// A host's ACKs leave it later, all by the same.
func TestOnRxeAcksAreLate(t *testing.T) {
	source := strings.Replace(fmt.Sprintf(pickedOnRxe, "ingress", ""), "kind: packets, at: [leaf1-leaf2], direction: ingress, events: []", "kind: ack-delay, at: ['h2:eth0'], delay: 500us", 1)
	out, r := runOnRxe(t, t.Context(), source, RunOptions{Captures: []topo.PortRef{{Node: "h2", Port: "eth0"}, {Node: "leaf2", Port: "eth0"}}})
	if !out.Passed() {
		t.Fatalf("problems %q, expectations %v", out.Summary.Problems, out.Summary.Expectations)
	}
	left, came := passedAt(t, r, topo.PortRef{Node: "h2", Port: "eth0"}), passedAt(t, r, topo.PortRef{Node: "leaf2", Port: "eth0"})
	acks := 0
	for _, a := range left {
		if opcode := roce.Opcode(a.bytes[14+20+8]); opcode != roce.RCAcknowledge {
			continue
		}
		i := slices.IndexFunc(came, func(b passed) bool { return b.bytes[26:] == a.bytes[26:] && b.at >= a.at })
		if i < 0 || came[i].at-a.at < 500*time.Microsecond {
			t.Errorf("ACK %d is not late by 500µs", acks)
		}
		acks++
	}
	if acks < 8 || int64(acks) != out.Summary.Faults[0].Hits {
		t.Errorf("%d ACKs left, counted %d", acks, out.Summary.Faults[0].Hits)
	}
}
