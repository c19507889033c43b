// Package incidents_test makes the incidents that ship happen, on whichever backend it is told: each without its cure, where its
// symptom must be seen, and with it, where it must not. Expectations are counts and ratios, and so is what is asserted here:
// a machine too busy for the links' rates is warned of, no more.
package incidents_test

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/scenarios/incidents"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/report"
)

func TestMain(m *testing.M) {
	testbed.ProcessIfAsked() // on rxe, pauses and DCQCN are looked after by a process of their own, which this binary is
	testleak.Main(m)
}

func TestIncidents(t *testing.T) { bed.Suite(t, "incidents") }

var _ = Describe("incidents that ship", bed.Tries(), func() {
	for _, x := range incidents.All() {
		if !x.On(bed.Backend()) {
			continue
		}
		It("has the symptom of "+x.Name, func(ctx SpecContext) { happens(ctx, x, false) })
		It("has it no more with the cure of "+x.Name, func(ctx SpecContext) { happens(ctx, x, true) })
	}
})

func happens(ctx SpecContext, x incidents.Incident, cured bool) {
	GinkgoHelper()
	opt := testbed.RunOptions{Backend: bed.Backend(), Out: GinkgoT().TempDir(), AllowSlow: true, Progress: testbed.NewLines(GinkgoWriter, time.Second)}
	if opt.Backend == testbed.Soft { // what the files say is for rxe's sake; software nodes carry four times as much and more
		quick := testbed.Dilation(256)
		opt.Dilation = &quick
	}
	r, err := incidents.Run(ctx, x, cured, opt)
	Expect(err).NotTo(HaveOccurred())
	var said bytes.Buffer
	Expect(report.Terminal(&said, &r.Summary, false)).To(Succeed())
	Expect(r.Passed).To(BeTrue(), "the run's verdict\n%s", said.String())
	Expect(r.Symptom).To(Equal(!cured), "whether the symptom is there\n%s", said.String())
	for _, v := range r.Figures {
		Expect(v.Err).To(BeEmpty(), "the figure %q", v.Name)
	}
}
