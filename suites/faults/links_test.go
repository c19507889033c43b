package faults_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/datapath/roce"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
)

// struck is what a fault on the link's way from leaf1 to leaf2 did while it was in force.
type struck struct {
	*seen
	left, came []frame
	fault      record.Fault
}

// bulk is enough packets of 1 KiB for what is counted, in messages of 64.
func bulk() string {
	messages := 128
	switch bed.Backend() {
	case testbed.Soft:
		messages = 40
	case testbed.Kernel:
		messages = 16
	}
	return fmt.Sprintf("  - {name: w, kind: write, from: [h1], to: [h2], start: 500us, size: 64KiB, messages: %d, depth: 4, qp: {mtu: 1024, timeout: 9}}\n", messages)
}

// single packets, each when the one before has been answered: nothing waits for anything else.
func pings() string {
	messages := 600
	if bed.Backend() != testbed.Sim {
		messages = 120
	}
	return fmt.Sprintf("  - {name: w, kind: write, mode: latency, from: [h1], to: [h2], start: 500us, size: 64, messages: %d, qp: {timeout: 12}}\n", messages)
}

// fate is what became of a flow's packets on a link that keeps their order: times that each came, and whether it came damaged.
type fate struct {
	times   int
	damaged bool
}

// flows are packets by the queue pair that they go to: the kernel spreads flows over processors, and one may overtake another.
func flows(all []frame) (out [][]frame) {
	var seen []uint32
	for i := range all {
		if qp := all[i].DestQP(); !slices.Contains(seen, qp) {
			seen = append(seen, qp)
			out = append(out, ofFlow(all, qp))
		}
	}
	return out
}

// ofFlow are the packets to a queue pair.
func ofFlow(all []frame, qp uint32) []frame {
	return slices.DeleteFunc(slices.Clone(all), func(f frame) bool { return f.DestQP() != qp })
}

// fates aligns what left with what came; what can't be explained by loss, copies and single flipped bits behind the UDP header fails.
func fates(left, came []frame) []fate {
	GinkgoHelper()
	out := make([]fate, len(left))
	j := 0
	for i := range left {
		for j < len(came) {
			if bytes.Equal(left[i].data, came[j].data) {
				out[i].times++
				j++
				continue
			}
			w := wanted{data: left[i].data, hurtFrom: bth, hurtTo: len(left[i].data)}
			if out[i].times == 0 && w.is(&came[j]) {
				out[i] = fate{1, true}
				j++
			}
			break
		}
	}
	Expect(j).To(Equal(len(came)), "packets that came, explained by those that left; the next is of %d bytes", lenAt(came, j))
	return out
}

func lenAt(all []frame, i int) int {
	if i < len(all) {
		return len(all[i].data)
	}
	return 0
}

// count counts fates.
func count(all []fate, is func(fate) bool) (n int) {
	for _, f := range all {
		if is(f) {
			n++
		}
	}
	return n
}

func lost(f fate) bool    { return f.times == 0 }
func twice(f fate) bool   { return f.times == 2 }
func damaged(f fate) bool { return f.damaged }

// hit checks the counted hits against packets.
func (s *struck) hit(what string, n int) {
	GinkgoHelper()
	Expect(s.fault.Hits).To(BeEquivalentTo(n), "hits counted, and packets %s", what)
}

func linkRow(name, workloads, fault string, judge func(*struck)) TableEntry {
	covers(fault)
	return Entry(name, func() string { return dumbbell(underFault(workloads, "direction: egress, "+fault)) }, judge, SpecTimeout(time.Minute))
}

var _ = DescribeTable("faults on a link change the share of packets that they say, as they say", bed.Tries(),
	func(ctx SpecContext, source func() string, judge func(*struck)) {
		s := observe(ctx, source(), "leaf1", "leaf2")
		Expect(s.Result).To(match.Pass())
		_, since := s.quiet("it")
		s.ways[1].unchanged(0)
		s.ways[0].unchanged(since)
		judge(&struck{s, between(s.ways[0].left, 0, since), between(s.ways[0].came, 0, since), s.healthy("it", 1)})
	},
	linkRow("loss: by lot", bulk(), "kind: loss, probability: 2%", func(s *struck) {
		f := fates(s.left, s.came)
		n := count(f, lost)
		s.hit("missing", n)
		expectShare("loss", n, len(f), 0.02)
	}),
	linkRow("loss: every nth, exactly", bulk(), "kind: loss, every_nth: 200", func(s *struck) {
		f := fates(s.left, s.came)
		for i := range f {
			Expect(lost(f[i])).To(Equal(i%200 == 199), "packet %d is missing", i+1)
		}
		s.hit("missing", count(f, lost))
	}),
	// In the bad state all is lost, so the bursts are the state's: a packet begins one with the probability p, and ends it with r.
	linkRow("loss: bursts", bulk(), "kind: loss, gilbert_elliott: {p: 1%, r: 30%, loss_bad: 100%}", func(s *struck) {
		f := fates(s.left, s.came)
		n, bursts := count(f, lost), 0
		for i := range f {
			if lost(f[i]) && (i == 0 || !lost(f[i-1])) {
				bursts++
			}
		}
		s.hit("missing", n)
		expectShare("bursts that began", bursts, len(f)-n, 0.01)
		expectShare("ends of bursts among lost packets", bursts, n, 0.3)
	}),
	// Loss of the two-state chain: of n packets n q on average, q = p/(p+r) h, and the variance is n q (1−q) and what the states' memory λ = 1−p−r adds:
	// 2 n h² π (1−π) λ/(1−λ).
	linkRow("loss: half of what meets bad times", bulk(), "kind: loss, gilbert_elliott: {p: 2%, r: 30%, loss_bad: 50%}", func(s *struck) {
		f := fates(s.left, s.came)
		n, k := float64(len(f)), float64(count(f, lost))
		s.hit("missing", int(k))
		const p, r, h = 0.02, 0.3, 0.5
		pi, lambda := p/(p+r), 1-p-r
		q := pi * h
		sigma := math.Sqrt(n*q*(1-q) + 2*n*h*h*pi*(1-pi)*lambda/(1-lambda))
		Expect(k).To(BeNumerically("~", n*q, 3.29*sigma), "lost of %v", n)
	}),
	linkRow("duplicate", bulk(), "kind: duplicate, probability: 3%", func(s *struck) {
		f := fates(s.left, s.came)
		Expect(count(f, lost)).To(BeZero())
		s.hit("that came twice", count(f, twice))
		expectShare("copies", count(f, twice), len(f), 0.03)
	}),
	linkRow("corrupt", bulk(), "kind: corrupt, probability: 2%", func(s *struck) {
		f := fates(s.left, s.came)
		Expect(count(f, lost)).To(BeZero())
		s.hit("damaged", count(f, damaged))
		expectShare("damaged", count(f, damaged), len(f), 0.02)
	}),
	// A packet of n bits is whole with (1−ber)^n: of the packets of one length each is damaged or not by itself.
	linkRow("bit errors", bulk(), "kind: bit-error, ber: 2e-6", func(s *struck) {
		f := fates(s.left, s.came)
		Expect(count(f, lost)).To(BeZero())
		s.hit("damaged", count(f, damaged))
		longest := 0
		for i := range s.left {
			longest = max(longest, len(s.left[i].data))
		}
		n, k := 0, 0
		for i := range s.left {
			if len(s.left[i].data) > 1024 {
				n++
				if damaged(f[i]) {
					k++
				}
			}
		}
		expectShare("damaged", k, n, -math.Expm1(float64(8*longest)*math.Log1p(-2e-6)))
	}),
	linkRow("delay: the same for all", bulk(), "kind: delay, delay: 20us", func(s *struck) {
		for i, took := range s.delays() {
			if bed.Backend() == testbed.Sim {
				Expect(took).To(Equal(20*time.Microsecond+linkDelay), "packet %d", i)
			}
			Expect(took).To(BeNumerically(">=", 20*time.Microsecond), "packet %d", i)
		}
		s.hit("that were late", len(s.left))
	}),
	jitterRow("uniform", func(u float64) float64 { return 2*u - 1 }),
	jitterRow("normal", normalQuantile),
	jitterRow("pareto", paretoQuantile),
	jitterRow("paretonormal", func(u float64) float64 { return normalQuantile(u)/4 + paretoQuantile(u)*3/4 }),
	linkRow("reorder: some are not held", bulk(), "kind: reorder, probability: 2.5%, delay: 20us, gap: 5", func(s *struck) {
		early := s.early()
		n := 0
		for _, e := range early {
			if e {
				n++
			}
		}
		if bed.Backend() != testbed.Sim { // whoever comes early shows only where somebody was under way
			Expect(n).To(BeNumerically(">", 0), "packets that overtook")
			expectShare("early", int(s.fault.Hits), len(early)-4*int(s.fault.Hits), 0.025)
			return
		}
		trials, since := 0, 0
		for i := range early {
			if since++; since < 5 {
				Expect(early[i]).To(BeFalse(), "packet %d came early, %d after the last one", i, since)
				continue
			}
			trials++
			if early[i] {
				since = 0
			}
		}
		s.hit("that came early", n)
		expectShare("early", n, trials, 0.025)
	}),
	linkRow("reorder: some are held until others have passed", bulk(), "kind: reorder, probability: 1%, window: 3", func(s *struck) {
		n := s.heldBack(3)
		s.hit("that three overtook", n)
		expectShare("held", n, len(s.left), 0.01)
	}),
	linkRow("rate", bulk(), "kind: rate, rate: 1Gbps", func(s *struck) {
		f := fates(s.left, s.came)
		Expect(count(f, lost)).To(BeZero())
		s.hit("that went through", len(f))
		n, from, to := 0, s.came[0].at, s.came[len(s.came)-1].at
		for i := 1; i < len(s.came); i++ {
			n += len(s.came[i].data) + 24 // preamble, check sequence and gap
		}
		carried := float64(8*n) / (to - from).Seconds()
		// A token bucket lets a burst through at the start.
		Expect(carried).To(And(BeNumerically("<", 1.05e9), BeNumerically(">", 0.5e9)), "bits a second that came")
		if bed.Backend() == testbed.Sim {
			for i := 1; i < len(s.left); i++ {
				Expect(s.left[i].at-s.left[i-1].at).To(BeNumerically(">=", time.Duration(len(s.left[i].data)+24)*8-1), "packet %d after the one before", i)
			}
		}
	}),
	// The first packet of a WRITE has an IP packet of 1084 bytes, all others of 1068 at most.
	linkRow("mtu: what is longer vanishes",
		"  - {name: big, kind: write, from: [h1], to: [h2], start: 500us, size: 8KiB, messages: 2, qp: {mtu: 1024, timeout: 12, retry_cnt: 7}}\n"+
			"  - {name: w, kind: send, from: [h1], to: [h2], start: 500us, size: 16KiB, messages: 20, qp: {mtu: 1024}}\n",
		"kind: mtu, mtu: 1083", func(s *struck) {
			missing := 0
			for _, left := range flows(s.left) {
				f := fates(left, ofFlow(s.came, left[0].DestQP()))
				for i := range f {
					long := int(binary.BigEndian.Uint16(left[i].data[16:])) > 1083
					Expect(lost(f[i])).To(Equal(long && left[i].at < s.lives("it")[0].healed), "an IP packet of %d bytes is missing", len(left[i].data)-l3)
				}
				missing += count(f, lost)
			}
			s.hit("missing", missing)
		}),
)

// delays are how long each packet was under way, of those that came in their order.
func (s *struck) delays() (out []time.Duration) {
	GinkgoHelper()
	Expect(s.came).To(HaveLen(len(s.left)))
	for i := range s.left {
		if !bytes.Equal(s.left[i].data, s.came[i].data) {
			Fail(fmt.Sprintf("packet %d came as another one", i))
		}
		out = append(out, s.came[i].at-s.left[i].at)
	}
	return out
}

// jitterRow is a row about a distribution, by its quantiles in units of the jitter.
func jitterRow(name string, quantile func(u float64) float64) TableEntry {
	const mean, jitter = 100 * time.Microsecond, 20 * time.Microsecond
	return linkRow("jitter: "+name, pings(), fmt.Sprintf("kind: delay, delay: %v, jitter: %v, distribution: %s", mean, jitter, name), func(s *struck) {
		GinkgoHelper()
		took := s.delays()
		s.hit("that were late", len(took))
		slack := linkDelay
		if bed.Backend() != testbed.Sim { // the machine's own, which is small beside the jitter
			slack = 6 * time.Microsecond
		}
		for _, u := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
			at := mean + time.Duration(quantile(u)*float64(jitter))
			below := func(t time.Duration) (n int) {
				for _, d := range took {
					if d <= t {
						n++
					}
				}
				return n
			}
			_, high := shares(below(at+slack), len(took), risk)
			low, _ := shares(below(at), len(took), risk)
			Expect(u).To(And(BeNumerically(">=", low), BeNumerically("<=", high)), "%d to %d of %d took no longer than %v", below(at), below(at+slack), len(took), at)
		}
	})
}

func normalQuantile(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// paretoQuantile is of the distribution with a = 3, which has mean 3/2 and variance 3/4, moved to 0 and 1.
func paretoQuantile(u float64) float64 { return (math.Pow(1-u, -1.0/3) - 1.5) / math.Sqrt(0.75) }

// early are the packets that were not held: those that came when the link's delay was over, or in real time those that overtook.
func (s *struck) early() []bool {
	GinkgoHelper()
	Expect(s.came).To(HaveLen(len(s.left)))
	when := map[string][]int{}
	for i := range s.came {
		when[string(s.came[i].data)] = append(when[string(s.came[i].data)], i)
	}
	place := make([]int, len(s.left))
	out := make([]bool, len(s.left))
	for i := range s.left {
		k := string(s.left[i].data)
		Expect(when[k]).NotTo(BeEmpty(), "packet %d came", i)
		at := 0
		if bed.Backend() == testbed.Sim { // of equal ones, which overtake each other, the time says which it is
			at = slices.IndexFunc(when[k], func(j int) bool {
				took := s.came[j].at - s.left[i].at
				return took == linkDelay || took == 20*time.Microsecond+linkDelay
			})
			Expect(at).To(BeNumerically(">=", 0), "packet %d took the link's time, or that and what it was held for", i)
			out[i] = s.came[when[k][at]].at-s.left[i].at == linkDelay
		}
		place[i] = when[k][at]
		when[k] = slices.Delete(when[k], at, at+1)
	}
	if bed.Backend() != testbed.Sim {
		furthest := -1
		for i := range place {
			out[i] = place[i] < furthest
			furthest = max(furthest, place[i])
		}
	}
	return out
}

// heldBack counts the packets that exactly so many overtook; any other order fails.
func (s *struck) heldBack(window int) (n int) {
	GinkgoHelper()
	type waiting struct {
		data []byte
		left int
	}
	var held []waiting
	next := 0
	for j := range s.came {
		if at := slices.IndexFunc(held, func(w waiting) bool { return w.left == 0 }); at >= 0 {
			Expect(bytes.Equal(held[at].data, s.came[j].data)).To(BeTrue(), "packet %d of those that came is the one that %d have overtaken", j, window)
			held = slices.Delete(held, at, at+1)
		} else {
			for next < len(s.left) && !bytes.Equal(s.left[next].data, s.came[j].data) {
				held = append(held, waiting{s.left[next].data, window})
				n++
				next++
			}
			Expect(next).To(BeNumerically("<", len(s.left)), "packet %d of those that came had left", j)
			next++
		}
		for i := range held {
			if held[i].left > 0 {
				held[i].left--
			}
		}
	}
	Expect(held).To(BeEmpty(), "packets that never came")
	return n
}

var _ = roce.Port
