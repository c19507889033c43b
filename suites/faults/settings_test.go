package faults_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
)

// Faults in switches and NICs change settings for a while. One run has several, one after the other with pauses between them, under traffic that goes on:
//
//	h1 ─┐                    ┌─ h3
//	    leaf1 ──────────── leaf2
//	h2 ─┘                    └─ h4
//
// What a capture shows while one lasts is held against what it shows when none does.

// setting is a fault, and what is to be seen of it.
type setting struct {
	at, fault string
	judge     func(w *window)
}

// window is what was to be seen while a fault was in force.
type window struct {
	*seen
	name  string
	fault record.Fault
	life  life
	begin time.Duration      // when it was asked for
	end   time.Duration      // when its end was asked for
	free  [][2]time.Duration // when no fault is near
	// before is the last such time before the fault.
	before [2]time.Duration
}

// Each fault lasts for a millisecond, and the next one comes a millisecond later.
const first, every = time.Millisecond, 2 * time.Millisecond

// during are the frames from when the fault is in force for sure, and what it found on its way is through.
func (w *window) during(all []frame) []frame {
	found := 2 * margin()
	if bed.Backend() == testbed.Kernel { // two queue pairs' 128 packets, which rxe keeps in a queue
		found = 600 * time.Microsecond
	}
	return between(all, w.life.applied+found, w.end-margin())
}

// outside are those of the times when no fault is near.
func (w *window) outside(all []frame) (out []frame) {
	for _, span := range w.free {
		out = append(out, between(all, span[0], span[1])...)
	}
	return out
}

// rate is a number of frames in a millisecond of the time that during or outside is about.
func (w *window) rates(all []frame, is func(*frame) bool) (during, outside float64) {
	d, o := tally(w.during(all), is), tally(w.outside(all), is)
	var free time.Duration
	for _, span := range w.free {
		free += span[1] - span[0]
	}
	return float64(d) * 1e6 / float64(w.end-w.life.applied-3*margin()), float64(o) * 1e6 / float64(free)
}

// counted checks hits that are frames which passed while the fault lasted: at least those that certainly did, at most those that perhaps did.
func (w *window) counted(all []frame, is func(*frame) bool) {
	GinkgoHelper()
	least := tally(between(all, w.life.applied+margin(), w.end-margin()), is)
	most := tally(between(all, w.begin-margin(), w.life.healed+margin()), is)
	Expect(w.fault.Hits).To(And(BeNumerically(">=", least), BeNumerically("<=", most+4)), "%s: hits", w.name)
}

// changed checks hits that are data packets which a setting made a difference to: no more than passed.
func (w *window) changed(all []frame) {
	GinkgoHelper()
	Expect(w.fault.Hits).To(BeNumerically("<=", tally(between(all, w.begin-margin(), w.life.healed+margin()), isData)), "%s: hits", w.name)
}

func tally(all []frame, is func(*frame) bool) (n int) {
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// What a frame may be.
func isCNP(f *frame) bool   { return f.op() == roce.OpCNP }
func isAck(f *frame) bool   { return f.op() == roce.OpAcknowledge }
func isCE(f *frame) bool    { return isData(f) && f.data[15]&3 == 3 }
func isPause(f *frame) bool { return pauses(f, 3) > 0 }
func isPFC(f *frame) bool   { return f.data[12] == 0x88 && f.data[13] == 8 }

// pauses is for how many quanta a frame pauses a priority.
func pauses(f *frame, priority int) int {
	if !isPFC(f) || binary.BigEndian.Uint16(f.data[14:]) != 0x0101 || f.data[17]>>priority&1 == 0 {
		return 0
	}
	return int(binary.BigEndian.Uint16(f.data[18+2*priority:]))
}

// steps counts data packets that are not the next ones of their queue pair: what was lost, and what is sent again.
func steps(all []frame) (n int) {
	next := map[to]roce.PSN{}
	for i := range all {
		f := &all[i]
		if !isData(f) {
			continue
		}
		k := to{netip.AddrFrom16(f.DstAddr()).Unmap(), f.DestQP()}
		if want, ok := next[k]; ok && want != f.PSN() {
			n++
		}
		next[k] = f.PSN().Add(1)
	}
	return n
}

// settingsOn describes a run of several faults, seen at the link between two nodes.
func settingsOn(title, sections, workloads, a, b string, all []setting) {
	var faults strings.Builder
	faults.WriteString("faults:\n")
	for i, s := range all {
		covers(s.fault)
		fmt.Fprintf(&faults, "  - {name: f%d, at: ['%s'], may_miss: true, schedule: {at: %v, for: 1ms}, %s}\n", i, s.at, first+time.Duration(i)*every, s.fault)
	}
	lasts := first + time.Duration(len(all))*every
	It(title, func(ctx SpecContext) {
		source := fmt.Sprintf("apiVersion: rocebed/v1\nname: settings\nseed: 23\ndilation: %d\n", settingsDilation()) + sections +
			"workloads:\n" + strings.ReplaceAll(workloads, "DURATION", lasts.String()) + faults.String()
		s := observe(ctx, source, a, b)
		Expect(s.Result).To(match.Pass())
		var free [][2]time.Duration
		from := s.zero + 300*time.Microsecond
		for i := range all {
			l := s.lives(fmt.Sprint("f", i))
			Expect(l).To(HaveLen(1))
			free = append(free, [2]time.Duration{from, s.zero + first + time.Duration(i)*every - margin()})
			from = l[0].healed + 400*time.Microsecond
		}
		for i, one := range all {
			w := &window{seen: s, name: one.fault, fault: s.Fault(fmt.Sprint("f", i)), life: s.lives(fmt.Sprint("f", i))[0], free: free, before: free[i]}
			w.begin = s.zero + first + time.Duration(i)*every
			w.end = w.begin + time.Millisecond
			Expect(w.fault).To(And(HaveField("Strikes", 1), HaveField("Verified", true), HaveField("Healed", true), HaveField("Problems", BeEmpty())), "%s", one.fault)
			// Whether anything is sent just then, against a pause or to a port that sends none, depends on the machine where time is real.
			if !strings.Contains(one.fault, "half:") || bed.Backend() == testbed.Sim {
				Expect(w.fault.Hits).To(BeNumerically(">", 0), "%s: hits", one.fault)
			}
			one.judge(w)
		}
	}, SpecTimeout(2*time.Minute))
}

// settingsDilation leaves the software nodes' four hosts and the captures time, and a guest on a busy machine the second that it may take to heal one setting before
// the next one is due.
func settingsDilation() int { return 4 * dilation() }

// softOnly runs where nodes are software: what follows is about what they alone have.
func softOnly() bool { return bed.Backend() != testbed.Kernel }

const four = "topology:\n  dumbbell: {left: 2, right: 2}\n  rate: 10Gbps\n"

// one expects what is so while a fault lasts and is not when none does, or the other way round.
func (w *window) only(what string, all []frame, is func(*frame) bool, during bool) {
	GinkgoHelper()
	d, o := tally(w.during(all), is), tally(w.outside(all), is)
	if during {
		Expect(d).To(BeNumerically(">", 0), "%s: %s while it lasts", w.name, what)
		Expect(o).To(BeZero(), "%s: %s when nothing is wrong", w.name, what)
		return
	}
	Expect(d).To(BeZero(), "%s: %s while it lasts, of %d frames", w.name, what, len(w.during(all)))
	Expect(o).To(BeNumerically(">", 0), "%s: %s when nothing is wrong", w.name, what)
}

// storm expects pauses from when it began on, and none when nothing is wrong. A pause of the most quanta lasts for longer than the fault.
func (w *window) storm(all []frame) {
	GinkgoHelper()
	Expect(tally(between(all, w.begin, w.life.healed+margin()), isPause)).To(BeNumerically(">", 0), "%s: pauses", w.name)
	Expect(tally(between(all, w.before[0], w.before[1]), isPause)).To(BeZero(), "%s: pauses right before", w.name)
}

// The directions of the struck link, as settingsOn gives them.
func across(w *window) []frame { return w.ways[0].came }
func back(w *window) []frame   { return w.ways[1].came }

// gone is a judge: while it lasts, and until slack after, packets across are lost or sent again.
func gone(slack time.Duration) func(*window) {
	return func(w *window) {
		d := w.during(across(w))
		if slack > 0 {
			d = between(across(w), w.life.applied, w.life.healed+slack)
		}
		Expect(steps(d)).To(BeNumerically(">", 0), "%s: packets lost or sent again", w.name)
	}
}

func unmarked(w *window) {
	w.only("marks", across(w), isCE, false)
	w.changed(across(w))
}

// moved sends what comes from hosts to another queue than its DSCP's: that one fills, and marks by its own curve.
var moved = setting{"leaf1-h1', 'leaf1-h2", "kind: dscp-map, dscp_map: {26: 2}", func(w *window) {
	d, o := w.during(across(w)), w.outside(across(w))
	Expect(3*tally(d, isCE)*tally(o, isData)).To(BeNumerically(">", tally(o, isCE)*tally(d, isData)), "%s: %d marks of %d while it lasts, and %d of %d when nothing is wrong",
		w.name, tally(d, isCE), tally(d, isData), tally(o, isCE), tally(o, isData))
	Expect(tally(d, isCE)).To(BeNumerically(">", 0), "%s: marks", w.name)
}}

func unpaused(w *window) { w.only("pauses", back(w), isPause, false) }
func passed(w *window)   { w.counted(across(w), isData) }

// pauseSettings are those of PFC on a link to a bottleneck. What a port without headroom loses is judged by who calls: hosts differ in what they have under way.
func pauseSettings(noHeadroom func(*window)) []setting {
	return []setting{
		{"leaf1-leaf2", "kind: pfc-off, half: obey, priorities: [3]", func(w *window) {
			if bed.Backend() == testbed.Sim {
				d, _ := w.rates(across(w), isData)
				Expect(d).To(BeNumerically(">", 0), w.name)
			}
		}},
		{"leaf2-leaf1", "kind: pfc-off, half: send", unpaused},
		{"leaf2-leaf1", "kind: pfc-off", unpaused},
		{"leaf2-leaf1", "kind: pfc-thresholds, headroom: 0B", noHeadroom},
		{"leaf2-leaf1", "kind: pfc-thresholds, xoff: 20KB", passed},
		{"leaf2-leaf1", "kind: pfc-thresholds, alpha: 1/64", passed},
		{"leaf2-leaf1", "kind: pfc-thresholds, xon: 0B", passed},
		{"leaf2-leaf1", "kind: dscp-map, dscp_map: {26: 0}", func(w *window) {
			unpaused(w)
			passed(w)
		}},
	}
}

var _ = Describe("settings of switches that are wrong for a while", bed.Tries(), func() {
	if !softOnly() {
		return
	}
	settingsOn("are seen in marks and in what queues hold",
		four+"switches:\n  memory: 8MB\n  ecn: {kmin: 100KB, kmax: 900KB, pmax: 40%}\n",
		"  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 6}}\n"+
			"  - {name: b, kind: write, from: [h2], to: [h4], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 6}}\n",
		"leaf1", "leaf2", []setting{
			{"leaf1-leaf2", "kind: ecn-off", unmarked},
			{"leaf1-leaf2", "kind: ecn-off, priorities: [3]", unmarked},
			{"leaf1-leaf2", "kind: ecn-thresholds, kmin: 1B, kmax: 2B, pmax: 100%", func(w *window) {
				d := w.during(across(w))
				Expect(tally(d, isCE)).To(BeNumerically(">", tally(d, isData)*9/10), "%s: marks of %d", w.name, tally(d, isData))
				o := w.outside(across(w))
				Expect(tally(o, isCE)).To(BeNumerically("<", tally(o, isData)), "%s: marks when nothing is wrong", w.name)
			}},
			{"leaf1-leaf2", "kind: ecn-thresholds, kmin: 7MB, kmax: 8MB, pmax: 100%, priorities: [3]", unmarked},
			moved,
			{"leaf1-leaf2", "kind: stuck-queue, priorities: [3]", func(w *window) { w.only("data", across(w), isData, false) }},
			{"leaf1", "kind: buffer-shrink, buffer: 480KB", gone(time.Millisecond)},
			{"leaf1", "kind: buffer-alpha, alpha: 1/512", gone(time.Millisecond)},
		})
	settingsOn("are seen in pauses and in what is lost",
		four+"  override:\n    - {link: 'leaf2 -- h3', rate: 5Gbps}\nswitches:\n  memory: 1MB\n  pfc: {}\n",
		"  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 8, qp: {timeout: 7, retry_cnt: 7}}\n"+
			"  - {name: b, kind: write, from: [h2], to: [h3], size: 64KiB, duration: DURATION, depth: 8, qp: {timeout: 7, retry_cnt: 7}}\n",
		"leaf1", "leaf2", pauseSettings(gone(0)))
})

// What a linux-switch has of it: one queue a port, which red marks, and ACKs that are late on a host's link.
var _ = Describe("settings of linux-switches that are wrong for a while", bed.Tries(), func() {
	if softOnly() {
		return
	}
	settingsOn("are seen in marks, in what queues hold and in ACKs",
		four+"switches:\n  ecn: {kmin: 10KB, kmax: 60KB, pmax: 100%}\n",
		"  - {name: a, kind: write, from: [h1], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9}}\n"+
			"  - {name: b, kind: write, from: [h2], to: [h3], size: 64KiB, duration: DURATION, depth: 4, qp: {timeout: 9}}\n",
		"leaf1", "leaf2", []setting{
			{"leaf1-leaf2", "kind: ecn-off", func(w *window) {
				w.only("marks", across(w), isCE, false)
				w.changed(across(w))
			}},
			{"leaf1-leaf2", "kind: ecn-thresholds, kmin: 1MB, kmax: 2MB, pmax: 1%", func(w *window) {
				w.only("marks", across(w), isCE, false)
				w.changed(across(w))
			}},
			{"h3:eth0", "kind: ack-delay, delay: 40us", func(w *window) { w.counted(back(w), isAck) }},
			{"leaf1", "kind: buffer-shrink, buffer: 40KB", func(w *window) {
				Expect(steps(between(across(w), w.life.applied, w.life.healed+time.Millisecond))).To(BeNumerically(">", 0), "%s: packets lost or sent again", w.name)
			}},
		})
})
