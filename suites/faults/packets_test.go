package faults_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/faults/packet"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

// The traffic under packet events: messages of 16 packets each.
const (
	short      = "size: 16KiB, qp: {mtu: 1024, timeout: 8}"
	oneWrite   = "  - {name: w, kind: write, from: [h1], to: [h2], start: 500us, messages: 4, " + short + "}\n"
	slowWrite  = "  - {name: w, kind: write, from: [h1], to: [h2], start: 500us, messages: 4, depth: 1, " + short + "}\n"
	threeReads = "  - {name: r, kind: read, from: [h1], to: [h2], start: 500us, messages: 3, depth: 1, " + short + "}\n"
	all        = slowWrite +
		"  - {name: r, kind: read, from: [h1], to: [h2], after: w, messages: 3, depth: 1, " + short + "}\n" +
		"  - {name: s, kind: send, from: [h1], to: [h2], after: r, messages: 3, depth: 1, " + short + "}\n" +
		"  - {name: a, kind: atomic, from: [h1], to: [h2], after: s, messages: 12, qp: {timeout: 8}}\n"
)

// underFault is a scenario with some workloads under faults on the link, which heal when the last one is over, and then a workload that meets none.
func underFault(workloads string, faults ...string) string {
	var b strings.Builder
	_, last, _ := strings.Cut(workloads[strings.LastIndex(workloads, "{name: "):], "{name: ")
	last = last[:strings.Index(last, ",")]
	fmt.Fprintf(&b, "workloads:\n%s  - {name: tail, kind: write, from: [h1], to: [h2], after: %s, start: 1ms, messages: 3, depth: 1, %s}\nfaults:\n", workloads, last, short)
	for i, f := range faults {
		name := "it"
		if i > 0 {
			name = fmt.Sprint("it", i+1)
		}
		fmt.Fprintf(&b, "  - {name: %s, at: [leaf1-leaf2], schedule: {until: workload %s finished}, %s}\n", name, last, f)
	}
	return b.String()
}

// eventsOf are a fault's events, Lumina's too. That Lumina's iteration is a round and its events are about data is in Lumina's paper and code.
func eventsOf(s *seen) []packet.Event {
	f := s.scenario.Faults[0]
	events := f.Events
	for _, l := range f.DataPktEvents {
		e := packet.Event{Match: packet.Match{
			QP: packet.Set{{From: l.QPN, To: l.QPN}}, PSN: packet.Set{{From: l.PSN, To: l.PSN}},
			Round: packet.Set{{From: max(l.Iter, 1), To: max(l.Iter, 1)}}, Class: packet.Classes{packet.Data},
		}}
		switch l.Type {
		case "drop":
			e.Do = packet.Do{{Verb: packet.Drop}}
		case "ecn":
			e.Do = packet.Do{{Verb: packet.MarkCE}}
		case "bit-error":
			e.Do = packet.Do{{Verb: packet.Corrupt, Part: packet.Header}}
		}
		events = append(events, e)
	}
	return events
}

// judgePackets holds a run against the oracle, each direction of the link that the fault strikes.
func judgePackets(s *seen) {
	GinkgoHelper()
	Expect(s.Result).To(match.Pass())
	_, since := s.quiet("it")
	fault := s.healthy("it", 1)
	everything := append(append([]frame{}, s.ways[0].left...), s.ways[1].left...)
	known := sides(everything)
	heal := s.lives("it")[0].healed
	hits := 0
	for i := range s.ways {
		w := &s.ways[i]
		struck := string(s.scenario.Faults[0].Direction)
		if struck == "egress" && i == 1 || struck == "ingress" && i == 0 {
			w.unchanged(0)
			continue
		}
		want, n := newOracle(eventsOf(s), known).predict(between(w.left, 0, since), heal)
		hits += n
		if err := compare(want, between(w.came, 0, since), bed.Backend() == testbed.Sim); err != nil {
			Fail(fmt.Sprintf("from %v to %v: %v", w.from, w.to, err))
		}
		w.unchanged(since)
	}
	Expect(fault.Hits).To(BeEquivalentTo(hits), "hits counted, and packets that the oracle says were hit")
}

// packetRow is a row of the table of packet events.
func packetRow(name, workloads, fault string, extra ...string) TableEntry {
	fault = "kind: packets, " + fault
	covers(fault)
	return Entry(name, func() string { return dumbbell(append(extra, underFault(workloads, fault))...) }, SpecTimeout(time.Minute))
}

func events(all ...string) string {
	return "direction: egress, events: [" + strings.Join(all, ", ") + "]"
}

var _ = DescribeTable("packet events change the packets that they name, as they say, and no others",
	func(ctx SpecContext, source func() string) {
		judgePackets(observe(ctx, source(), "leaf1", "leaf2"))
	},
	packetRow("drop: one PSN in three iterations", oneWrite, events("{match: {qp: 0, psn: 5, iteration: 1..3}, do: drop}")),
	packetRow("drop: the very first packet", oneWrite, events("{match: {qp: 0, psn: 0, iteration: 1}, do: drop}")),
	packetRow("drop: the last packet of every message, once", slowWrite, events("{match: {message: last, class: write, iteration: 1}, do: drop}")),
	packetRow("drop: ranges of PSNs and iterations", oneWrite, events("{match: {psn: [3, 17..18, 40..], class: write, iteration: [1, 3]}, do: drop}")),
	packetRow("corrupt: the payload", slowWrite, events("{match: {psn: [5, 20], iteration: 1, class: data}, do: corrupt}")),
	packetRow("corrupt: the headers", slowWrite, events("{match: {psn: [0, 5, 20], iteration: 1, class: data}, do: corrupt header}")),
	packetRow("corrupt: the ICRC", slowWrite, events("{match: {psn: [5, 63], iteration: 1, class: data}, do: corrupt icrc}")),
	packetRow("mark-ce: every seventh", slowWrite, events("{match: {class: data, every: 7}, do: mark-ce}")),
	packetRow("clear-ect: the first and the last of messages", slowWrite, events("{match: {message: [first, last], ecn: ect0}, do: clear-ect}")),
	packetRow("set-dscp: by DSCP and number", slowWrite, events("{match: {dscp: 26, class: data, ordinal: 3..9}, do: set-dscp 8}")),
	packetRow("duplicate: three copies", slowWrite, events("{match: {psn: 5, class: write, iteration: 1}, do: duplicate 3}")),
	packetRow("duplicate: every fifth", slowWrite, events("{match: {class: write, every: 5}, do: duplicate}")),
	packetRow("delay: others overtake", slowWrite, events("{match: {psn: 2, class: write, iteration: 1}, do: delay 8300ns}")),
	packetRow("hold: three overtake", slowWrite, events("{match: {psn: [2, 20], class: write, iteration: 1}, do: hold 3}")),
	packetRow("hold: nobody comes, and the time ends it", oneWrite, events("{match: {psn: 63, class: write, iteration: 1}, do: hold 3 300us}")),
	packetRow("truncate: the end is missing", slowWrite, events("{match: {psn: [5, 20], class: write, iteration: 1}, do: truncate 100}")),
	packetRow("several at once", slowWrite, events("{match: {psn: 4, class: write, iteration: 1}, do: [set-dscp 10, mark-ce, duplicate 2]}",
		"{match: {class: write, every: 6}, do: clear-ect}", "{match: {class: data, ordinal: 18}, do: drop}")),
	packetRow("ACKs on their way back", slowWrite, "direction: ingress, events: [{match: {class: ack, direction: reverse, ordinal: [1, 2]}, do: drop}]"),
	packetRow("the NAK that a loss made", slowWrite, "direction: both, events: [{match: {psn: 3, class: write, iteration: 1}, do: drop}, {match: {class: 'nak:seq', ordinal: 1}, do: drop}]"),
	packetRow("READ responses and requests", threeReads, "direction: both, events: [{match: {class: read-response, direction: reverse, psn: [4, 31], iteration: 1}, do: drop}, {match: {class: read-request, ordinal: 3, direction: forward}, do: drop}]"),
	packetRow("a middle of READ responses in reverse", threeReads, "direction: ingress, events: [{match: {class: read-response, message: middle, ordinal: 9}, do: corrupt}, {match: {message: first, class: read-response, ordinal: 2}, do: duplicate}]"),
	packetRow("atomics and their answers, SENDs, every class", all, "direction: both, events: [{match: {class: atomic, psn: 4, iteration: 1}, do: drop}, {match: {class: atomic-ack, psn: 7, iteration: 1}, do: drop}, {match: {class: send, message: last, ordinal: 2}, do: corrupt icrc}, {match: {qp: 1, class: read-response, psn: 9, iteration: 1}, do: drop}]"),
	packetRow("CNPs", slowWrite, "direction: both, events: [{match: {class: data, every: 4}, do: mark-ce}, {match: {class: cnp, ordinal: 1}, do: drop}]", soften("nics: {dcqcn: mlx5}\n")),
	packetRow("Lumina's block", slowWrite, "direction: egress, data-pkt-events: [{qpn: 0, psn: 4, type: drop, iter: 1}, {qpn: 0, psn: 4, type: drop, iter: 2}, {qpn: 0, psn: 7, type: ecn, iter: 2}, {qpn: 0, psn: 20, type: bit-error, iter: 1}]"),
)

// soften is a section that the kernel backend has not.
func soften(section string) string {
	if bed.Backend() == testbed.Kernel {
		return ""
	}
	return section
}

var _ = Describe("the oracle", func() {
	It("tells a packet that was changed from one that was not", func() {
		f := frame{data: make([]byte, 100)}
		f.data[12], f.data[17] = 8, 86
		same := wanted{data: f.data}
		other := frame{data: append([]byte{}, f.data...)}
		other.data[50] ^= 4
		hurt := wanted{data: f.data, hurtFrom: 50, hurtTo: 51}
		away := wanted{data: f.data, hurtFrom: 51, hurtTo: 60}
		Expect([]bool{same.is(&f), same.is(&other), hurt.is(&other), hurt.is(&f), away.is(&other)}).To(Equal([]bool{true, false, true, false, false}))
		Expect(compare([]wanted{same, same}, []frame{f}, false)).To(MatchError(ContainSubstring("1 packets never came")))
		Expect(compare([]wanted{same}, []frame{f, f}, false)).To(MatchError(ContainSubstring("want nothing more")))
		Expect(roce.Port).To(BeEquivalentTo(4791))
	})
})
