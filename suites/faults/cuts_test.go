package faults_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

// Links that carry nothing for a while: the workload runs before, during and after.

// long is traffic that is under way when a link is cut after 2 ms and after it is mended.
const long = `workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 9ms, depth: 4, qp: {mtu: 1024, timeout: 8, retry_cnt: 7}}
  - {name: tail, kind: write, from: [h1], to: [h2], after: w, start: 500us, messages: 2}
`

// margin is how far from a fault's beginning and end packets may be on either side, in fabric time: what is on the way when a capture says when it passed, and
// on veths the machine's own.
func margin() time.Duration {
	if bed.Backend() == testbed.Sim {
		return 10 * time.Microsecond
	}
	return 150 * time.Microsecond
}

func cutRow(name, fault string, judge func(s *seen, l life)) TableEntry {
	covers(fault)
	if !strings.Contains(fault, "schedule") {
		fault += ", schedule: {at: 2ms, for: 2800us}"
	}
	workloads := long
	switch { // timers that end while a flapping link is up
	case strings.Contains(fault, "exponential"):
		workloads = strings.Replace(long, "timeout: 8", "timeout: 6", 1)
	case strings.Contains(fault, "flap"):
		workloads = strings.Replace(long, "timeout: 8", "timeout: 7", 1)
	}
	return Entry(name, func() string { return dumbbell(workloads, "faults:\n  - {name: it, at: [leaf1-leaf2], "+fault+"}\n") }, judge, SpecTimeout(time.Minute))
}

// nothing checks that no packet came one way for sure while the fault lasted, and that packets came before and after.
func (w *way) nothing(l life) {
	GinkgoHelper()
	Expect(between(w.came, l.applied+margin(), l.healed-margin())).To(BeEmpty(), "packets that came to %v meanwhile", w.to)
	w.around(l)
}

// around checks that packets came before and after.
func (w *way) around(l life) {
	GinkgoHelper()
	Expect(between(w.came, 0, l.applied-margin())).NotTo(BeEmpty(), "packets that came to %v before", w.to)
	Expect(between(w.came, l.healed+margin(), 1<<62)).NotTo(BeEmpty(), "packets that came to %v after", w.to)
}

// missing is how many packets that left never came. All others came as they were and in their order.
func (w *way) missing() int {
	GinkgoHelper()
	f := fates(w.left, w.came)
	Expect(count(f, damaged)+count(f, twice)).To(BeZero(), "damaged or doubled on the way to %v", w.to)
	return count(f, lost)
}

var _ = DescribeTable("links that carry nothing for a while", bed.Tries(),
	func(ctx SpecContext, source func() string, judge func(s *seen, l life)) {
		s := observe(ctx, source(), "leaf1", "leaf2")
		Expect(s.Result).To(match.Pass())
		s.healthy("it", 1)
		lives := s.lives("it")
		Expect(lives).To(HaveLen(1))
		judge(s, lives[0])
		var tail time.Duration
		for _, e := range s.Events {
			if e.Source == "workload" && e.Name == "tail" && e.What == "started" {
				tail = s.zero + e.At
			}
		}
		for i := range s.ways {
			s.ways[i].unchanged(tail)
		}
	},
	cutRow("down: nothing passes, and both ends lose their carrier once", "kind: down", func(s *seen, l life) {
		s.ways[0].nothing(l)
		s.ways[1].nothing(l)
		Expect(s.Fault("it").Hits).To(BeEquivalentTo(2))
	}),
	cutRow("flap: down for a part of each period", "kind: flap, period: 1ms, down: 300us", func(s *seen, l life) { s.flapped(l, 3, 4) }),
	cutRow("flap: by its duty", "kind: flap, period: 1ms, duty: 30%", func(s *seen, l life) { s.flapped(l, 3, 4) }),
	cutRow("flap: at random", "kind: flap, period: 500us, duty: 30%, distribution: exponential", func(s *seen, l life) { s.flapped(l, 1, 20) }),
	cutRow("unidirectional: one way vanishes", "kind: unidirectional, direction: egress", func(s *seen, l life) {
		s.ways[0].nothing(l)
		Expect(s.Fault("it").Hits).To(BeEquivalentTo(s.ways[0].missing()), "hits, and packets that never came")
		Expect(s.ways[1].missing()).To(BeZero(), "packets of the other way that never came")
	}),
	cutRow("blackhole: what is routed that way vanishes", "kind: blackhole, direction: egress", func(s *seen, l life) {
		s.ways[0].nothing(l)
		Expect(s.Fault("it").Hits).To(BeEquivalentTo(s.ways[0].missing()), "hits, and packets that never came")
		Expect(s.ways[1].missing()).To(BeZero(), "packets of the other way that never came")
	}),
)

// flapped checks a link that went down so many times: each time both ends lost their carrier, and nothing came for a while.
func (s *seen) flapped(l life, least, most int) {
	GinkgoHelper()
	hits := int(s.Fault("it").Hits)
	Expect(hits%2).To(BeZero(), "%d losses of carrier at two ends", hits)
	Expect(hits/2).To(And(BeNumerically(">=", least), BeNumerically("<=", most)), "times that the link went down")
	s.ways[0].around(l)
	came := between(s.ways[0].came, l.applied, l.healed)
	Expect(came).NotTo(BeEmpty(), "packets between the times that it is down")
	gaps := 0
	last := l.applied
	for i := range came {
		if came[i].at-last > 200*time.Microsecond {
			gaps++
		}
		last = came[i].at
	}
	Expect(gaps).To(BeNumerically(">=", min(least, 2)), "silences of 200 µs and more")
}
