// Package match is Gomega matchers over what a run left (bed.Result) and its workloads. A
// failed match says why: the verdict's problems, failed expectations, the series of a counter.
package match

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/rocebed/rocebed/suites/bed"
	"github.com/rocebed/rocebed/testbed/record"
)

// Pass succeeds for a run whose verdict is pass.
func Pass() types.GomegaMatcher {
	return &matcher[*bed.Result]{
		what: "pass",
		test: func(r *bed.Result) (bool, error) { return r.Verdict == record.Pass, nil },
		seen: verdict,
	}
}

// FailBecause succeeds for a run that failed with a problem, a workload's problem or a failed
// expectation that contains the text.
func FailBecause(text string) types.GomegaMatcher {
	return &matcher[*bed.Result]{
		what: fmt.Sprintf("fail because of %q", text),
		test: func(r *bed.Result) (bool, error) {
			return r.Verdict == record.Fail && strings.Contains(verdict(r), text), nil
		},
		seen: verdict,
	}
}

// Count succeeds when a counter's growth over the run, summed over the series that match the
// selectors ("node=leaf*"), satisfies the matcher.
func Count(metric string, growth types.GomegaMatcher, selectors ...string) types.GomegaMatcher {
	return &matcher[*bed.Result]{
		what: fmt.Sprintf("have a growth of %s %s that satisfies the matcher", metric, strings.Join(selectors, " ")),
		test: func(r *bed.Result) (bool, error) {
			n, err := r.Count(metric, selectors...)
			if err != nil {
				return false, err
			}
			return growth.Match(n)
		},
		seen: func(r *bed.Result) string {
			n, _ := r.Count(metric, selectors...)
			return growth.FailureMessage(n) + "\n" + series(r, metric)
		},
	}
}

// BeIntact succeeds for a workload that moved data, all of it right at its destination, with no
// failed work request.
func BeIntact() types.GomegaMatcher {
	return &matcher[record.Workload]{
		what: "have moved its data intact",
		test: func(w record.Workload) (bool, error) {
			return w.Passed && w.Bytes > 0 && w.VerifiedBytes >= w.Bytes && w.WrongBytes == 0 && w.Violations == 0 && w.Errors == 0, nil
		},
		seen: workload,
	}
}

// EndWith succeeds for a workload of which a queue pair ended with the completion status, as
// libibverbs names it (RETRY_EXC_ERR), and whose other bytes are nothing that verbs forbid.
func EndWith(status string) types.GomegaMatcher {
	return &matcher[record.Workload]{
		what: "have ended with " + status,
		test: func(w record.Workload) (bool, error) {
			return gomega.ContainElement(gomega.ContainSubstring(status)).Match(w.Statuses)
		},
		seen: workload,
	}
}

func verdict(r *bed.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "verdict %s\n", r.Verdict)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	for _, w := range r.Workloads {
		for _, p := range w.Problems {
			fmt.Fprintf(&b, "  %s: %s\n", w.Name, p)
		}
	}
	for _, f := range r.Faults {
		for _, p := range f.Problems {
			fmt.Fprintf(&b, "  %s: %s\n", f.Name, p)
		}
	}
	for _, e := range r.Expectations {
		if !e.Passed {
			fmt.Fprintf(&b, "  %s\n", e)
		}
	}
	return b.String()
}

func workload(w record.Workload) string {
	return fmt.Sprintf("%s %s: passed %v, %d bytes, %d verified, %d wrong, %d violations, %d errors %q, problems %q",
		w.Kind, w.Name, w.Passed, w.Bytes, w.VerifiedBytes, w.WrongBytes, w.Violations, w.Errors, w.Statuses, w.Problems)
}

func series(r *bed.Result, metric string) string {
	var b strings.Builder
	all, err := r.Metrics.Select(metric, nil)
	if err != nil {
		return err.Error()
	}
	for _, s := range all {
		if s.Delta() != 0 {
			fmt.Fprintf(&b, "  %s%q grew by %v\n", s.Name, s.Labels, s.Delta())
		}
	}
	return b.String()
}

// matcher is a Gomega matcher for one type.
type matcher[T any] struct {
	what string
	test func(T) (bool, error)
	seen func(T) string
}

func (m *matcher[T]) Match(actual any) (bool, error) {
	v, ok := actual.(T)
	if !ok {
		return false, fmt.Errorf("this matcher takes a %T, not a %T", *new(T), actual)
	}
	return m.test(v)
}

func (m *matcher[T]) FailureMessage(actual any) string {
	return fmt.Sprintf("expected it to %s, but saw:\n%s", m.what, m.seen(actual.(T)))
}

func (m *matcher[T]) NegatedFailureMessage(actual any) string {
	return fmt.Sprintf("expected it not to %s, but saw:\n%s", m.what, m.seen(actual.(T)))
}
