package workloads_test

import (
	"context"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/faults"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/topo/strict"
	"github.com/rocebed/rocebed/workloads"
)

// What can't go on ends, says why, and leaves nothing behind. The workloads' engine alone, so
// that it can be stopped and given what no scenario gives it.
//
//	h1 ─┬─ leaf1
//	h2 ─┘
var _ = Describe("a workload that can't go on", Ordered, ContinueOnFailure, func() {
	var f fabric.Fabric

	BeforeAll(func(ctx SpecContext) {
		f = bed.Fabric(ctx, `apiVersion: rocebed/v1
name: giveup
seed: 5
dilation: 1024
topology: {star: {hosts: 2}, rate: 10Gbps}
nics: {profile: rxe}
`)
	}, NodeTimeout(2*time.Minute))

	// rxe sends again for ever with a retry_cnt of 7, so no completion tells of a dead link.
	DescribeTable("ends by its stall deadline when the link stays down and retries never run out",
		func(ctx SpecContext, port, spec, waited string) {
			res := cutOff(ctx, f, port, spec+", duration: 1s, stall_timeout: 4ms, qp: {retry_cnt: 7, timeout: 7}")
			Expect(res.Passed).To(BeFalse())
			Expect(res.Failure).To(And(ContainSubstring("nothing moved for 4ms while waiting for "+waited), Not(ContainSubstring("can't wait")), Not(ContainSubstring("did not come"))))
			Expect(res.Statuses).To(BeEmpty())
		},
		Entry("write", SpecTimeout(2*time.Minute), "h2:eth0", "kind: write, from: [h1], to: [h2], size: 20kB", "the completion of message"),
		Entry("write, the requester's own link", SpecTimeout(2*time.Minute), "h1:eth0", "kind: write, from: [h1], to: [h2], size: 20kB", "the completion of message"),
		Entry("read", SpecTimeout(2*time.Minute), "h2:eth0", "kind: read, from: [h1], to: [h2], size: 20kB", "the completion of message"),
		Entry("send", SpecTimeout(2*time.Minute), "h2:eth0", "kind: send, from: [h1], to: [h2], size: 20kB", "the completion of message"),
		Entry("all-reduce", SpecTimeout(2*time.Minute), "h2:eth0", "kind: all-reduce, size: 256KiB, slice: 16KiB", ""),
	)

	DescribeTable("ends with the status when retries do run out, long before the stall deadline",
		func(ctx SpecContext, port, spec string) {
			res := cutOff(ctx, f, port, spec+", duration: 1s, qp: {retry_cnt: 2, timeout: 7}")
			Expect(res.Passed).To(BeFalse())
			Expect(res.Statuses).To(ConsistOf("RETRY_EXC_ERR"))
		},
		Entry("of the responder's link", SpecTimeout(2*time.Minute), "h2:eth0", "kind: write, from: [h1], to: [h2], size: 20kB"),
		Entry("of the requester's own link", SpecTimeout(2*time.Minute), "h1:eth0", "kind: write, from: [h1], to: [h2], size: 20kB"),
		Entry("of a rank's link", SpecTimeout(2*time.Minute), "h2:eth0", "kind: all-reduce, size: 256KiB, slice: 16KiB"),
	)

	It("is broken off when it is stopped and has no time left to wind down", func(ctx SpecContext) {
		started := make(chan struct{})
		engine, done := start(f, "kind: write, from: [h1], to: [h2], size: 20kB, duration: 1s, stall_timeout: 1s, qp: {retry_cnt: 7, timeout: 7}", nil, started)
		_, ok := bed.Receive(ctx, f, started, time.Minute)
		Expect(ok).To(BeTrue(), "its traffic never began")
		cut := apply(ctx, f, faults.Spec{Name: "cut", Kind: faults.LinkDown, At: []string{"h2:eth0"}})
		DeferCleanup(func(ctx SpecContext) { heal(ctx, f, cut) }, NodeTimeout(30*time.Second))
		gentle, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if bed.LookAhead(f) > 0 { // in virtual time a second of the machine's is a long one
			cancel()
		}
		engine.Stop(gentle)
		res := outcome(ctx, f, engine, done)
		Expect(res.Passed).To(BeFalse())
		Expect(res.Stopped).To(BeTrue())
		Expect(res.Failure).To(And(ContainSubstring("stopped before it had wound down"), Not(ContainSubstring("can't wait")), Not(ContainSubstring("did not come"))))
	}, SpecTimeout(2*time.Minute))

	It("says which queue pair could not be set up, the call and the peer", func(ctx SpecContext) {
		engine, done := start(f, "kind: write, from: [h1], to: [h2], messages: 10", peerAt("2001:db8::7"), nil)
		res := outcome(ctx, f, engine, done)
		Expect(res.Passed).To(BeFalse())
		Expect(res.Failure).To(MatchRegexp(`^set-up: h1:eth0 \(requester of h1:eth0→h2:eth0#0\): modify qp to RTR towards 2001:db8::7 QP 0x[0-9a-f]+: `))
		Expect(res.Messages).To(BeZero())
	}, SpecTimeout(2*time.Minute))

	// Set-up asks no route: a wrong address shows in the retries only, as on hardware.
	It("runs out of retries when nobody has its peer's address", func(ctx SpecContext) {
		engine, done := start(f, "kind: write, from: [h1], to: [h2], messages: 10, qp: {timeout: 5, retry_cnt: 2}", peerAt("203.0.113.7"), nil)
		res := outcome(ctx, f, engine, done)
		Expect(res.Passed).To(BeFalse())
		Expect(res.Statuses).To(ConsistOf("RETRY_EXC_ERR"))
	}, SpecTimeout(2*time.Minute))

	It("leaves a fabric on which the next one passes", func(ctx SpecContext) {
		engine, done := start(f, "kind: write, from: [h1], to: [h2], size: 20kB, messages: 10", nil, nil)
		res := outcome(ctx, f, engine, done)
		Expect(res.Failure).To(BeEmpty())
		Expect(res.VerifiedBytes).To(BeEquivalentTo(10 * 20000))
	}, SpecTimeout(2*time.Minute))
})

// cutOff runs a workload and takes a link down for good once its traffic has begun.
func cutOff(ctx SpecContext, f fabric.Fabric, port, workload string) *workloads.Result {
	GinkgoHelper()
	started := make(chan struct{})
	engine, done := start(f, workload, nil, started)
	_, ok := bed.Receive(ctx, f, started, time.Minute)
	Expect(ok).To(BeTrue(), "its traffic never began")
	cut := apply(ctx, f, faults.Spec{Name: "cut", Kind: faults.LinkDown, At: []string{port}})
	DeferCleanup(func(ctx SpecContext) { heal(ctx, f, cut) }, NodeTimeout(30*time.Second))
	return outcome(ctx, f, engine, done)
}

// peerAt makes the engine believe that h2 has another address.
func peerAt(gid string) func(*workloads.Config) {
	return func(cfg *workloads.Config) {
		for i := range cfg.NICs {
			if cfg.NICs[i].Port.Node == "h2" {
				cfg.NICs[i].GID = netip.MustParseAddr(gid)
			}
		}
	}
}

// start starts one workload. started, if any, is closed when its traffic begins; change may
// spoil what the engine is told.
func start(f fabric.Fabric, workload string, change func(*workloads.Config), started chan struct{}) (*workloads.Engine, <-chan *workloads.Report) {
	GinkgoHelper()
	var file struct {
		Workloads []workloads.Spec `yaml:"workloads"`
	}
	Expect(strict.Decode("spec", []byte("workloads: [{name: it, "+workload+"}]"), &file)).To(Succeed())
	cfg := workloads.Config{Topology: f.Topology(), Seed: 5, LookAhead: bed.LookAhead(f), ControlTimeout: f.Dilation().Fabric(30 * time.Second)}
	cfg.Observer = func(e workloads.Event) {
		if started != nil && e.Kind == workloads.EventStarted {
			close(started)
		}
	}
	for _, h := range f.Hosts() {
		for _, n := range h.NICs() {
			cfg.NICs = append(cfg.NICs, workloads.NIC{Port: n.Port, Rail: n.Rail, Device: n.Device, GIDIndex: n.GIDIndex, GID: n.GID})
		}
	}
	if change != nil {
		change(&cfg)
	}
	engine, err := workloads.NewEngine(cfg, file.Workloads)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan *workloads.Report, 1)
	engine.Start(func(r *workloads.Report) { done <- r })
	return engine, done
}

// outcome waits for the only workload's result. Whatever happens, nothing runs on afterwards.
func outcome(ctx SpecContext, f fabric.Fabric, engine *workloads.Engine, done <-chan *workloads.Report) *workloads.Result {
	GinkgoHelper()
	if r, ok := bed.Receive(ctx, f, done, time.Minute); ok {
		Expect(r.Err).NotTo(HaveOccurred())
		return r.Results[0]
	}
	over, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	engine.Stop(over)
	Fail("the workload had not ended within a minute")
	return nil
}

// apply strikes with a fault and waits until it is in force.
func apply(ctx SpecContext, f fabric.Fabric, s faults.Spec) fabric.Applied {
	GinkgoHelper()
	type answer struct {
		a   fabric.Applied
		err error
	}
	got := make(chan answer, 1)
	bed.On(f, func() {
		f.Injector().Apply(s, func(a fabric.Applied, err error) { got <- answer{a, err} })
	})
	ans, ok := bed.Receive(ctx, f, got, 30*time.Second)
	Expect(ok).To(BeTrue(), "the injector never answered")
	Expect(ans.err).NotTo(HaveOccurred())
	return ans.a
}

func heal(ctx SpecContext, f fabric.Fabric, a fabric.Applied) {
	GinkgoHelper()
	got := make(chan error, 1)
	bed.On(f, func() { a.Heal(func(err error) { got <- err }) })
	err, ok := bed.Receive(ctx, f, got, 30*time.Second)
	Expect(ok).To(BeTrue(), "the injector never answered")
	Expect(err).NotTo(HaveOccurred())
}
