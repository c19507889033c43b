package faults_test

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

// What befalls a host, its NIC's queue pairs or a switch as a whole: seen between the switches.

// writes is traffic that goes on for some time; ends may be added to.
func writes(more string) string {
	return "  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 5ms, depth: 2, qps: 2, qp: {mtu: 1024, timeout: 8, retry_cnt: 2}" + more + "}\n"
}

// goesOn is traffic that outlives a few milliseconds without an answer.
const goesOn = "  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 8ms, depth: 2, qps: 2, qp: {mtu: 1024, timeout: 8, retry_cnt: 6}}\n"

const failing = ", expect_error: retry-exceeded"

func hostRow(name, workloads, fault string, judge func(s *seen, l life)) TableEntry {
	covers(fault)
	return Entry(name, fault, func() string {
		return dumbbell("workloads:\n", workloads, "faults:\n  - {name: it, "+fault+"}\n")
	}, judge, SpecTimeout(time.Minute))
}

// silent checks that nothing came one way for sure while something lasted.
func (s *seen) silent(way int, from, to time.Duration) {
	GinkgoHelper()
	n := tally(between(s.ways[way].came, from+2*margin(), to-margin()), func(f *frame) bool { return f.isRoCE() })
	Expect(n).To(BeZero(), "RoCE packets that came to %v", s.ways[way].to)
}

func isRNR(f *frame) bool { return f.isRoCE() && f.Opcode() == 0x11 && byte(f.AETH().Syndrome)>>5 == 1 }

const window3 = "schedule: {at: 1ms, for: 1ms}"

var _ = DescribeTable("what befalls hosts and switches", bed.Tries(),
	func(ctx SpecContext, fault string, source func() string, judge func(s *seen, l life)) {
		if why := testbed.CanFault(bed.Backend(), "{name: x, "+fault+"}"); why != nil && strings.Contains(fault, "at: [") {
			Expect(why.Error()).NotTo(BeEmpty()) // refused: the table of refusals is about it
			return
		}
		s := observe(ctx, source(), "leaf1", "leaf2")
		Expect(s.Result).To(match.Pass())
		s.healthy("it", 1)
		l := s.lives("it")
		Expect(l).To(HaveLen(1))
		judge(s, l[0])
	},
	hostRow("rnr: no receives are posted, and SENDs are answered by RNR NAKs",
		"  - {name: w, kind: send, from: [h1], to: [h2], size: 4KiB, messages: 200, depth: 16, start: 500us, qp: {min_rnr_timer: 1, rnr_retry: 7}}\n",
		"at: ['h2:eth0'], kind: rnr, schedule: {at: 600us, for: 2ms}", func(s *seen, l life) {
			Expect(tally(between(s.ways[1].came, l.applied, l.healed+margin()), isRNR)).To(BeNumerically(">", 0), "RNR NAKs")
			Expect(tally(between(s.ways[1].came, l.healed+time.Millisecond, 1<<62), isRNR)).To(BeZero(), "RNR NAKs when it is over")
		}),
	hostRow("qp-kill: the queue pair that is named, and no other", writes(failing), "at: ['h2:eth0'], kind: qp-kill, workload: w, flows: 1, schedule: {at: 1ms}",
		func(s *seen, _ life) {
			Expect(s.Fault("it").Hits).To(BeEquivalentTo(1))
			flows := s.Workload("w").Flows
			Expect(flows[0].Errors).To(BeZero(), "errors of flow 0")
			Expect(flows[1].Errors).To(BeNumerically(">", 0), "errors of flow 1")
		}),
	hostRow("nic-reset: all queue pairs", writes(failing), "at: ['h2:eth0'], kind: nic-reset, schedule: {at: 1ms}",
		func(s *seen, l life) {
			Expect(s.Fault("it").Hits).To(BeEquivalentTo(2))
			s.silent(1, l.applied, 1<<62)
		}),
	hostRow("nic-reset: the port goes down, too", writes(failing), "at: ['h2:eth0'], kind: nic-reset, down: 1ms, schedule: {at: 1ms}",
		func(s *seen, l life) {
			Expect(s.Fault("it").Hits).To(BeEquivalentTo(2))
			s.silent(1, l.applied, 1<<62)
		}),
	hostRow("process-pause: the host stands still, and goes on", "  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 5ms, depth: 2, qp: {mtu: 1024, timeout: 10, retry_cnt: 6}}\n",
		"at: [h1], kind: process-pause, "+window3, func(s *seen, l life) {
			if softOnly() { // rxe sends what it was given before
				s.silent(0, l.applied, l.healed)
			}
			Expect(between(s.ways[0].came, l.healed+margin(), 1<<62)).NotTo(BeEmpty(), "packets that came when it was over")
		}),
	hostRow("process-kill: nobody answers any more", writes(failing), "at: [h2], kind: process-kill, schedule: {at: 1ms}", func(s *seen, l life) {
		s.silent(1, l.applied, 1<<62)
	}),
	hostRow("wrong-gid: from an address that nobody has", goesOn, "at: ['h1:eth0'], kind: wrong-gid, schedule: {at: 1ms, for: 2500us}", func(s *seen, l life) { s.wrongGID(l, netip.Addr{}) }),
	hostRow("wrong-gid: from an address that is given", goesOn, "at: ['h1:eth0'], kind: wrong-gid, addr: 10.99.0.1, schedule: {at: 1ms, for: 2500us}", func(s *seen, l life) {
		s.wrongGID(l, netip.MustParseAddr("10.99.0.1"))
	}),
	hostRow("reboot: nothing crosses, and it comes back", "  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 6ms, depth: 2, qp: {mtu: 1024, timeout: 7, retry_cnt: 7}}\n",
		"at: [leaf1], kind: reboot, down: 1500us, schedule: {at: 1ms, for: 2ms}", func(s *seen, l life) {
			s.silent(0, l.applied, s.zero+2500*time.Microsecond)
			Expect(between(s.ways[0].came, l.healed+margin(), 1<<62)).NotTo(BeEmpty(), "packets that came when it was back")
		}),
	hostRow("gpu-straggler: each step waits", ring, "at: [h1], gpus: [0], kind: gpu-straggler, delay: 100us", straggled),
	hostRow("gpu-straggler: at half the speed", ring, "at: [h1], kind: gpu-straggler, speed: 50%", straggled),
)

const ring = "  - {name: w, kind: all-reduce, size: 256KiB, slice: 64KiB, messages: 3}\n"

// straggled: an all-reduce over two ranks has four steps a rank and iteration, or two where both directions are one.
func straggled(s *seen, _ life) {
	GinkgoHelper()
	Expect(s.Fault("it").Hits).To(BeNumerically(">=", 6))
	Expect(s.Workload("w")).To(match.BeIntact())
}

// wrongGID checks whom packets say to be from.
func (s *seen) wrongGID(l life, given netip.Addr) {
	GinkgoHelper()
	own, _ := s.scenario.Plan.Port(s.scenario.Topology.NICs()[0])
	foreign := func(f *frame) bool {
		a := netip.AddrFrom16(f.SrcAddr()).Unmap()
		return f.isRoCE() && a != own.Addr.Addr() && (!given.IsValid() || a == given)
	}
	n := tally(s.ways[0].came, foreign)
	Expect(n).To(BeNumerically(">", 0), "packets from another address")
	Expect(s.Fault("it").Hits).To(BeEquivalentTo(n), "hits, and packets from another address")
	Expect(tally(between(s.ways[0].came, 0, s.zero+time.Millisecond-margin()), foreign)).To(BeZero(), "such packets before")
	Expect(tally(between(s.ways[0].came, l.healed+margin(), 1<<62), foreign)).To(BeZero(), "such packets after")
	Expect(tally(between(s.ways[0].came, l.applied+2*margin(), l.healed-margin()), func(f *frame) bool { return f.isRoCE() && !foreign(f) })).To(BeZero(), "packets from its own address meanwhile")
}

// Two spines: what faults do to routes, and to hashes.
const spines = `topology:
  spine-leaf: {spines: 2, leaves: 2, hosts_per_leaf: 1}
  rate: 10Gbps
`

var _ = Describe("routes and hashes", bed.Tries(), func() {
	qps := 16
	if bed.Backend() == testbed.Kernel {
		qps = 6
	}
	many := fmt.Sprintf("workloads:\n  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 6ms, depth: 1, qps: %d, qp: {mtu: 1024, timeout: 8, retry_cnt: 6}}\n", qps)
	begin := func() string {
		return fmt.Sprintf("apiVersion: rocebed/v1\nname: routes\nseed: 23\ndilation: %d\n", dilation())
	}
	for _, late := range []bool{false, true} {
		word := "at once"
		fault := ""
		if late {
			word = "late"
			fault = "kind: route-late, delay: 2ms"
			covers(fault)
			fault = "  - {name: it, at: ['leaf*', 'spine*'], " + fault + "}\n"
		}
		It("follow a link that goes down "+word, func(ctx SpecContext) {
			s := observe(ctx, begin()+spines+many+"faults:\n"+fault+"  - {name: cut, kind: down, at: [spine1-leaf2], schedule: {at: 2ms, for: 3ms}}\n", "leaf1", "spine1")
			Expect(s.Result).To(match.Pass())
			into := tally(between(s.ways[0].came, s.zero+2*time.Millisecond+3*margin(), s.zero+4*time.Millisecond-margin()), func(f *frame) bool { return f.isRoCE() })
			if late {
				s.healthy("it", 1)
				Expect(into).To(BeNumerically(">", 0), "packets to the spine that reaches nobody")
				return
			}
			Expect(into).To(BeZero(), "packets to the spine that reaches nobody")
		}, SpecTimeout(time.Minute))
	}
	It("are the same everywhere with one seed", func(ctx SpecContext) {
		covers("kind: hash-seed, hash_seed: 7")
		s := observe(ctx, begin()+spines+many+"faults:\n  - {name: it, kind: hash-seed, hash_seed: 7, at: ['leaf*', 'spine*'], schedule: {at: 2ms, for: 2ms}}\n", "leaf1", "spine1")
		Expect(s.Result).To(match.Pass())
		s.healthy("it", 1)
		Expect(s.flowsChange()).To(BeTrue(), "some flow takes another way while the seed is another one")
	}, SpecTimeout(time.Minute))
	covers("kind: hash-seed, hash_seed: 7")
	covers("kind: watchdog-off")
	It("need no watchdog to be left alone: a storm goes on", func(ctx SpecContext) {
		scenario := func(off string) string {
			return dumbbell("switches: {memory: 8MB, pfc: {}, watchdog: {detect: 300us, restore: 300us}}\n",
				"workloads:\n  - {name: w, kind: write, from: [h1], to: [h2], size: 16KiB, duration: 6ms, depth: 4, qp: {timeout: 9, retry_cnt: 7}}\n",
				"faults:\n", off, "  - {name: storm, kind: pfc-storm, at: ['h2:eth0'], schedule: {at: 1ms, for: 2ms}}\n")
		}
		s := bed.Run(ctx, scenario(""))
		Expect(s).To(match.Count("pfc_storms", BeNumerically(">", 0)))
		s = bed.Run(ctx, scenario("  - {name: it, kind: watchdog-off, at: ['leaf*']}\n"))
		Expect(s).To(match.Pass())
		Expect(s.Fault("it").Hits).To(BeEquivalentTo(2), "switches")
		Expect(s).To(match.Count("pfc_storms", BeZero()))
	}, SpecTimeout(time.Minute))
})

// The last packet of a message is lost, so that the requester's timer ends (exponent 8: 1.05 ms of its own clock). It is awaited for twice as long
// where its clock runs at half the speed.
var _ = Describe("a host's clock", func() {
	lost := func(speed string) string {
		slow := ""
		if speed != "" {
			slow = "  - {name: it, kind: slow-clock, at: [h1], speed: " + speed + "}\n"
		}
		return dumbbell("workloads:\n  - {name: w, kind: write, from: [h1], to: [h2], start: 1ms, size: 16KiB, messages: 1, qp: {mtu: 1024, timeout: 8}}\n",
			"faults:\n", slow, "  - {name: lost, kind: packets, at: [leaf1-leaf2], direction: egress, events: [{match: {class: write, message: last, iteration: 1}, do: drop}]}\n")
	}
	if testbed.CanFault(bed.Backend(), "{name: x, kind: slow-clock, at: [h1], speed: 50%}") != nil {
		return
	}
	covers("kind: slow-clock, speed: 50%")
	It("that runs slow ends timers late", func(ctx SpecContext) {
		right, slow := bed.Run(ctx, lost("")), bed.Run(ctx, lost("50%"))
		Expect(right).To(match.Pass())
		Expect(slow).To(match.Pass())
		Expect(slow.Fault("it").Hits).To(BeNumerically(">", 0))
		a, b := right.Fault("lost").Recoveries, slow.Fault("lost").Recoveries
		Expect(a).To(HaveLen(1))
		Expect(b).To(HaveLen(1))
		Expect(float64(b[0].Took)/float64(a[0].Took)).To(BeNumerically("~", 2, 0.15), "%v at the right speed, %v at half of it", a[0], b[0])
	}, SpecTimeout(time.Minute))
})

// flowsChange says whether a queue pair's packets took this link only while the fault lasted, or only while it didn't.
func (s *seen) flowsChange() bool {
	l := s.lives("it")[0]
	on := func(from, to time.Duration) map[uint32]bool {
		m := map[uint32]bool{}
		for _, f := range between(s.ways[0].came, from, to) {
			if isData(&f) {
				m[f.DestQP()] = true
			}
		}
		return m
	}
	before, during := on(0, s.zero+2*time.Millisecond-margin()), on(l.applied+3*margin(), l.healed-margin())
	for q := range before {
		if !during[q] {
			return true
		}
	}
	for q := range during {
		if !before[q] {
			return true
		}
	}
	return false
}
