package report

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/compare"
	"github.com/rocebed/rocebed/testbed/record"
)

func comparison() *compare.Comparison {
	f := func(v float64) *float64 { return &v }
	yes, no := true, false
	return &compare.Comparison{
		Runs: []compare.Run{
			{Label: "sim", Backend: "sim", Name: "quickstart", Verdict: record.Pass, DilationNamed: "4096", Wall: 240 * time.Millisecond, Fabric: 5 * time.Millisecond, Record: "out/a"},
			{Label: "kernel", Backend: "kernel", Guest: true, Name: "quickstart", Verdict: record.Fail, Dilation: 1024, Wall: 12 * time.Second, Record: "out/b", Problems: []string{"it went wrong " + strings.Repeat("and wrong ", 20)}},
		},
		SameScenario: true,
		Workloads: []compare.Group{{Name: "all-pairs", Kind: "all-pairs", Rows: []compare.Row{
			{Name: "goodput", Unit: "bps", Values: []*float64{f(12.6e9), f(31.5e9)}, Differs: true, Ratio: 2.5, Why: []int{0}},
			{Name: "busbw", Unit: "bps", Values: []*float64{f(0), f(0)}},
			{Name: "p99", Unit: "ns", Values: []*float64{f(2.3e6), nil}},
			{Name: "wrong_bytes", Unit: "bytes", Values: []*float64{f(0), f(0)}},
			{Name: "passed", Unit: "bool", Values: []*float64{f(1), f(0)}, Differs: true},
		}}},
		Faults:   []compare.Group{{Name: "lossy", Kind: "loss", Rows: []compare.Row{{Name: "hits", Unit: "packets", Values: []*float64{f(30), f(38)}}}}},
		Counters: []compare.Row{{Name: "sent_pkts", Unit: "packets", Values: []*float64{f(5866), f(5993)}}},
		Expectations: []compare.Expectation{
			{Expr: `workloads.all(w, workloads[w].errors == 0) || true`, Passed: []*bool{&yes, &no}, Saw: [][]record.Value{nil, {{Expr: `workloads["all-pairs"].errors`, Value: "3"}}}},
			{Expr: `delta("retry_exceeded_err") == 0`, Passed: []*bool{nil, &yes}, Saw: make([][]record.Value, 2)},
		},
		Reasons: compare.Differences()[:1],
	}
}

func TestRunsStandSideBySideInAHundredColumns(t *testing.T) {
	var b strings.Builder
	if err := Comparison(&b, comparison(), true); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := Comparison(&page, comparison(), false); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := width(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	got := regexp.MustCompile(` +`).ReplaceAllString(page.String(), " ")
	for _, want := range []string{"PASS FAIL\n", "virtual time the guest", "– (named: 4,096) 1,024", "12.6 Gbps 31.5 Gbps ×2.5 a\n", "2.30 ms –\n", " passed yes NO differ\n",
		" ✓✗ workloads.all", `kernel: workloads["all-pairs"].errors = 3`, " –✓ delta", "✗ kernel: it went wrong", "different seeds", " a transport: on kernel rdma_rxe's", "record out/b"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, no := range []string{"busbw", "wrong_bytes", "different scenarios", "verbs.md", "`", "\x1b"} {
		if strings.Contains(got, no) {
			t.Errorf("%q is in\n%s", no, got)
		}
	}
}

func TestTheMarkdownTableHasAColumnARun(t *testing.T) {
	var b strings.Builder
	if err := ComparisonMarkdown(&b, comparison()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if cells != 5 {
			t.Errorf("%d bars: %s", cells, line)
		}
	}
	for _, want := range []string{"| quickstart | `sim` | `kernel` |  |\n| --- | ---: | ---: | --- |\n", "| all-pairs: goodput | 12.6 Gbps | 31.5 Gbps | ×2.5 |", "| lossy: hits | 30 | 38 |  |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
