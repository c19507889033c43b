package match_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/suites/match"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

func TestMain(m *testing.M) { testleak.Main(m) }

// run is a run in which h1 went back twice and a workload ended with an error.
func run(verdict string) *bed.Result {
	t := metrics.NewTable(metrics.Standard)
	for phase, v := range map[metrics.Phase]float64{metrics.Before: 3, metrics.After: 5} {
		t.Add(metrics.Reading{Phase: phase, Samples: []metrics.Sample{
			{Name: "completer_retry_err", Labels: []string{"h1", "eth0"}, Value: v},
			{Name: "completer_retry_err", Labels: []string{"h2", "eth0"}, Value: 0},
		}})
	}
	return &bed.Result{Metrics: t, Summary: record.Summary{
		Verdict: verdict, Problems: []string{"w: 1 work request failed"},
		Workloads: []record.Workload{{Name: "w", Kind: "write", Passed: true, Bytes: 10, VerifiedBytes: 10, Statuses: []string{"RETRY_EXC_ERR"}}},
	}}
}

func TestPassIsTheVerdictAndItsFailureSaysWhy(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(record.Pass)).To(match.Pass())
	ok, err := match.Pass().Match(run(record.Fail))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	g.Expect(match.Pass().FailureMessage(run(record.Fail))).To(ContainSubstring("1 work request failed"))
}

func TestFailBecauseNeedsBothTheVerdictAndTheReason(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(record.Fail)).To(match.FailBecause("1 work request failed"))
	g.Expect(run(record.Fail)).NotTo(match.FailBecause("something else"))
	g.Expect(run(record.Pass)).NotTo(match.FailBecause("1 work request failed"))
}

func TestCountIsTheGrowthOfTheSeriesThatMatch(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(record.Pass)).To(match.Count("completer_retry_err", BeNumerically("==", 2)))
	g.Expect(run(record.Pass)).To(match.Count("completer_retry_err", BeZero(), "node=h2"))
	g.Expect(run(record.Pass)).NotTo(match.Count("completer_retry_err", BeZero(), "node=h1"))
	_, err := match.Count("no_such_metric", BeZero()).Match(run(record.Pass))
	g.Expect(err).To(HaveOccurred())
	_, err = match.Count("sent_pkts", BeZero()).Match(run(record.Pass))
	g.Expect(err).To(MatchError(ContainSubstring("was measured")))
	g.Expect(match.Count("completer_retry_err", BeZero()).FailureMessage(run(record.Pass))).To(ContainSubstring(`["h1" "eth0"] grew by 2`))
}

func TestBeIntactRefusesEveryWayOfNotBeing(t *testing.T) {
	g := NewWithT(t)
	whole := record.Workload{Passed: true, Bytes: 10, VerifiedBytes: 10}
	g.Expect(whole).To(match.BeIntact())
	for name, break1 := range map[string]func(*record.Workload){
		"failed":       func(w *record.Workload) { w.Passed = false },
		"nothing sent": func(w *record.Workload) { w.Bytes, w.VerifiedBytes = 0, 0 },
		"unverified":   func(w *record.Workload) { w.VerifiedBytes = 9 },
		"wrong bytes":  func(w *record.Workload) { w.WrongBytes = 1 },
		"violation":    func(w *record.Workload) { w.Violations = 1 },
		"error":        func(w *record.Workload) { w.Errors = 1 },
	} {
		w := whole
		break1(&w)
		g.Expect(w).NotTo(match.BeIntact(), name)
	}
}

func TestEndWithFindsTheStatusOfAQueuePair(t *testing.T) {
	g := NewWithT(t)
	w := run(record.Pass).Workloads[0]
	g.Expect(w).To(match.EndWith("RETRY_EXC_ERR"))
	g.Expect(w).NotTo(match.EndWith("RNR_RETRY_EXC_ERR"))
}
