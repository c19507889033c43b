package faults_test

import (
	"bytes"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

var _ = Describe("faults on one link", func() {
	It("compose: each does what it does alone, in their order, and counts that", func(ctx SpecContext) {
		s := observe(ctx, dumbbell(underFault(bulk(),
			"direction: egress, kind: packets, events: [{match: {class: write, every: 9}, do: mark-ce}, {match: {class: write, psn: 300, iteration: 1}, do: drop}]",
			"direction: egress, kind: loss, every_nth: 150",
			"direction: egress, kind: corrupt, probability: 2%",
			"direction: egress, kind: duplicate, probability: 3%",
			"direction: egress, kind: delay, delay: 20us")), "leaf1", "leaf2")
		Expect(s.Result).To(match.Pass())
		_, since := s.quiet("it")
		s.ways[0].unchanged(since)
		s.ways[1].unchanged(0)
		left, came := between(s.ways[0].left, 0, since), between(s.ways[0].came, 0, since)

		// What packet events leave of what left is what the others get.
		want, hits := newOracle(eventsOf(s), sides(append(append([]frame{}, s.ways[0].left...), s.ways[1].left...))).predict(left, since)
		Expect(s.healthy("it", 1).Hits).To(BeEquivalentTo(hits), "packets marked or dropped by name")

		j, dropped, hurt, doubled := 0, 0, 0, 0
		for i := range want {
			is := func(f *frame) bool { return want[i].is(f) }
			hit := wanted{data: want[i].data, hurtFrom: bth, hurtTo: len(want[i].data)}
			times := 0
			for ; j < len(came); j++ {
				switch f := &came[j]; {
				case times > 0 && bytes.Equal(f.data, came[j-1].data) && f.at-came[j-1].at < 100*time.Microsecond && times < 2:
				case times > 0:
					goto next
				case is(f):
				case hit.is(f) && (i+1)%150 != 0:
					hurt++
				default:
					goto next
				}
				Expect(came[j].at-want[i].left).To(BeNumerically(">=", 20*time.Microsecond), "packet %d", i)
				times++
			}
		next:
			switch times {
			case 0:
				dropped++
				Expect((i+1)%150).To(BeZero(), "packet %d of those that the others get is missing", i+1)
			case 2:
				doubled++
			}
		}
		Expect(j).To(Equal(len(came)), "packets that came, explained")
		Expect(s.healthy("it2", 1).Hits).To(BeEquivalentTo(dropped), "packets lost")
		Expect(s.healthy("it3", 1).Hits).To(BeEquivalentTo(hurt), "packets damaged")
		Expect(s.healthy("it4", 1).Hits).To(BeEquivalentTo(doubled), "packets doubled")
		late := s.healthy("it5", 1).Hits
		Expect(late).To(And(BeNumerically(">=", len(want)-dropped), BeNumerically("<=", len(came)+dropped)), "packets late: those that were not lost, and perhaps copies or what was late first and lost then")
	}, SpecTimeout(time.Minute))

	It("are refused before anything is made, where they can't be in force together and their times say so", func() {
		for faults, why := range map[string]string{
			"  - {name: a, kind: rate, at: [leaf1-leaf2], rate: 1Gbps}\n  - {name: b, kind: rate, at: [leaf1-leaf2], rate: 2Gbps}\n":                                                                  "rate and rate both set the line's rate",
			"  - {name: a, kind: down, at: [leaf1-leaf2], schedule: {at: 1ms, for: 1ms}}\n  - {name: b, kind: flap, at: [leaf1-leaf2], period: 10ms, down: 5ms, schedule: {at: 1500us, for: 20ms}}\n": "down and flap both set the link's carrier",
		} {
			_, err := testbed.Parse("overlap.yaml", []byte(dumbbell("workloads:\n", bulk(), "faults:\n", faults)))
			Expect(err).To(MatchError(And(ContainSubstring("overlap.yaml:"), ContainSubstring(why))))
		}
	})

	It("are refused when the second one is due, where only then it is known, and the first one goes on", func(ctx SpecContext) {
		run := bed.Run(ctx, dumbbell("workloads:\n", bulk(), "  - {name: v, kind: write, from: [h1], to: [h2], messages: 8, after: w, start: 500us}\n",
			"faults:\n  - {name: a, kind: rate, at: [leaf1-leaf2], direction: egress, rate: 5Gbps}\n",
			"  - {name: b, kind: rate, at: [leaf1-leaf2], direction: egress, rate: 2Gbps, schedule: {when: workload w finished}}\n"))
		Expect(run).To(match.FailBecause("rate and rate both set the line's rate"))
		a, b := run.Fault("a"), run.Fault("b")
		Expect(a).To(And(HaveField("Hits", BeNumerically(">", 0)), HaveField("Healed", BeTrue()), HaveField("Problems", BeEmpty())))
		Expect(b).To(And(HaveField("Hits", BeZero()), HaveField("Strikes", BeZero()), HaveField("Problems", Not(BeEmpty()))))
		Expect(run.Workload("v")).To(match.BeIntact())
	}, SpecTimeout(time.Minute))
})
