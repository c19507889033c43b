package testbed

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/testbed/analysis"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/topo"
)

// passed is a packet of a capture.
type passed struct {
	at    time.Duration
	bytes string
	sound bool // its ICRC is right
	from  netip.Addr
}

// onLink is what left leaf1 for leaf2, and what arrived there.
type onLink struct {
	left, arrived []passed
	fault         record.Fault
	zero          time.Duration // the workloads' time zero, in the captures' time
	applied       time.Duration // since then
	healed        time.Duration
}

// struck runs a pair's traffic over h1 ── leaf1 ──fault──▶ leaf2 ── h2, with captures at both ends of the fault.
func struck(t *testing.T, workload, fault string) onLink {
	t.Helper()
	if !strings.Contains(fault, "down") {
		fault = "direction: egress, " + fault
	}
	source := pair(workload, fault)
	s, err := Parse("test.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	l := &s.Topology.Links[s.Topology.LinksBetween("leaf1", "leaf2")[0]]
	from, to := l.A, l.B
	if from.Node != "leaf1" {
		from, to = to, from
	}
	got := observe(t, source, from, to)
	h1, _ := s.Plan.Port(s.Topology.NICs()[0])
	for _, all := range []*[]passed{&got.left, &got.arrived} {
		*all = slices.DeleteFunc(*all, func(p passed) bool { return p.from != h1.Addr.Addr() })
	}
	return got
}

// observe runs a scenario with one fault and captures at two ports.
func observe(t *testing.T, source string, from, to topo.PortRef) onLink {
	t.Helper()
	out, r := runInSim(t, t.Context(), source, RunOptions{Captures: slices.Compact([]topo.PortRef{from, to})})
	if !out.Passed() {
		t.Fatalf("%s: problems %q", source, out.Summary.Problems)
	}
	got := onLink{fault: out.Summary.Faults[0], left: passedAt(t, r, from), arrived: passedAt(t, r, to)}
	events, err := r.Events()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		switch {
		case e.What == "started" && e.Source == "run":
			var n float64
			fmt.Sscanf(fmt.Sprint(e.Data), "map[fabric_ns:%g]", &n)
			got.zero = time.Duration(n)
		case e.What == "applied":
			got.applied = e.At
		case e.What == "healed":
			got.healed = e.At
		}
	}
	return got
}

// passedAt is the capture at a port.
func passedAt(t *testing.T, r *record.Reader, port topo.PortRef) (all []passed) {
	t.Helper()
	b, err := r.File(record.CaptureName(port.Node, port.Port))
	if err != nil {
		t.Fatal(err)
	}
	if err := analysis.ReadCapture(bytes.NewReader(b), func(p *analysis.Packet) error {
		b := p.Frame()
		q := passed{at: p.At, bytes: string(b), sound: p.Kind() == roce.KindRoCE && p.ICRCOK()}
		if len(b) >= 34 && b[12] == 8 && b[13] == 0 { // also of what is cut short, which no parser takes
			q.from = netip.AddrFrom4([4]byte(b[26:30]))
		}
		all = append(all, q)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// match pairs what arrived with what left, in the order of leaving: lost is how many left and never arrived.
// Nothing else may be different.
func (l *onLink) lost(t *testing.T) (lost []int) {
	t.Helper()
	i := 0
	for k, p := range l.left {
		if i < len(l.arrived) && l.arrived[i].bytes == p.bytes {
			i++
			continue
		}
		lost = append(lost, k)
	}
	if i != len(l.arrived) {
		t.Fatalf("%d packets arrived that had not left in this order", len(l.arrived)-i)
	}
	return lost
}

const hundred = "messages: 100, depth: 8"

func TestLossInVirtualTimeTakesJustThePacketsThatItCounts(t *testing.T) {
	for _, fault := range []string{"kind: loss, probability: 2%", "kind: loss, gilbert_elliott: {p: 1%, r: 30%, loss_bad: 60%, loss_good: 0%}"} {
		l := struck(t, hundred, fault)
		if lost := l.lost(t); int64(len(lost)) != l.fault.Hits || l.fault.Hits == 0 {
			t.Errorf("%s: %d of %d packets are missing, counted %d", fault, len(lost), len(l.left), l.fault.Hits)
		}
	}
}

func TestEveryNthPacketIsLostExactly(t *testing.T) {
	l := struck(t, hundred, "kind: loss, every_nth: 50")
	lost := l.lost(t)
	for i, k := range lost {
		if k != 50*(i+1)-1 {
			t.Errorf("loss %d took packet %d", i, k)
		}
	}
	if int64(len(lost)) != l.fault.Hits || len(lost) != len(l.left)/50 {
		t.Errorf("%d of %d packets lost, counted %d", len(lost), len(l.left), l.fault.Hits)
	}
}

func TestCorruptionInVirtualTimeBreaksTheICRCOfJustThePacketsThatItCounts(t *testing.T) {
	for _, fault := range []string{"kind: corrupt, probability: 2%", "kind: bit-error, ber: 1e-6"} {
		corrupted(t, fault)
	}
}

func corrupted(t *testing.T, fault string) {
	l := struck(t, hundred, fault)
	if len(l.left) != len(l.arrived) {
		t.Fatalf("%d packets left, %d arrived", len(l.left), len(l.arrived))
	}
	damaged := int64(0)
	for i, p := range l.arrived {
		if !l.left[i].sound {
			t.Errorf("packet %d left with a wrong ICRC", i)
		}
		if !p.sound {
			damaged++
		} else if p.bytes != l.left[i].bytes {
			t.Errorf("packet %d has changed and its ICRC fits", i)
		}
	}
	if damaged != l.fault.Hits || damaged == 0 {
		t.Errorf("%d packets are damaged, counted %d", damaged, l.fault.Hits)
	}
}

func TestDuplicatesInVirtualTimeAreCounted(t *testing.T) {
	l := struck(t, hundred, "kind: duplicate, probability: 3%")
	twice := int64(0)
	i := 0
	for _, p := range l.left {
		if i >= len(l.arrived) || l.arrived[i].bytes != p.bytes {
			t.Fatalf("packet %d of those that arrived is another one", i)
		}
		i++
		if i < len(l.arrived) && l.arrived[i].bytes == p.bytes {
			twice++
			i++
		}
	}
	if twice != l.fault.Hits || twice == 0 || i != len(l.arrived) {
		t.Errorf("%d packets arrived twice, counted %d; %d of %d matched", twice, l.fault.Hits, i, len(l.arrived))
	}
}

func TestDelayInVirtualTimeIsExactAndJitterKeepsTheOrder(t *testing.T) {
	l := struck(t, hundred, "kind: delay, delay: 20us")
	if lost := l.lost(t); len(lost) > 0 {
		t.Fatalf("%d packets lost", len(lost))
	}
	late := int64(0)
	for i, p := range l.arrived {
		took := p.at - l.left[i].at
		if took != time.Microsecond && took != 21*time.Microsecond {
			t.Fatalf("packet %d took %v over a link of 1µs with 20µs more", i, took)
		}
		if took > time.Microsecond {
			late++
		}
	}
	if late != l.fault.Hits {
		t.Errorf("%d packets late, counted %d", late, l.fault.Hits)
	}
	for _, d := range []string{"uniform", "normal", "pareto", "paretonormal"} {
		l := struck(t, hundred, "kind: delay, delay: 20us, jitter: 5us, distribution: "+d)
		if lost := l.lost(t); len(lost) > 0 { // which also says that they are in order
			t.Fatalf("%s: %d packets lost", d, len(lost))
		}
		differ := map[time.Duration]bool{}
		for i, p := range l.arrived {
			differ[p.at-l.left[i].at] = true
		}
		if len(differ) < len(l.left)/4 {
			t.Errorf("%s: only %d different delays of %d packets", d, len(differ), len(l.left))
		}
	}
}

func TestReorderingInVirtualTimeLetsJustTheCountedPacketsOvertake(t *testing.T) {
	l := struck(t, hundred, "kind: reorder, probability: 2%, delay: 10us")
	if len(l.left) != len(l.arrived) {
		t.Fatalf("%d packets left, %d arrived", len(l.left), len(l.arrived))
	}
	when := map[string][]time.Duration{}
	for _, p := range l.arrived {
		when[p.bytes] = append(when[p.bytes], p.at)
	}
	early, before := int64(0), 0
	for i, p := range l.left {
		at := when[p.bytes][0]
		when[p.bytes] = when[p.bytes][1:]
		switch took := at - p.at; {
		case p.at < l.zero+l.applied-time.Microsecond:
			before++
		case took == time.Microsecond:
			early++
		case took != 11*time.Microsecond && p.at < l.zero+l.healed-2*time.Microsecond:
			t.Fatalf("packet %d took %v", i, took)
		}
	}
	if early < l.fault.Hits || early > l.fault.Hits+2 || l.fault.Hits == 0 { // packets after the healing take no longer either
		t.Errorf("%d packets overtook, counted %d", early, l.fault.Hits)
	}
}

func TestSoManyPacketsOvertakeInVirtualTimeAsTheWindowSays(t *testing.T) {
	l := struck(t, hundred, "kind: reorder, probability: 1%, window: 3")
	if len(l.left) != len(l.arrived) {
		t.Fatalf("%d packets left, %d arrived", len(l.left), len(l.arrived))
	}
	overtaken, i := int64(0), 0
	for k := 0; k < len(l.left); k++ { // what arrives out of its place is exactly three places late
		switch {
		case i < len(l.arrived) && l.arrived[i].bytes == l.left[k].bytes:
			i++
		case i+3 < len(l.arrived) && l.arrived[i+3].bytes == l.left[k].bytes:
			overtaken++
			l.arrived = slices.Delete(l.arrived, i+3, i+4)
		default:
			t.Fatalf("packet %d arrived neither in its place nor behind three others", k)
		}
	}
	if overtaken != l.fault.Hits || overtaken == 0 {
		t.Errorf("%d packets were overtaken, counted %d", overtaken, l.fault.Hits)
	}
}

func TestALimitedRateInVirtualTimeIsWhatTheLinkCarries(t *testing.T) {
	l := struck(t, hundred, "kind: rate, rate: 1Gbps")
	if lost := l.lost(t); len(lost) > 0 {
		t.Fatalf("%d packets lost", len(lost))
	}
	slow := 0
	for i := 1; i < len(l.left); i++ {
		gap := l.left[i].at - l.left[i-1].at
		if least := time.Duration(len(l.left[i].bytes)+24) * 8; l.left[i].at > l.zero+l.applied+40*time.Microsecond {
			if gap < least-1 {
				t.Fatalf("packet %d of %d bytes left %v after the one before it: at 1 Gb/s it takes %v", i, len(l.left[i].bytes), gap, least)
			}
			slow++
		}
	}
	if slow < len(l.left)/2 || l.fault.Hits < int64(slow) || l.fault.Hits > int64(len(l.left)) {
		t.Errorf("%d of %d packets seen at the lower rate, counted %d", slow, len(l.left), l.fault.Hits)
	}
}

func TestNothingPassesALinkThatIsDownAndItsCarrierIsCountedAtBothEnds(t *testing.T) {
	l := struck(t, hundred, "kind: down, schedule: {at: 100us, for: 300us}")
	if l.fault.Hits != 2 {
		t.Errorf("%d losses of carrier", l.fault.Hits)
	}
	from, to := l.zero+101*time.Microsecond, l.zero+400*time.Microsecond
	for i, p := range l.arrived {
		if p.at > from && p.at < to {
			t.Errorf("packet %d arrived at %v, the link was down from %v to %v", i, p.at, from, to)
		}
	}
	l = struck(t, hundred, "kind: flap, period: 200us, down: 20us, schedule: {at: 50us, for: 550us}")
	if l.fault.Hits != 6 {
		t.Errorf("a link that flapped three times lost its carrier %d times", l.fault.Hits)
	}
}

func TestALinkThatIsStruckOneWayLosesWhatItCountsAndKeepsItsCarrier(t *testing.T) {
	for fault, long := range map[string]int{"kind: unidirectional": 0, "kind: blackhole": 0, "kind: mtu, mtu: 1000": 1000 + 14} {
		l := struck(t, "messages: 20, depth: 2", fault+", schedule: {at: 20us, for: 100us}")
		lost := l.lost(t)
		for _, k := range lost {
			if p := l.left[k]; len(p.bytes) <= long || p.at < l.zero+20*time.Microsecond || p.at > l.zero+122*time.Microsecond {
				t.Errorf("%s: a packet of %d bytes was lost that left %v after the start", fault, len(p.bytes), p.at-l.zero)
			}
		}
		if int64(len(lost)) != l.fault.Hits || l.fault.Hits == 0 {
			t.Errorf("%s: %d of %d packets are missing, counted %d", fault, len(lost), len(l.left), l.fault.Hits)
		}
	}
}

func TestAFlapWhoseTimesVaryKeepsBothEndsTogetherAndIsCountedAtBoth(t *testing.T) {
	l := struck(t, hundred, "kind: flap, period: 100us, down: 10us, distribution: exponential, schedule: {at: 50us, for: 2ms}")
	if l.fault.Hits%2 != 0 || l.fault.Hits < 10 || l.fault.Hits > 100 {
		t.Errorf("%d losses of carrier at both ends of a link that goes down twenty times on average", l.fault.Hits)
	}
}

func TestTheSameSeedHitsTheSamePackets(t *testing.T) {
	a, b := struck(t, hundred, "kind: loss, probability: 2%"), struck(t, hundred, "kind: loss, probability: 2%")
	if fmt.Sprint(a.lost(t)) != fmt.Sprint(b.lost(t)) {
		t.Error("two runs of one seed lost different packets")
	}
}
