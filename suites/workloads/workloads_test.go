// Package workloads_test runs every kind of workload over a real fabric with two rails, clean
// and lossy: all data arrives, and results add up.
//
//	      spine1
//	     ╱      ╲
//	leaf1r0    leaf1r1
//	│  │  │    │  │  │
//	h1 h2 h3   h1 h2 h3     two NICs and two GPUs each
package workloads_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked()
	testleak.Main(m)
}

func TestWorkloads(t *testing.T) { bed.Suite(t, "workloads") }

const twoRails = `apiVersion: rocebed/v1
name: workloads
seed: 23
dilation: 1024
topology:
  rail-optimised: {rails: 2, groups: 1, hosts_per_group: 3, spines: 1}
  rate: 10Gbps
`

const between = `workloads:
  - {name: write,     kind: write,  from: ["h1:eth0"], to: ["h2:eth1"], size: 10001B, messages: 20}
  - {name: selective, kind: write,  from: ["h1:eth0"], to: ["h2:eth1"], size: 8KiB, messages: 21, signaling: selective, after: write}
  - {name: read,      kind: read,   from: ["h1:eth1"], to: ["h3:eth0"], size: 10001B, messages: 20, qps: 2, after: write}
  - {name: send,      kind: send,   from: ["h2:eth0"], to: ["h3:eth1"], size: 10001B, messages: 20, after: write}
  - {name: swap,      kind: atomic, atomic: cmp_swap, from: ["h2:eth0"], to: ["h3:eth1"], messages: 50, after: write}
  - {name: latency,   kind: write,  mode: latency, from: ["h1:eth0"], to: ["h2:eth0"], messages: 30, after: send}
  - {name: incast,    kind: incast, from: ["h2", "h3"], to: ["h1:eth0"], size: 8KiB, messages: 8, after: latency}
  - {name: drain,     kind: incast, op: read, from: ["h2", "h3"], to: ["h1:eth0"], size: 8KiB, messages: 4, depth: 2, after: incast}
  - {name: count,     kind: incast, op: atomic, from: ["h2", "h3"], to: ["h1:eth0"], messages: 40, after: drain}
  - {name: pairs,     kind: all-pairs, size: 4KiB, messages: 4, after: count}
`

const collectives = `workloads:
  - {name: ring,  kind: all-reduce, size: 96KiB, slice: 8KiB, messages: 2}
  - {name: float, kind: all-reduce, data_type: float32, size: 50000B, slice: 8KiB, qps: 2, ranks: ["*:gpu0"], messages: 2, after: ring}
  - {name: swap,  kind: all-to-all, size: 96KiB, messages: 2, after: float}
`

const unreliable = `workloads:
  - {name: uc-send,  kind: send,  transport: uc, from: ["h1:eth0"], to: ["h2:eth0"], size: 3000B, messages: 60}
  - {name: uc-write, kind: write, transport: uc, from: ["h2:eth0"], to: ["h3:eth0"], size: 3000B, messages: 60}
  - {name: ud-send,  kind: send,  transport: ud, from: ["h3:eth0"], to: ["h1:eth0"], size: 3000B, messages: 60}
`

func fault(keys string) string {
	return fmt.Sprintf("faults:\n  - {name: it, at: [\"h*\"], direction: ingress, %s}\n", keys)
}

var _ = Describe("workloads", func() {
	DescribeTable("between NICs", func(ctx SpecContext, faults string) {
		run := bed.Run(ctx, twoRails+between+faults)
		Expect(run).To(match.Pass())
		for name, bytes := range map[string]uint64{
			"write": 20 * 10001, "selective": 21 * 8192, "read": 2 * 20 * 10001, "send": 20 * 10001, "swap": 50 * 8, "latency": 30 * 8,
			"incast": 4 * 8 * 8192, "drain": 4 * 4 * 8192, "count": 4 * 40 * 8, "pairs": 24 * 4 * 4096,
		} {
			w := run.Workload(name)
			Expect(w.Bytes).To(BeEquivalentTo(bytes), name)
			Expect(w.VerifiedBytes).To(BeEquivalentTo(bytes), name)
			Expect(w.Latency.P50).To(BeNumerically(">", 0), name)
		}
	},
		Entry("on a clean fabric", SpecTimeout(2*time.Minute), ""),
		Entry("with loss", SpecTimeout(2*time.Minute), fault("kind: loss, probability: 1%")),
		// rxe takes nothing out of order, and what one late packet costs grows with delay and window
		// (docs/verbs.md): this much it gets through.
		Entry("with reordering", SpecTimeout(2*time.Minute), fault("kind: reorder, probability: 1%, delay: 10us")),
		Entry("with jitter", SpecTimeout(2*time.Minute), fault("kind: delay, delay: 3us, jitter: 2us")),
	)

	DescribeTable("over GPU ranks", func(ctx SpecContext, faults string) {
		run := bed.Run(ctx, twoRails+collectives+faults)
		Expect(run).To(match.Pass())
		for _, name := range []string{"ring", "float", "swap"} {
			w := run.Workload(name)
			Expect(w.Bytes).To(BeNumerically(">", 0), name)
			Expect(w.VerifiedBytes).To(Equal(w.Bytes), name)
		}
	},
		Entry("on a clean fabric", SpecTimeout(2*time.Minute), ""),
		Entry("with loss", SpecTimeout(2*time.Minute), fault("kind: loss, probability: 1%")),
	)

	// What UC and UD may lose or repeat is counted; what arrives is right.
	DescribeTable("on unreliable services", func(ctx SpecContext, faults string) {
		run := bed.Run(ctx, twoRails+unreliable+faults)
		Expect(run).To(match.Pass())
		for _, name := range []string{"uc-send", "uc-write", "ud-send"} {
			w := run.Workload(name)
			Expect(w.Bytes).To(And(BeNumerically(">", 0), BeNumerically("<=", 60*3000)), name)
			Expect(w.VerifiedBytes).To(Equal(w.Bytes), name)
		}
	},
		Entry("with loss", SpecTimeout(2*time.Minute), fault("kind: loss, probability: 10%")),
		Entry("with duplicates", SpecTimeout(2*time.Minute), fault("kind: duplicate, probability: 10%")),
		Entry("with reordering", SpecTimeout(2*time.Minute), fault("kind: reorder, probability: 10%, delay: 20us")),
		Entry("with corruption", SpecTimeout(2*time.Minute), fault("kind: corrupt, probability: 5%")),
	)
})
