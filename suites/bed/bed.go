// Package bed runs scenarios for Ginkgo suites: a spec hands it a scenario as text, and gets
// what came out: summary, metrics, events. Users' own suites are written the same way.
//
//	run := bed.Run(ctx, `
//	apiVersion: rocebed/v1
//	…`)
//	Expect(run).To(match.Pass())
//	Expect(run).To(match.Count("out_of_seq_request", BeZero()))
//
// The fabric is up only while Run works, and everything that it made is gone when it returns.
// Specs are about what the transport does, not about how fast: on a machine too busy for the links' rates they
// only warn (docs/dilation.md).
// A failing spec shows the run's result table and its last events. ROCEBED_BACKEND chooses the
// backend: kernel (which an empty one is), soft or sim.
package bed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
	"github.com/rocebed/rocebed/testbed/report"
	"github.com/rocebed/rocebed/topo"
)

// Result is what a run left.
type Result struct {
	record.Summary
	Metrics *metrics.Table
	Events  []record.Event
}

// Run executes the scenario and reads its record; what passes the given ports is captured, and counters are compared with
// that. What keeps it from having a verdict (a wrong
// scenario, a machine that can't) fails the spec; a failed verdict does not.
func Run(ctx context.Context, scenario string, captures ...topo.PortRef) *Result {
	ginkgo.GinkgoHelper()
	s, err := testbed.Parse("spec.yaml", []byte(scenario))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the scenario:\n%s", numbered(scenario))
	out, err := os.MkdirTemp("", "rocebed-suite-")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(os.RemoveAll, out)

	outcome, err := testbed.Run(ctx, s, testbed.RunOptions{
		Backend: Backend(), Out: out, AllowSlow: true, Captures: captures, Progress: testbed.NewLines(ginkgo.GinkgoWriter, time.Second),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "run the scenario:\n%s", numbered(scenario))
	r := &Result{Summary: outcome.Summary}
	rd, err := record.Open(out)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	r.Metrics, err = rd.Table(metrics.Standard)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	r.Events, err = rd.Events()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	if ginkgo.CurrentSpecReport().LeafNodeText != "" {
		ginkgo.AddReportEntry("run", r.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	return r
}

// Backend is what specs run on.
func Backend() testbed.Backend {
	if b := os.Getenv("ROCEBED_BACKEND"); b != "" {
		return testbed.Backend(b)
	}
	return testbed.Kernel
}

// Suite runs a package's specs on whichever backend is asked for: suites.sh finds the packages about every backend by this call. On a machine that lacks
// what the backend needs it skips, or fails where nothing may be missing.
func Suite(t *testing.T, what string) {
	t.Helper()
	on := string(Backend())
	switch Backend() {
	case testbed.Kernel:
		SuiteOnRxe(t, what)
		return
	case testbed.Soft:
		testneed.Root(t)
	}
	specs(t, what+" on "+on)
}

// SuiteOnRxe runs specs that are about the kernel backend alone.
func SuiteOnRxe(t *testing.T, what string) {
	t.Helper()
	testneed.Rxe(t)
	specs(t, what+" on rxe")
}

func specs(t *testing.T, title string) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, title)
}

// Workload is the result of the workload of that name. A name that isn't there fails the spec.
func (r *Result) Workload(name string) record.Workload {
	ginkgo.GinkgoHelper()
	var names []string
	for _, w := range r.Workloads {
		if w.Name == name {
			return w
		}
		names = append(names, w.Name)
	}
	ginkgo.Fail(fmt.Sprintf("the run has no workload %q, only %q; its problems: %q", name, names, r.Problems))
	return record.Workload{}
}

// Fault is what became of the fault of that name. A name that isn't there fails the spec.
func (r *Result) Fault(name string) record.Fault {
	ginkgo.GinkgoHelper()
	for _, f := range r.Faults {
		if f.Name == name {
			return f
		}
	}
	ginkgo.Fail(fmt.Sprintf("the run has no fault %q; its problems: %q", name, r.Problems))
	return record.Fault{}
}

// Count is how much a counter grew over the run, summed over the series whose labels match the
// selectors ("node=leaf*"). A metric that nobody measured is an error.
func (r *Result) Count(metric string, selectors ...string) (float64, error) {
	labels := map[string]string{}
	for _, s := range selectors {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return 0, fmt.Errorf("selector %q is no label=pattern", s)
		}
		labels[k] = v
	}
	all, err := r.Metrics.Select(metric, labels)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("no series of %s %q was measured", metric, selectors)
	}
	return r.Metrics.Total(metric, labels), nil
}

// String is the run's result table and its last events.
func (r *Result) String() string {
	var b bytes.Buffer
	if err := report.Terminal(&b, &r.Summary, false); err != nil {
		fmt.Fprintf(&b, "%+v (%v)\n", r.Summary, err)
	}
	last := r.Events[max(0, len(r.Events)-25):]
	for _, e := range last {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	return b.String()
}

func numbered(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, line)
	}
	return b.String()
}

// Drops are the metrics that count packets dropped for want of room anywhere.
func Drops() []string {
	if Backend() == testbed.Kernel {
		return []string{"qdisc_drops", "if_rx_dropped", "if_tx_dropped", "softnet_dropped"}
	}
	return []string{"port_drops", "queue_drops", "headroom_drops"}
}

// Tries lets specs about when and how fast something happens be tried up to three times where time is the machine's, which others use too: Ginkgo says which
// needed it. In virtual time nothing is ever late, and a spec has one try.
func Tries() ginkgo.FlakeAttempts {
	if Backend() == testbed.Sim {
		return 1
	}
	return 3
}
