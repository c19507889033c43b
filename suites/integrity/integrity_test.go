// Package integrity_test proves that a wrong byte can't pass: real workloads over real
// queue pairs, one message of which is spoilt behind the engine's back.
//
//	h1 ─┐
//	h2 ─┼─ leaf1
//	h3 ─┘
package integrity_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked()
	testleak.Main(m)
}

func TestIntegrity(t *testing.T) { bed.Suite(t, "integrity of payloads") }

var _ = Describe("a spoilt message", Ordered, ContinueOnFailure, func() {
	var f fabric.Fabric

	BeforeAll(func(ctx SpecContext) { f = build(ctx) }, NodeTimeout(time.Minute))

	DescribeTable("is found", func(ctx SpecContext, how deed, workload, what string) {
		s := &saboteur{spoil: 5, how: how}
		res := run(ctx, f, s, workload)
		Expect(s.done).To(BeTrue(), "nothing was spoilt")
		Expect(res.Passed).To(BeFalse())
		Expect(res.Violations).To(BeNumerically(">=", 1))
		Expect(res.Examples[0].What).To(Equal(what), "%v", &res.Examples[0])

		By("and the same workload passes when nobody meddles")
		res = run(ctx, f, &saboteur{}, workload)
		Expect(res.Failure).To(BeEmpty())
		Expect(res.VerifiedBytes).To(Equal(res.Bytes))
	},
		Entry("write: a flipped bit", flip, "kind: write, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("write: a byte behind the data", after, "kind: write, from: [h1], to: [h2], size: 10000B, messages: 30", "guard"),
		Entry("write: data that is never placed", skip, "kind: write, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("write of one byte that is never placed", skip, "kind: write, from: [h1], to: [h2], size: 1B, messages: 30", "payload"),
		Entry("write with selective signalling", skip, "kind: write, signaling: selective, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("write on uc", flip, "kind: write, transport: uc, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("read: a flipped bit", flip, "kind: read, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("read: data that never comes", skip, "kind: read, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("send: a flipped bit", flip, "kind: send, from: [h1], to: [h2], size: 10000B, messages: 30", "payload"),
		Entry("send: data that never comes", skip, "kind: send, from: [h1], to: [h2], size: 10000B, messages: 30", "length"),
		Entry("send on ud", flip, "kind: send, transport: ud, from: [h1], to: [h2], size: 1000B, messages: 30", "payload"),
		Entry("fetch and add: a wrong value returned", flip, "kind: atomic, from: [h1], to: [h2], messages: 30", "atomic"),
		Entry("compare and swap: a wrong value returned", flip, "kind: atomic, atomic: cmp_swap, from: [h1], to: [h2], messages: 30", "atomic"),
		Entry("all-reduce: a flipped bit", flip, "kind: all-reduce, size: 64KiB, slice: 4KiB, messages: 2", "sum"),
		Entry("all-reduce: a slice that is never placed", skip, "kind: all-reduce, size: 64KiB, slice: 4KiB, messages: 2", "length"),
		Entry("all-to-all: a flipped bit", flip, "kind: all-to-all, size: 48KB, slice: 4KiB, messages: 2", "payload"),
	)
})

// patience is how long a workload may take, in wall time.
const patience = 30 * time.Second

func run(ctx context.Context, f fabric.Fabric, s *saboteur, workload string) *workloads.Result {
	GinkgoHelper()
	var file struct {
		Workloads []workloads.Spec `yaml:"workloads"`
	}
	Expect(strict.Decode("spec", []byte("workloads: [{name: it, "+workload+"}]"), &file)).To(Succeed())
	cfg := workloads.Config{Topology: f.Topology(), Seed: 5, LookAhead: bed.LookAhead(f), ControlTimeout: f.Dilation().Fabric(patience / 2)}
	for _, h := range f.Hosts() {
		for _, n := range h.NICs() {
			cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: s.device(n.Device, n.GID), GIDIndex: n.GIDIndex, GID: n.GID})
		}
	}
	engine, err := workloads.NewEngine(cfg, file.Workloads)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan *workloads.Report, 1)
	engine.Start(func(r *workloads.Report) { done <- r })
	r, ok := bed.Receive(ctx, f, done, patience)
	Expect(ok).To(BeTrue(), "the workload had not ended within %v", patience)
	Expect(r.Err).NotTo(HaveOccurred())
	return r.Results[0]
}

func build(ctx context.Context) fabric.Fabric {
	GinkgoHelper()
	return bed.Fabric(ctx, `apiVersion: rocebed/v1
name: integrity
seed: 5
dilation: 256
topology: {star: {hosts: 3}, rate: 100Gbps}
`)
}
