package transport_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

// What rxe has not, and what takes no time in virtual time: every way to recover and every make of NIC, under every
// fault, with every operation.
func init() {
	if bed.Backend() != testbed.Sim {
		return
	}
	_ = Describe("every recovery mode of every make of NIC", func() {
		for _, recovery := range []string{"go-back-n", "go-back-0", "selective-repeat"} {
			for _, profile := range []string{"default", "rxe", "connectx-like", "irdma-like", "ionic-like", "ideal"} {
				nics := fmt.Sprintf("nics: {profile: %s, recovery: %s}\n", profile, recovery)
				DescribeTable(fmt.Sprintf("keeps data intact: %s, %s", recovery, profile),
					func(ctx SpecContext, keys string) {
						sections := []string{nics, each}
						if keys != "" {
							sections = append(sections, fault(keys))
						}
						run := bed.Run(ctx, scenario(sections...))
						Expect(run).To(match.Pass())
						for _, op := range operations {
							Expect(run.Workload(op)).To(match.BeIntact())
						}
						Expect(run).To(match.Count("retry_exceeded_err", BeZero()))
					},
					Entry("clean", SpecTimeout(time.Minute), ""),
					Entry("loss", SpecTimeout(time.Minute), "kind: loss, probability: 1%"),
					Entry("loss of what comes back", SpecTimeout(time.Minute), "kind: loss, probability: 2%, direction: ingress"),
					Entry("bursts", SpecTimeout(time.Minute), "kind: loss, gilbert_elliott: {p: 0.5%, r: 30%, loss_bad: 60%, loss_good: 0%}"),
					Entry("duplicates", SpecTimeout(time.Minute), "kind: duplicate, probability: 5%"),
					Entry("reordering", SpecTimeout(time.Minute), "kind: reorder, probability: 1%, delay: 20us"),
					Entry("bit errors", SpecTimeout(time.Minute), "kind: corrupt, probability: 1%"),
					Entry("jitter", SpecTimeout(time.Minute), "kind: delay, delay: 30us, jitter: 5us, distribution: normal"),
					Entry("a tenth of the rate", SpecTimeout(time.Minute), "kind: rate, rate: 1Gbps"),
				)
			}
		}
	})
}
