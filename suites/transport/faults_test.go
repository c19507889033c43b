package transport_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
)

// ahead counts what shows a gap to the responder, back what makes the requester send again.
const ahead, back, dup = "out_of_seq_request", "completer_retry_err", "duplicate_request"

var _ = Describe("the RC transport", func() {
	It("moves every operation's data with no error counter moving when nothing goes wrong", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(each))
		Expect(run).To(match.Pass())
		for _, op := range operations {
			Expect(run.Workload(op)).To(match.BeIntact())
		}
		for _, counter := range []string{
			ahead, back, dup, "rcvd_seq_err", "rcvd_rnr_err", "send_rnr_err", "retry_exceeded_err",
			"retry_rnr_exceeded_err", "send_err",
		} {
			Expect(run).To(match.Count(counter, BeZero()))
		}
		for _, counter := range bed.Drops() {
			Expect(run).To(match.Count(counter, BeZero()))
		}
	}, SpecTimeout(2*time.Minute))

	DescribeTable("keeps every operation's data intact",
		func(ctx SpecContext, keys string, moved []string) {
			run := bed.Run(ctx, scenario(each, fault(keys)))
			Expect(run).To(match.Pass())
			for _, op := range operations {
				Expect(run.Workload(op)).To(match.BeIntact())
			}
			f := run.Fault("it")
			Expect(f).To(And(HaveField("Hits", BeNumerically(">", 0)), HaveField("Healed", BeTrue()), HaveField("Verified", BeTrue())))
			for _, counter := range moved {
				Expect(run).To(match.Count(counter, BeNumerically(">", 0)))
			}
			Expect(run).To(match.Count("retry_exceeded_err", BeZero()))
			Expect(run).To(match.Count("send_err", BeZero()))
		},
		intact("when packets are lost at random", "kind: loss, probability: 2%", ahead, back),
		// More than the 128 packets that rxe keeps unacknowledged, or going back N could meet the loss
		// with the same packet each time and use up its retries.
		intact("when every 200th packet is lost", "kind: loss, every_nth: 200", ahead, back),
		intact("when packets are lost in bursts", "kind: loss, gilbert_elliott: {p: 1%, r: 30%, loss_bad: 60%, loss_good: 0%}", ahead, back),
		intact("when only packets towards the requester are lost", "kind: loss, probability: 2%, direction: ingress", back),
		intact("when packets arrive twice", "kind: duplicate, probability: 5%", dup),
		intact("when packets overtake each other", "kind: reorder, probability: 2%, delay: 100us", ahead, back),
		intact("when a bit flips now and then", "kind: corrupt, probability: 2%", ahead, back),
		// A packet of 4 KiB takes 3.4 µs: with more jitter than half of that neighbours change places,
		// and with much more no message of many packets gets through, since rxe takes none out of order.
		intact("when the link is long and its delay varies a little", "kind: delay, delay: 100us, jitter: 1us"),
		intact("when the link carries a tenth", "kind: rate, rate: 1Gbps"),
	)

	It("survives a flapping link", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 400}
`, fault("kind: flap, period: 6ms, down: 500us, schedule: {at: 2ms}")))
		Expect(run).To(match.Pass())
		Expect(run.Workload("w")).To(match.BeIntact())
		Expect(run).To(match.Count(back, BeNumerically(">", 0)))
		Expect(run).To(match.Count("send_err", BeZero()))
	}, SpecTimeout(3*time.Minute))

	It("sends nothing again because of a constant delay below its timeout", func(ctx SpecContext) {
		const latency = `workloads:
  - {name: ping, kind: write, mode: latency, from: [h1], to: [h2], size: 64, messages: 50, start: 1ms, qp: {timeout: 12}}
`
		run := bed.Run(ctx, scenario(latency, fault("kind: delay, delay: 200us, direction: egress")))
		Expect(run).To(match.Pass())
		Expect(run).To(match.Count(back, BeZero()))
		Expect(run.Workload("ping").Latency.Min).To(BeNumerically(">=", 200*time.Microsecond))
	}, SpecTimeout(2*time.Minute))

	It("carries no more than what a rate limit leaves, and most of that", func(ctx SpecContext) {
		const bulk = `workloads:
  - {name: bulk, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 40}
`
		run := bed.Run(ctx, scenario(bulk, fault("kind: rate, rate: 2Gbps, direction: egress")))
		Expect(run).To(match.Pass())
		// A token bucket carries a burst beyond its rate at the start, which is a few per cent of so few messages.
		Expect(run.Workload("bulk").GoodputBps).To(And(BeNumerically("<", 2_100_000_000), BeNumerically(">", 1_000_000_000)))
	}, SpecTimeout(2*time.Minute))
})

// intact is an entry: the keys of the fault, and the counters that it must move.
func intact(when, keys string, moved ...string) TableEntry {
	return Entry(when, keys, moved, SpecTimeout(3*time.Minute))
}
