//go:build linux

package mixed_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/topo"
)

// Workloads across kinds, with one thing at a time going wrong:
//
//	h1 ── leaf1 ── leaf2 ── h2
//
// h1 is a soft-host, h2 an rxe-host, leaf1 a linux-switch and leaf2 a soft-switch.
func scenario(sections ...string) string {
	return `apiVersion: rocebed/v1
name: mixed
seed: 11
backend: kernel
dilation: 256
topology:
  dumbbell: {left: 1, right: 1}
  rate: 10Gbps
  override:
    - {node: h1, kind: soft-host}
    - {node: leaf2, kind: soft-switch}
` + strings.Join(sections, "")
}

// each runs every operation both ways, each on a queue pair of its own with a timeout: "there" is requested by the soft-host.
func each(timeout int) string {
	var b strings.Builder
	b.WriteString("workloads:\n")
	after := [2]string{}
	for _, op := range []string{"write", "read", "send", "atomic"} {
		size := "size: 48KiB, messages: 8"
		if op == "atomic" {
			size = "messages: 40"
		}
		for i, way := range []string{"from: [h1], to: [h2]", "from: [h2], to: [h1]"} {
			name := op + []string{"-there", "-back"}[i]
			fmt.Fprintf(&b, "  - {name: %s, kind: %s, %s, %s, qp: {timeout: %d}", name, op, way, size, timeout)
			if after[i] != "" {
				b.WriteString(", after: " + after[i])
			}
			b.WriteString("}\n")
			after[i] = name
		}
	}
	return b.String()
}

// fault is one fault for the whole run, in flow style.
func fault(keys string) string {
	return fmt.Sprintf("faults:\n  - {name: it, %s}\n", keys)
}

func expectIntact(run *bed.Result) {
	GinkgoHelper()
	Expect(run).To(match.Pass())
	for _, w := range run.Workloads {
		Expect(w).To(match.BeIntact())
	}
	Expect(run.Workloads).To(HaveLen(8))
}

// Local ACK timeouts, 4.096 µs × 2^n of fabric time: a busy machine doesn't make the one expire, and nobody waits for long for the
// other.
const calm, quick = 13, 10

// ahead counts what shows a gap to the responder, back what makes the requester send again.
const ahead, back, dup = "out_of_seq_request", "completer_retry_err", "duplicate_request"

var _ = Describe("workloads between a soft-host and an rxe-host", func() {
	It("move every operation's data both ways, and NICs count what passes their ports", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(each(calm)), topo.PortRef{Node: "h1", Port: "eth0"}, topo.PortRef{Node: "h2", Port: "eth0"})
		expectIntact(run)
		for _, counter := range []string{ahead, back, dup, "rcvd_seq_err", "retry_exceeded_err", "send_err", "stray_packets", "rx_icrc_encapsulated",
			"qdisc_drops", "port_drops", "socket_dropped", "socket_refused", "softnet_dropped"} {
			Expect(run).To(match.Count(counter, BeZero()))
		}
	}, SpecTimeout(2*time.Minute))

	DescribeTable("keep every operation's data intact, both ways",
		func(ctx SpecContext, keys string, hosts, moved []string) {
			run := bed.Run(ctx, scenario(each(quick), fault(keys)))
			expectIntact(run)
			Expect(run.Fault("it")).To(And(HaveField("Hits", BeNumerically(">", 0)), HaveField("Healed", BeTrue()), HaveField("Verified", BeTrue())))
			for _, counter := range moved {
				for _, host := range hosts {
					Expect(run).To(match.Count(counter, BeNumerically(">", 0), host))
				}
			}
			Expect(run).To(match.Count("retry_exceeded_err", BeZero()))
			Expect(run).To(match.Count("socket_refused", BeZero()))
		},
		// Enough of them for both to see and to mend.
		Entry("when packets are lost at random", "at: [leaf1-leaf2], kind: loss, probability: 4%", []string{"node=h1", "node=h2"}, []string{ahead, back}, SpecTimeout(3*time.Minute)),
		intact("when packets are lost in bursts on the soft-host's link", "at: [h1-leaf1], kind: loss, gilbert_elliott: {p: 1%, r: 30%, loss_bad: 60%, loss_good: 0%}", ahead, back),
		intact("when packets arrive twice", "at: [leaf1-leaf2], kind: duplicate, probability: 5%", dup),
		intact("when packets overtake each other", "at: [leaf1-leaf2], kind: reorder, probability: 2%, delay: 100us", ahead, back),
		intact("when a bit flips now and then", "at: [leaf1-leaf2], kind: corrupt, probability: 2%", ahead, back),
		intact("when the soft-host's link carries a tenth", "at: [h1-leaf1], kind: rate, rate: 1Gbps"),
		intact("when the soft-host's link is down for a while", "at: [h1-leaf1], kind: down, schedule: {at: 1ms, for: 2ms}", back),
		intact("when the link between the switches is down for a while", "at: [leaf1-leaf2], kind: down, schedule: {at: 1ms, for: 2ms}", back),
		intact("when the rxe-host's link flaps", "at: [leaf2-h2], kind: flap, period: 12ms, down: 500us, schedule: {at: 1ms}", back),
	)

	// A linux-switch marks what two hosts send to one; that one, whose NIC knows DCQCN, tells both. The soft-host slows down. The
	// rxe-host hears of it and does nothing, not even harm.
	It("carry congestion's marks from a linux-switch and CNPs back", func(ctx SpecContext) {
		run := bed.Run(ctx, `apiVersion: rocebed/v1
name: mixed-dcqcn
seed: 11
backend: kernel
dilation: 256
topology:
  star: {hosts: 3}
  rate: 10Gbps
  override:
    - {node: "h[13]", kind: soft-host}
nics:
  override:
    - {node: "h[13]", dcqcn: paper}
switches:
  ecn: {kmin: 20KB, kmax: 100KB, pmax: 50%}
workloads:
  - {name: soft, kind: write, from: [h3], to: [h1], size: 64KiB, messages: 40, qp: {timeout: 12}}
  - {name: rxe, kind: write, from: [h2], to: [h1], size: 64KiB, messages: 40, qp: {timeout: 12}}
`)
		Expect(run).To(match.Pass())
		for _, w := range run.Workloads {
			Expect(w).To(match.BeIntact())
		}
		Expect(run).To(match.Count("ecn_marked", BeNumerically(">", 0), "node=leaf1"))
		Expect(run).To(match.Count("np_ecn_marked_roce_packets", BeNumerically(">", 0), "node=h1"))
		Expect(run).To(match.Count("np_cnp_sent", BeNumerically(">", 0), "node=h1"))
		Expect(run).To(match.Count("rp_cnp_handled", BeNumerically(">", 0), "node=h3"))
		Expect(run).To(match.Count("retry_exceeded_err", BeZero()))
	}, SpecTimeout(2*time.Minute))

	// A propagation delay is the cable's: six links there and back. A port that held frames as well would add one for each of its
	// own, and half of one is more than the machine takes for the rest.
	It("take the links' delay once", func(ctx SpecContext) {
		const delay = 500 * time.Microsecond
		run := bed.Run(ctx, strings.Replace(scenario(`workloads:
  - {name: there, kind: write, mode: latency, from: [h1], to: [h2], size: 64, messages: 6, qp: {timeout: 14}}
  - {name: back, kind: write, mode: latency, from: [h2], to: [h1], size: 64, messages: 6, after: there, qp: {timeout: 14}}
`), "rate: 10Gbps", "rate: 10Gbps\n  delay: 500us", 1))
		Expect(run).To(match.Pass())
		for _, name := range []string{"there", "back"} {
			Expect(run.Workload(name).Latency.Min).To(And(BeNumerically(">=", 6*delay), BeNumerically("<", 6*delay+delay/2)))
		}
	}, SpecTimeout(2*time.Minute))
})

// intact is an entry: the keys of the fault, and the counters that it must move at one host or the other.
func intact(when, keys string, moved ...string) TableEntry {
	return Entry(when, keys, []string{"node=h*"}, moved, SpecTimeout(3*time.Minute))
}
