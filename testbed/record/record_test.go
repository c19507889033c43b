package record

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
)

func write(t *testing.T, dir string, text string) string {
	t.Helper()
	w, err := Create(dir, Manifest{Name: "demo", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	must(t, w.Put(ScenarioFile, []byte("name: demo\n")))
	must(t, w.Event(Event{At: 5 * time.Microsecond, Source: "fault", Name: "lossy", What: "applied", Text: text}))
	sample := func(phase metrics.Phase, at time.Duration, h1, h2 float64) {
		must(t, w.Reading(metrics.Standard, metrics.Reading{Phase: phase, At: at, Samples: []metrics.Sample{
			{Name: "sent_pkts", Labels: []string{"h1", "eth0"}, Value: h1},
			{Name: "sent_pkts", Labels: []string{"h2", "eth0"}, Value: h2},
		}}))
	}
	sample(metrics.Before, 0, 1, 1)
	sample(metrics.During, time.Millisecond, 1, 4)
	sample(metrics.After, 2*time.Millisecond, 9, 4)
	c, err := w.Stream("captures/h1-eth0.pcapng")
	must(t, err)
	_, err = c.Write([]byte("packets"))
	must(t, err)
	hash, err := w.Finish(Manifest{Name: "demo", Verdict: "pass"})
	must(t, err)
	return hash
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestARecordReadsBackAsItWasWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	hash := write(t, dir, "1% <loss>")
	r, err := Open(dir)
	must(t, err)
	must(t, r.Verify())
	if m := r.Manifest(); !m.Complete || m.Hash != hash || m.Verdict != "pass" {
		t.Errorf("manifest: %+v", m)
	}
	events, err := r.Events()
	must(t, err)
	if len(events) != 1 || events[0].Text != "1% <loss>" || events[0].At != 5*time.Microsecond {
		t.Errorf("events: %+v", events)
	}
	table, err := r.Table(metrics.Standard)
	must(t, err)
	if got := table.Total("sent_pkts", nil); got != 11 {
		t.Errorf("sent_pkts grew by %v, want 11", got)
	}
	h2, err := table.Select("sent_pkts", map[string]string{"node": "h2"})
	must(t, err)
	if h2[0].Mean() != 3 {
		t.Errorf("a value that did not change was not carried forward: mean %v, want 3", h2[0].Mean())
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp"))
	if must(t, err); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheHashIsOfContentsAlone(t *testing.T) {
	a := write(t, filepath.Join(t.TempDir(), "a"), "x")
	b := write(t, filepath.Join(t.TempDir(), "b"), "x")
	c := write(t, filepath.Join(t.TempDir(), "c"), "y")
	if a != b || a == c {
		t.Errorf("equal data: %s and %s; other data: %s", a, b, c)
	}
}

func TestAChangedRecordIsFoundOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	write(t, dir, "x")
	must(t, os.WriteFile(filepath.Join(dir, "data", VerdictsFile), []byte("[]"), 0o644))
	r, err := Open(dir)
	must(t, err)
	if err := r.Verify(); err == nil || !strings.Contains(err.Error(), "changed after the run") {
		t.Errorf("got %v", err)
	}
}

func TestARecordThatWasCutShortIsKnownAndStillRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, Manifest{Name: "demo"})
	must(t, err)
	must(t, w.Event(Event{What: "up"}))
	w.Abandon()
	events := filepath.Join(dir, "data", EventsFile)
	b, err := os.ReadFile(events)
	must(t, err)
	must(t, os.WriteFile(events, append(b, `{"t":3,"wha`...), 0o644))

	r, err := Open(dir)
	must(t, err)
	if err := r.Verify(); err == nil || !strings.Contains(err.Error(), "incomplete") {
		t.Errorf("Verify: %v", err)
	}
	got, err := r.Events()
	if must(t, err); !reflect.DeepEqual(got, []Event{{What: "up"}}) {
		t.Errorf("events: %+v", got)
	}
}

func TestEventsStandInOrderOfTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	w, err := Create(dir, Manifest{Name: "demo"})
	must(t, err)
	for _, e := range []Event{{At: 2204, What: "planned"}, {At: 230, What: "started"}, {At: -5, What: "set up"}, {At: 230, What: "after it"}} {
		must(t, w.Event(e))
	}
	want := "set up, started, after it, planned"
	read := func() string {
		r, err := Open(dir)
		must(t, err)
		events, err := r.Events()
		must(t, err)
		var got []string
		for _, e := range events {
			got = append(got, e.What)
		}
		return strings.Join(got, ", ")
	}
	if got := read(); got != want {
		t.Errorf("while the run goes on, the reader gives: %s", got)
	}
	_, err = w.Finish(Manifest{Name: "demo", Verdict: Pass})
	must(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "data", EventsFile))
	must(t, err)
	place := -1
	for _, what := range strings.Split(want, ", ") {
		at := strings.Index(string(b), `"`+what+`"`)
		if at < place || at < 0 {
			t.Errorf("%q is not in its place:\n%s", what, b)
		}
		place = at
	}
	r, err := Open(dir)
	must(t, err)
	must(t, r.Verify())
}

func TestARecordIsNeverWrittenOverSomethingElse(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("years of work"), 0o644))
	if _, err := Create(dir, Manifest{}); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadDir(dir); len(got) != 1 {
		t.Errorf("something was written: %v", got)
	}
}
