//go:build linux

// Package lifecycle_test is what must hold of testbeds however they end: what up makes, down
// removes; a kill -9 at any stage of up, run or down leaves nothing that the next command does
// not find and remove; and what belongs to another living testbed is never touched.
//
//	h1 ──┐        ┌── h3
//	     leaf1 ── spine1 ── leaf2
//	h2 ──┘        └── h4          (1 spine, 2 leaves, 4 hosts)
package lifecycle_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/cli"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestLifecycle(t *testing.T) { bed.SuiteOnRxe(t, "bring-up and cleanup") }

// file is the scenario that all specs use, under the name given.
const file = "spec.yaml"

const scenario = `apiVersion: rocebed/v1
name: lifecycle
dilation: 256
topology:
  spine-leaf: {spines: 1, leaves: 2, hosts_per_leaf: 2}
  rate: 10Gbps
workloads:
  - {name: w, kind: all-pairs, size: 16KiB, messages: 8}
faults:
  - {name: lossy, kind: loss, at: [leaf1-spine1], probability: 5%, may_miss: true}
expect:
  - workloads["w"].errors == 0
`

// nothing is left within the time that the kernel may need to take things back.
func expectNothingLeft(m *cli.Machine) {
	GinkgoHelper()
	Eventually(m.Left).WithTimeout(15 * time.Second).WithPolling(100 * time.Millisecond).Should(BeEmpty())
}

// stages are the steps that a command tells when it runs to its end.
func stages(lines []string) []string {
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, "» ") {
			out = append(out, l)
		}
	}
	return out
}

// killAt starts the command and kills everything of it once it has told n stages (0: at once).
// It says whether the command was still running then.
func killAt(ctx context.Context, m *cli.Machine, n int, args ...string) bool {
	GinkgoHelper()
	run := m.Start(ctx, args...)
	if n > 0 {
		Eventually(func() bool { return len(stages(run.Lines())) >= n || run.Ended() }).WithContext(ctx).
			WithTimeout(time.Minute).WithPolling(2*time.Millisecond).Should(BeTrue(), "rocebed %q has told only %q", args, run.Lines())
	}
	alive := !run.Ended()
	m.KillAll()
	Eventually(run.Ended).WithTimeout(10*time.Second).Should(BeTrue(), "rocebed %q survived SIGKILL", args)
	return alive
}

// journalled is how many lines the journal of the testbed has, 0 when there is none.
func journalled(testbed string) int {
	b, err := os.ReadFile(filepath.Join("/run/rocebed", testbed, "journal"))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

var _ = Describe("a testbed", func() {
	var m *cli.Machine
	BeforeEach(func() {
		m = cli.NewMachine()
		m.File(file, scenario)
	})

	It("is there after up and gone after down", func(ctx SpecContext) {
		m.MustRun(ctx, "up", "--name", "life", file)
		Expect(m.MustRun(ctx, "status", "life").Stdout).To(ContainSubstring("leaf1"))
		Expect(m.Left()).NotTo(BeEmpty())
		m.MustRun(ctx, "down", "life")
		expectNothingLeft(m)
	}, SpecTimeout(2*time.Minute))

	It("leaves nothing after a run", func(ctx SpecContext) {
		m.MustRun(ctx, "run", "--allow-slow", file)
		expectNothingLeft(m)
	}, SpecTimeout(2*time.Minute))

	It("leaves nothing when a run is interrupted", func(ctx SpecContext) {
		run := m.Start(ctx, "run", file)
		Eventually(func() string { return fmt.Sprint(run.Lines()) }).WithTimeout(time.Minute).Should(ContainSubstring("running"))
		run.Interrupt()
		Eventually(run.Ended).WithTimeout(time.Minute).Should(BeTrue(), "an interrupted run goes on")
		expectNothingLeft(m)
	}, SpecTimeout(3*time.Minute))

	It("whose keeper was killed at any stage of up is removed by clean", func(ctx SpecContext) {
		m.MustRun(ctx, "up", "--name", "life", file)
		made := journalled("life")
		m.MustRun(ctx, "down", "life")
		Expect(made).To(BeNumerically(">", 10), "things that the testbed noted in its journal")
		const kills = 12
		for n := range kills + 1 {
			at := made * n / kills
			By(fmt.Sprintf("killing up once it has noted %d of %d things that it makes", at, made))
			run := m.Start(ctx, "up", "--name", "life", file)
			Eventually(func() bool { return journalled("life") >= at || run.Ended() }).WithContext(ctx).
				WithTimeout(time.Minute).WithPolling(time.Millisecond).Should(BeTrue(), "%d things noted", journalled("life"))
			m.KillAll()
			Eventually(run.Ended).WithTimeout(10 * time.Second).Should(BeTrue())
			m.MustRun(ctx, "clean")
			expectNothingLeft(m)
		}
		By("killing the keeper of a testbed that is up")
		m.MustRun(ctx, "up", "--name", "life", file)
		m.KillAll()
		m.MustRun(ctx, "clean")
		expectNothingLeft(m)
	}, SpecTimeout(8*time.Minute))

	It("of a run that was killed at any stage is removed by clean", func(ctx SpecContext) {
		all := stages(strings.Split(m.MustRun(ctx, "run", "--allow-slow", file).Stderr, "\n"))
		Expect(all).NotTo(BeEmpty())
		for n := 1; n <= len(all); n++ {
			By(fmt.Sprintf("killing run after %q", all[n-1]))
			killAt(ctx, m, n, "run", file)
			m.MustRun(ctx, "clean")
			expectNothingLeft(m)
		}
	}, SpecTimeout(8*time.Minute))

	It("that was killed on its way down is removed by clean, and its name can be used again", func(ctx SpecContext) {
		for n := range 3 {
			m.MustRun(ctx, "up", "--name", "life", file)
			By(fmt.Sprintf("killing down after %d stages", n))
			killAt(ctx, m, n, "down", "life")
			if n == 1 {
				m.MustRun(ctx, "up", "--name", "life", file) // cleans what was left by itself
				m.MustRun(ctx, "down", "life")
			} else {
				m.MustRun(ctx, "clean")
			}
			expectNothingLeft(m)
		}
	}, SpecTimeout(8*time.Minute))

	It("stays whole when another one beside it is killed and cleaned", func(ctx SpecContext) {
		other := cli.NewMachine()
		other.File(file, scenario)
		m.MustRun(ctx, "up", "--name", "one", file)
		other.MustRun(ctx, "up", "--name", "two", file)
		ping := func() cli.Done { return m.Run(ctx, "exec", "--name", "one", "h1", "--", "rdma", "link") }
		Expect(ping().Code).To(BeZero())
		other.KillAll()
		Expect(ping().Code).To(BeZero(), "after the other was killed")
		other.MustRun(ctx, "clean")
		Expect(ping().Code).To(BeZero(), "after the other was cleaned away")
		m.MustRun(ctx, "status", "one")
		m.MustRun(ctx, "down", "one")
		expectNothingLeft(m)
		expectNothingLeft(other)
	}, SpecTimeout(3*time.Minute))
})
