package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/testbed/record"
)

// run is what a test says of a run that never was; its record is written and read as a real one's.
type run struct {
	backend  string
	seed     uint64
	scenario string
	workload record.Workload
	faults   []record.Fault
	counts   map[string]float64 // growth over the run
	passed   bool
	incompl  bool
}

func (x run) record(t *testing.T, name string) *record.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	w, err := record.Create(dir, record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	sum := record.Summary{Name: "demo", Backend: x.backend, Seed: x.seed, Verdict: record.Pass, Workloads: []record.Workload{x.workload}, Faults: x.faults,
		Expectations: []record.Expectation{{Expr: "it works", Passed: x.passed, Values: []record.Value{{Expr: "it", Value: "0"}}}}}
	for _, phase := range []metrics.Phase{metrics.Before, metrics.After} {
		r := metrics.Reading{Phase: phase}
		for n, v := range x.counts {
			if phase == metrics.Before {
				v = 0
			} else if v != 0 {
				sum.Counters = append(sum.Counters, record.Counter{Name: n, Total: v})
			}
			r.Samples = append(r.Samples, metrics.Sample{Name: n, Labels: []string{"h1", "eth0"}, Value: v})
		}
		must(t, w.Reading(metrics.Standard, r))
	}
	must(t, w.Put(record.ScenarioFile, []byte(x.scenario)))
	must(t, w.Event(record.Event{At: 7 * time.Millisecond, What: "finished"}))
	object, err := sum.JSON()
	must(t, err)
	must(t, w.PutBeside(record.SummaryFile, object))
	if x.incompl {
		w.Abandon()
	} else {
		verdict := record.Fail
		if x.passed {
			verdict = record.Pass
		}
		_, err := w.Finish(record.Manifest{Name: "demo", Verdict: verdict, Wall: 3 * time.Second})
		must(t, err)
	}
	r, err := record.Open(dir)
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func row(rows []Row, name string) Row {
	for _, r := range rows {
		if r.Name == name {
			return r
		}
	}
	return Row{Name: "no row " + name}
}

func TestEachRowHasAValueOfEveryRunThatMeasuredIt(t *testing.T) {
	kernel := run{backend: "kernel", passed: true, workload: record.Workload{Name: "w", Kind: "write", GoodputBps: 100, Retries: 3},
		counts: map[string]float64{"sent_pkts": 1000, "rcvd_seq_err": 0}}
	sim := run{backend: "sim", passed: true, workload: record.Workload{Name: "w", Kind: "write", GoodputBps: 200, Retries: 4},
		counts: map[string]float64{"sent_pkts": 1010, "rcvd_seq_err": 2, "np_cnp_sent": 5}}
	c, err := Records(metrics.Standard, kernel.record(t, "a"), sim.record(t, "b"))
	if err != nil {
		t.Fatal(err)
	}
	goodput := row(c.Workloads[0].Rows, "goodput")
	if !goodput.Differs || goodput.Ratio != 2 || *goodput.Values[0] != 100 || *goodput.Values[1] != 200 {
		t.Errorf("goodput: %+v", goodput)
	}
	if r := row(c.Counters, "sent_pkts"); r.Differs || r.Unit != "packets" {
		t.Errorf("1000 and 1010 packets lie within chance: %+v", r)
	}
	if r := row(c.Counters, "rcvd_seq_err"); r.Values[0] == nil || *r.Values[0] != 0 || *r.Values[1] != 2 {
		t.Errorf("a counter that did not move is 0: %+v", r)
	}
	if r := row(c.Counters, "np_cnp_sent"); r.Values[0] != nil || *r.Values[1] != 5 || r.Differs {
		t.Errorf("a counter that a backend doesn't have is no value: %+v", r)
	}
	if !c.SameScenario || !c.SameSeed || !c.Passed() || c.Runs[0].Label != "kernel" || c.Runs[1].Wall != 3*time.Second || c.Runs[0].Fabric != 7*time.Millisecond {
		t.Errorf("%+v", c)
	}
}

func TestWhatDiffersHasItsReasonsAndOnlyThoseOfTheBackendsAndFaultsAtHand(t *testing.T) {
	slow, fast := record.Workload{Name: "w", GoodputBps: 100}, record.Workload{Name: "w", GoodputBps: 300}
	reasons := func(a, b run) (whats []string) {
		t.Helper()
		c, err := Records(metrics.Standard, a.record(t, "a"), b.record(t, "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range row(c.Workloads[0].Rows, "goodput").Why {
			whats = append(whats, c.Reasons[at].What)
		}
		return whats
	}
	has := func(whats []string, what string) bool { return strings.Contains(strings.Join(whats, ";"), what) }
	lossy := []record.Fault{{Name: "f", Kind: "loss"}}

	if got := reasons(run{backend: "kernel", workload: slow}, run{backend: "sim", workload: fast}); !has(got, "unacknowledged") || !has(got, "own time") || has(got, "a fault hits") || has(got, "CNP") {
		t.Errorf("kernel and sim: %q", got)
	}
	if got := reasons(run{backend: "soft", workload: slow, faults: lossy}, run{backend: "sim", workload: fast, faults: lossy}); has(got, "unacknowledged") || !has(got, "own time") || !has(got, "a fault hits") {
		t.Errorf("soft and sim with a loss: %q", got)
	}
	if got := reasons(run{backend: "sim", workload: slow}, run{backend: "sim", workload: fast}); len(got) > 0 {
		t.Errorf("one backend explains nothing: %q", got)
	}
}

func TestRunsThatAreNotOfOneKindAreSaidToBe(t *testing.T) {
	a := run{backend: "sim", passed: true, seed: 1, scenario: "one"}.record(t, "first")
	b := run{backend: "sim", seed: 2, scenario: "two"}.record(t, "second")
	c, err := Records(metrics.Standard, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if c.SameScenario || c.SameSeed || c.Passed() || c.Runs[0].Label != "first" || c.Runs[1].Label != "second" {
		t.Errorf("%+v", c)
	}
	x := c.Expectations[0]
	if !*x.Passed[0] || *x.Passed[1] || len(x.Saw[0]) != 0 || x.Saw[1][0].Expr != "it" {
		t.Errorf("%+v", x)
	}
	if _, err := Records(metrics.Standard, a, run{incompl: true}.record(t, "c")); err == nil || !strings.Contains(err.Error(), "incomplete") {
		t.Errorf("a record that was cut short: %v", err)
	}
	same, err := Records(metrics.Standard, run{backend: "sim"}.record(t, "r"), run{backend: "sim"}.record(t, "r"))
	if err != nil || same.Runs[0].Label != "1: sim" || same.Runs[1].Label != "2: sim" {
		t.Errorf("%+v, %v", same, err)
	}
}

func TestCountsDifferFromThreeStandardDeviationsOn(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for name, c := range map[string]struct {
		row     Row
		differs bool
	}{
		"within chance":           {Row{Unit: "packets", Values: []*float64{f(30), f(48), f(38)}}, false},
		"beyond chance":           {Row{Unit: "packets", Values: []*float64{f(29), f(213)}}, true},
		"none and one":            {Row{Unit: "packets", Values: []*float64{f(0), f(1)}}, false},
		"none and many":           {Row{Unit: "packets", Values: []*float64{f(0), f(10)}}, true},
		"exact":                   {Row{Name: "messages", Unit: "messages", Values: []*float64{f(100), f(101)}}, true},
		"rates close by":          {Row{Unit: "bps", Values: []*float64{f(100), f(120)}}, false},
		"rates apart":             {Row{Unit: "bps", Values: []*float64{f(100), f(126)}}, true},
		"only one has it":         {Row{Unit: "bps", Values: []*float64{f(100), nil}}, false},
		"passed and did not pass": {Row{Unit: "bool", Values: []*float64{f(1), f(0)}}, true},
	} {
		if c.row.judge(); c.row.Differs != c.differs {
			t.Errorf("%s: %+v", name, c.row)
		}
	}
}

func TestTheDocumentationHasTheTableOfDifferences(t *testing.T) {
	page, err := os.ReadFile("../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	if Inside(string(page), "differences") != strings.TrimSpace(DifferencesTable()) {
		t.Error("docs/backends.md is not what the code says: go generate ./testbed/compare")
	}
	for _, d := range Differences() {
		if d.What == "" || d.Kernel == "" || d.Software == "" {
			t.Errorf("%+v says not what it is", d)
		}
		for _, name := range d.shows {
			_, metric := metrics.Standard.Lookup(name)
			if !metric && row(newRows(0, ofWorkloads), name).Unit == "" && row(newRows(0, ofFaults), name).Unit == "" {
				t.Errorf("%s shows in %q, which nothing measures", d.What, name)
			}
		}
	}
}

func TestABlockOfAPageIsReplacedAndNothingElse(t *testing.T) {
	page := "before\n<!-- it: made -->\nold\n<!-- end it -->\nafter\n"
	got, err := Block(page, "it", "new\n")
	if want := "before\n<!-- it: made -->\n\nnew\n\n<!-- end it -->\nafter\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if Inside(got, "it") != "new" {
		t.Errorf("%q", Inside(got, "it"))
	}
	if _, err := Block("nothing", "it", "new"); err == nil {
		t.Error("a page without the block was taken")
	}
}
