package testbed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
)

// named runs one queue pair's WRITEs of 16 packets each over a link where events strike.
func named(t *testing.T, workload, events string) onLink {
	t.Helper()
	return struck(t, workload, "kind: packets, events: ["+events+"]")
}

// requests are the WRITE packets among some, by their PSN from the first on.
func requests(t *testing.T, all []passed, zero roce.PSN) (psns []int) {
	t.Helper()
	for _, p := range all {
		psns = append(psns, int(psnOf(p).Sub(zero)))
	}
	return psns
}

func psnOf(p passed) roce.PSN {
	b := p.bytes[14+20+8+9:]
	return roce.PSN(uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]))
}

func TestAPacketIsDroppedInThreeIterationsAndSentAgainEachTime(t *testing.T) {
	for name, c := range map[string]struct {
		workload string
		psn      int
		timeouts bool
	}{
		"by NAK, as packets come behind it": {"messages: 1", 5, false},
		"by timeout, as it is the last":     {"messages: 1, qp: {timeout: 10}", 15, true},
		"the very first of all":             {"messages: 1", 0, false},
	} {
		l := named(t, c.workload, fmt.Sprintf("{match: {qp: 0, psn: %d, iteration: 1..3}, do: drop}", c.psn))
		zero := psnOf(l.left[0])
		var sent, came int
		for _, n := range requests(t, l.left, zero) {
			if n == c.psn {
				sent++
			}
		}
		for _, n := range requests(t, l.arrived, zero) {
			if n == c.psn {
				came++
			}
		}
		if lost := l.lost(t); sent != 4 || came != 1 || len(lost) != 3 || l.fault.Hits != 3 {
			t.Errorf("%s: PSN %d was sent %d times and came %d times; %d packets are missing, counted %d", name, c.psn, sent, came, len(lost), l.fault.Hits)
		}
	}
}

// changes pairs what left with what arrived in its place, for events that keep the order.
func changes(t *testing.T, l onLink) (changed []int) {
	t.Helper()
	if len(l.left) != len(l.arrived) {
		t.Fatalf("%d packets left, %d arrived", len(l.left), len(l.arrived))
	}
	for i := range l.left {
		if l.left[i].bytes != l.arrived[i].bytes {
			changed = append(changed, i)
		}
	}
	return changed
}

func TestEventsChangeJustThePacketsThatTheyNameAndAsTheySay(t *testing.T) {
	flipped := func(a, b string, from, to int) bool {
		bits := 0
		for i := range a {
			for x := a[i] ^ b[i]; x != 0; x &= x - 1 {
				if bits++; i < from || i >= to {
					return false
				}
			}
		}
		return len(a) == len(b) && bits == 1
	}
	const head = 14 + 20 + 8
	for do, ok := range map[string]func(a, b passed) bool{
		"mark-ce":         func(a, b passed) bool { return b.bytes[15] == a.bytes[15]|3 && b.sound },
		"clear-ect":       func(a, b passed) bool { return b.bytes[15] == a.bytes[15]&^3 && b.sound },
		"set-dscp 8":      func(a, b passed) bool { return b.bytes[15] == a.bytes[15]&3|8<<2 && b.sound },
		"corrupt payload": func(a, b passed) bool { return flipped(a.bytes, b.bytes, head+12, len(a.bytes)-4) && !b.sound },
		"corrupt header":  func(a, b passed) bool { return flipped(a.bytes, b.bytes, head, head+12) },
		"corrupt icrc":    func(a, b passed) bool { return flipped(a.bytes, b.bytes, len(a.bytes)-4, len(a.bytes)) && !b.sound },
	} {
		l := named(t, "messages: 4, depth: 1, qp: {traffic_class: 106}", "{match: {qp: 0, psn: [5, 20], iteration: 1, direction: forward}, do: "+do+"}")
		zero := psnOf(l.left[0])
		changed := changes(t, l)
		if len(changed) != 2 || l.fault.Hits != 2 {
			t.Errorf("%s: changed %v, counted %d", do, changed, l.fault.Hits)
		}
		for _, i := range changed {
			if n := int(psnOf(l.left[i]).Sub(zero)); n != 5 && n != 20 || !ok(l.left[i], l.arrived[i]) {
				t.Errorf("%s: PSN %d became\n%x\n%x", do, n, l.left[i].bytes[:110], l.arrived[i].bytes[:min(110, len(l.arrived[i].bytes))])
			}
		}
	}
}

func TestWhatIsCutShortIsTakenByNobodyAndSentAgain(t *testing.T) {
	l := named(t, "messages: 4, depth: 1", "{match: {qp: 0, psn: [5, 20], iteration: 1, direction: forward}, do: truncate 100}")
	zero := psnOf(l.left[0])
	lost := l.lost(t) // for whoever reads RoCE packets
	if len(lost) != 2 || l.fault.Hits != 2 || psnOf(l.left[lost[0]]).Sub(zero) != 5 || psnOf(l.left[lost[1]]).Sub(zero) != 20 {
		t.Errorf("no RoCE packets any more are %v, counted %d", lost, l.fault.Hits)
	}
}

func TestCopiesFollowTheirPacketAtOnce(t *testing.T) {
	l := named(t, "messages: 4, depth: 1", "{match: {psn: 5, class: write, iteration: 1}, do: duplicate 3}")
	i := slices.IndexFunc(l.arrived, func(p passed) bool { return int(psnOf(p).Sub(psnOf(l.left[0]))) == 5 })
	for k := 1; k <= 3; k++ {
		if a, b := l.arrived[i], l.arrived[i+k]; a.bytes != b.bytes || a.at != b.at {
			t.Errorf("copy %d is another packet, or came %v later", k, b.at-a.at)
		}
	}
	if len(l.arrived) != len(l.left)+3 || l.fault.Hits != 1 {
		t.Errorf("%d packets left, %d arrived, counted %d", len(l.left), len(l.arrived), l.fault.Hits)
	}
}

func TestADelayedPacketIsOvertakenAndAHeldOneByJustSoMany(t *testing.T) {
	order := func(l onLink) string {
		var first []string
		for _, n := range requests(t, l.arrived, psnOf(l.left[0]))[:9] {
			first = append(first, fmt.Sprint(n))
		}
		return strings.Join(first, " ")
	}
	l := named(t, "messages: 2, depth: 1", "{match: {psn: 2, iteration: 1}, do: hold 3}")
	if got := order(l); got != "0 1 3 4 5 2 6 7 8" && !strings.HasPrefix(got, "0 1 3 4 5 2") || l.fault.Hits != 1 {
		t.Errorf("held: PSNs came as %s, counted %d", got, l.fault.Hits)
	}
	l = named(t, "messages: 2, depth: 1", "{match: {psn: 2, iteration: 1}, do: delay 8us}")
	if got := order(l); !strings.HasPrefix(got, "0 1 3 4 2 5") || l.fault.Hits != 1 {
		t.Errorf("delayed: PSNs came as %s, counted %d", got, l.fault.Hits)
	}
	for i, p := range l.left {
		if int(psnOf(p).Sub(psnOf(l.left[0]))) == 2 {
			for _, q := range l.arrived {
				if q.bytes == p.bytes && q.at-p.at == 9*time.Microsecond {
					i = -1
				}
			}
			if i >= 0 {
				t.Error("the delayed packet did not take 8µs more than the link's 1µs")
			}
			break
		}
	}
	// The last of a message has nobody behind it: it goes on when its time is over.
	l = named(t, "messages: 1, qp: {timeout: 20}", "{match: {psn: 15, iteration: 1}, do: hold 3 50us}")
	last := l.arrived[len(l.arrived)-1]
	if took := last.at - l.left[len(l.left)-1].at; took != 51*time.Microsecond || l.fault.Hits != 1 {
		t.Errorf("the last packet was held for %v, counted %d", took, l.fault.Hits)
	}
}

func TestEventsReachAnswersToo(t *testing.T) {
	for events, class := range map[string]string{
		"{match: {class: ack, direction: reverse, ordinal: 1}, do: drop}":                              "ack",
		"{match: {psn: 3, iteration: 1}, do: drop}, {match: {class: 'nak:seq', ordinal: 1}, do: drop}": "nak",
	} {
		source := strings.Replace(pair("messages: 3, depth: 1, qp: {timeout: 10}", "direction: both, kind: packets, events: ["+events+"]"), "leaf1-leaf2", "leaf1-leaf2", 1)
		out, _ := runInSim(t, t.Context(), source, RunOptions{})
		if want := int64(1 + strings.Count(events, "}, {")); !out.Passed() || out.Summary.Faults[0].Hits != want {
			t.Errorf("%s: hits %d of %d, problems %q", class, out.Summary.Faults[0].Hits, want, out.Summary.Problems)
		}
	}
}

func TestLuminasBlockIsTakenAsItIs(t *testing.T) {
	l := struck(t, "messages: 1", "kind: packets, data-pkt-events: [{qpn: 0, psn: 4, type: drop, iter: 1}, {qpn: 0, psn: 7, type: ecn, iter: 2}]")
	if l.fault.Hits != 2 {
		t.Errorf("counted %d", l.fault.Hits)
	}
}

func TestAnEventOfAWorkloadThatBeginsLaterHitsItsFirstPacket(t *testing.T) {
	source := strings.Replace(pair("messages: 2", "direction: egress, kind: packets, events: [{match: {workload: second, psn: 0, iteration: 1}, do: drop}]"),
		"faults:", "  - {name: second, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 2, after: w}\nfaults:", 1)
	out, _ := runInSim(t, t.Context(), source, RunOptions{})
	if f := out.Summary.Faults[0]; !out.Passed() || f.Hits != 1 {
		t.Errorf("hits %d, problems %q", f.Hits, out.Summary.Problems)
	}
}
