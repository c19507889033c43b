// Package scenarios_test runs the scenarios that ship, on whichever backend it is told: they pass everywhere, with the
// expectations that stand in them. One that names a backend runs on that alone.
package scenarios_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

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

func TestScenarios(t *testing.T) { bed.Suite(t, "scenarios") }

const folder = "../../scenarios"

func read(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("scenarios that ship", func() {
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		panic("there are no scenarios in " + folder)
	}
	for _, file := range files {
		name := filepath.Base(file)
		s, err := testbed.Load(file)
		if err != nil {
			panic(err)
		}
		if s.Backend != testbed.Auto && s.Backend != "" && s.Backend != bed.Backend() {
			continue // it is about another backend, and says so
		}
		It("passes: "+name, func(ctx SpecContext) {
			Expect(bed.Run(ctx, read(name))).To(match.Pass())
		})
	}
})

// What of the quickstart doesn't depend on the backend: docs/backends.md says what does, and why.
var _ = It("moves the same bytes and heals the same fault on every backend", func(ctx SpecContext) {
	s, err := testbed.Load(filepath.Join(folder, "quickstart.yaml"))
	Expect(err).NotTo(HaveOccurred())
	run := bed.Run(ctx, read("quickstart.yaml"))
	Expect(run).To(match.Pass())

	pairs, ring := run.Workload("all-pairs"), run.Workload("ring")
	Expect(pairs.Messages).To(BeEquivalentTo(8 * 7 * 4))
	Expect(pairs.VerifiedBytes).To(BeEquivalentTo(8 * 7 * 4 << 14))
	Expect(ring.VerifiedBytes).To(Equal(ring.Bytes))
	// 2 iterations of 2(n−1) steps, in each of which every rank sends an n-th of its 512 KiB.
	Expect(ring.Bytes).To(BeEquivalentTo(2 * 2 * 7 * 512 << 10))
	Expect(run).To(match.Count("completer_retry_err", BeNumerically(">", 0)))
	Expect(run).To(match.Count("retry_exceeded_err", BeZero()))

	Expect(run.Fault("lossy-uplinks").Hits).To(BeNumerically(">", 0))
	var life []string
	for _, e := range run.Events {
		if e.Source == "fault" {
			life = append(life, e.What)
		}
	}
	Expect(life).To(Equal([]string{"planned", "applied", "verified", "healed", "verified clean"}))

	Expect(run.Expectations).To(HaveLen(len(s.Expect)))
	for _, x := range run.Expectations {
		Expect(slices.Contains(s.Expect, x.Expr)).To(BeTrue(), x.Expr)
	}
})
