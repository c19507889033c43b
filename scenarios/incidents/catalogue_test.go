package incidents

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed"
	"github.com/rocebed/rocebed/testbed/record"
)

func TestEveryFileIsAnIncidentsAndReadsAsAScenario(t *testing.T) {
	there, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, x := range All() {
		for _, cured := range []bool{false, true} {
			named[x.File(cured)] = true
			s, err := x.Scenario(cured)
			if err != nil {
				t.Error(err)
				continue
			}
			want := x.Name
			if cured {
				want += "-cure"
			}
			if s.Name != want || len(s.Expect) == 0 {
				t.Errorf("%s: is called %q and expects %q", x.File(cured), s.Name, s.Expect)
			}
		}
	}
	for _, f := range there {
		if !named[f] {
			t.Errorf("%s belongs to no incident of the catalogue", f)
		}
	}
}

func TestACureIsAFewLines(t *testing.T) {
	for _, x := range All() {
		if d := x.Diff(); len(d) == 0 || len(d) > 4 {
			t.Errorf("%s: the cured scenario differs in %d lines:\n%s", x.Name, len(d), strings.Join(d, "\n"))
		}
	}
}

func TestTheDifferenceIsWhatIsTakenAwayAndAdded(t *testing.T) {
	got := strings.Join(diff([]string{"a", "b", "c", "e"}, []string{"a", "x", "c", "d", "e"}), " ")
	if got != "-b +x +d" {
		t.Error(got)
	}
}

func TestAnIncidentIsFoundByItsNameAndItsNumber(t *testing.T) {
	for _, name := range []string{"victim-flow", "8"} {
		if x, err := Find(name); err != nil || x.Number != 8 {
			t.Errorf("%s: %v, %v", name, x.Name, err)
		}
	}
	if _, err := Find("victim-flaw"); err == nil || !strings.Contains(err.Error(), `"victim-flow"`) {
		t.Errorf("a misspelt name: %v", err)
	}
}

func TestThePageHasEachIncident(t *testing.T) {
	page, err := os.ReadFile("../../docs/incidents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range All() {
		for _, want := range []string{"## " + x.Title + "\n", "`" + x.Name + "`", x.Source} {
			if !bytes.Contains(page, []byte(want)) {
				t.Errorf("docs/incidents.md has no %q", want)
			}
		}
	}
}

func TestASlowMachineIsForgivenAndNothingElse(t *testing.T) {
	slow, held, failed := "the figures can't be trusted: the machine did not keep up", record.Expectation{Passed: true}, record.Expectation{}
	for _, c := range []struct {
		problems []string
		expected []record.Expectation
		want     bool
	}{
		{[]string{slow}, []record.Expectation{held}, true},
		{[]string{slow}, []record.Expectation{held, failed}, false},
		{[]string{slow, "workload w: wrong bytes"}, []record.Expectation{held}, false},
		{[]string{slow}, nil, false}, // the fabric never came up
		{nil, []record.Expectation{held}, false},
	} {
		if got := onlySlow(&record.Summary{Problems: c.problems, Expectations: c.expected}); got != c.want {
			t.Errorf("%q, %v: %v", c.problems, c.expected, got)
		}
	}
}

func TestATableHasBothRunsOfAnIncident(t *testing.T) {
	x, err := Find("ecn-above-xoff")
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	opt := testbed.RunOptions{Out: t.TempDir()}
	if err := RunAll(context.Background(), []Incident{x}, []testbed.Backend{testbed.Sim}, opt, func(r Row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || !rows[0].AsToldOf() {
		t.Fatalf("%+v", rows)
	}
	var text, markdown bytes.Buffer
	if err := Text(&text, rows); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&markdown, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"✓", "symptom seen", "cure works", "packets marked"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if want := "| 9 | `ecn-above-xoff` | `sim` | seen | works | pauses "; !strings.Contains(markdown.String(), want) {
		t.Errorf("no %q in\n%s", want, markdown.String())
	}
	for _, without := range []bool{true, false} { // a run in which the symptom is where it shouldn't be, or isn't where it should
		r := rows[0]
		if without {
			w := *r.Without
			w.Symptom = false
			r.Without = &w
		} else {
			w := *r.With
			w.Symptom = true
			r.With = &w
		}
		if r.AsToldOf() {
			t.Errorf("the row passes all the same: without %v, with %v", r.Without.Symptom, r.With.Symptom)
		}
	}
}

func TestARunThatWasCutShortSaysNothingOfTheSymptom(t *testing.T) {
	x, err := Find("victim-flow")
	if err != nil {
		t.Fatal(err)
	}
	for _, cured := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Run(ctx, x, cured, testbed.RunOptions{Backend: testbed.Sim, Out: filepath.Join(t.TempDir(), "record"), Progress: interrupting{cancel: cancel}})
		cancel()
		if err != nil || r.Judged || r.Symptom || r.AsToldOf() {
			t.Errorf("cured %v: %+v, %v", cured, r, err)
		}
	}
}

// interrupting ends a run with its first step.
type interrupting struct {
	testbed.Silent
	cancel func()
}

func (i interrupting) Step(string) { i.cancel() }
