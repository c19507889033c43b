package transport_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
)

// A QP with timeout exponent 9 (4.096 µs × 2^9 = 2.1 ms) and retry_cnt 2 gives up after three
// timeouts: 6.3 ms without an answer. (IB specification 9.7.6.1.3 allows a timer to run from one
// to four times its value, so the longer cut is far beyond 4 × 6.3 ms.)
const budget = "qp: {timeout: 9, retry_cnt: 2}"

var _ = Describe("the retry budget", func() {
	It("survives a link that is down for less", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 200, `+budget+`}
`, fault("kind: down, schedule: {at: 2ms, for: 2ms}")))
		Expect(run).To(match.Pass())
		Expect(run.Workload("w")).To(match.BeIntact())
		Expect(run).To(match.Count("completer_retry_err", BeNumerically(">", 0)))
		Expect(run).To(match.Count("retry_exceeded_err", BeZero()))
	}, SpecTimeout(2*time.Minute))

	It("ends with RETRY_EXC_ERR on a link that is down for longer", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 200, expect_error: RETRY_EXC_ERR, `+budget+`}
`, fault("kind: down, schedule: {at: 2ms, for: 60ms}")))
		Expect(run).To(match.Pass())
		Expect(run.Workload("w")).To(match.EndWith("RETRY_EXC_ERR"))
		Expect(run.Workload("w").Violations).To(BeZero())
		Expect(run).To(match.Count("retry_exceeded_err", BeNumerically(">", 0)))
	}, SpecTimeout(2*time.Minute))

	It("fails the run when nobody said that the queue pair may fail", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: w, kind: write, from: [h1], to: [h2], size: 64KiB, messages: 200, `+budget+`}
`, fault("kind: down, schedule: {at: 2ms}")))
		Expect(run).To(match.FailBecause("RETRY_EXC_ERR"))
		Expect(run.Fault("it")).To(HaveField("Healed", BeTrue()))
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("a receiver that is not ready", func() {
	It("is waited for while rnr_retry allows", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: s, kind: send, from: [h1], to: [h2], size: 4KiB, messages: 20, receive_delay: 5ms, qp: {rnr_retry: 7}}
`))
		Expect(run).To(match.Pass())
		Expect(run.Workload("s")).To(match.BeIntact())
		Expect(run).To(match.Count("rcvd_rnr_err", BeNumerically(">", 0)))
		Expect(run).To(match.Count("send_rnr_err", BeNumerically(">", 0)))
	}, SpecTimeout(2*time.Minute))

	It("ends the queue pair with RNR_RETRY_EXC_ERR when rnr_retry is used up", func(ctx SpecContext) {
		run := bed.Run(ctx, scenario(`workloads:
  - {name: s, kind: send, from: [h1], to: [h2], size: 4KiB, messages: 20, receive_delay: 500ms, expect_error: RNR_RETRY_EXC_ERR, qp: {rnr_retry: 1}}
`))
		Expect(run).To(match.Pass())
		Expect(run.Workload("s")).To(match.EndWith("RNR_RETRY_EXC_ERR"))
		Expect(run).To(match.Count("retry_rnr_exceeded_err", BeNumerically(">", 0)))
	}, SpecTimeout(2*time.Minute))
})
