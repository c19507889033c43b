package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocebed/rocebed/testbed/guest"
	"github.com/rocebed/rocebed/testbed/record"
)

// overIn is a run in a guest that is over, whose record goes below a folder of the test.
func overIn(t *testing.T, ended error) *guestRun {
	t.Helper()
	s, err := Load(filepath.Join("..", "scenarios", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "record")
	p, err := reserve(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	g := &guestRun{s: s, opt: RunOptions{Out: out, Progress: Silent{}}, choice: Choice{Backend: Kernel}, place: p, began: time.Now(), ended: ended}
	g.sum = emptySummary(s, g.choice, out)
	g.sum.Verdict = record.Pass
	g.complete = func(m *record.Manifest) {
		m.Guest, m.GuestBoot, m.Path = true, json.RawMessage(`{"accel":"tcg"}`), out
	}
	return g
}

// cutShort makes a record as a run leaves it that is killed in its midst.
func cutShort(dir string) error {
	w, err := record.Create(dir, record.Manifest{Name: "demo"})
	if err != nil {
		return err
	}
	err = w.Event(record.Event{Source: "run", What: "began"})
	w.Abandon()
	return err
}

func gone(string) error { return errors.New("its connection broke") }

// failedRecord opens the record of an outcome that must be a failure for the reasons wanted.
func failedRecord(t *testing.T, g *guestRun, out *Outcome, err error, want ...string) *record.Reader {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rd, err := record.Open(g.opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	m := rd.Manifest()
	if out.Passed() || m.Verdict != record.Fail || !m.Guest || len(m.GuestBoot) == 0 || out.Summary.Record != m.Path || !out.Summary.Guest {
		t.Errorf("outcome %+v, manifest %+v", out.Summary, m)
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(m.Problems, "\n"), w) || !strings.Contains(strings.Join(out.Summary.Problems, "\n"), w) {
			t.Errorf("want %q among the problems of the manifest %q and of the outcome %q", w, m.Problems, out.Summary.Problems)
		}
	}
	if _, err := os.Stat(filepath.Join(g.opt.Out, ".coming")); !errors.Is(err, fs.ErrNotExist) {
		g.place.release()
		if _, err := os.Stat(filepath.Join(g.opt.Out, ".coming")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left behind: .coming (%v)", err)
		}
	}
	return rd
}

func TestARunUnderAClockThatIsOffFails(t *testing.T) {
	g := overIn(t, nil)
	out, err := g.conclude(fetched, "the guest's clock runs fast", nil)
	rd := failedRecord(t, g, out, err, "the figures can't be trusted: the guest's clock runs fast")
	if err := rd.Verify(); err != nil {
		t.Errorf("data/ was touched: %v", err)
	}
	for _, name := range []string{"report.html", "junit.xml"} {
		if b, err := os.ReadFile(filepath.Join(g.opt.Out, name)); err != nil || !strings.Contains(string(b), "clock runs fast") {
			t.Errorf("%s says nothing of it (%v)", name, err)
		}
	}
}

func TestARunUnderAGoodClockKeepsItsVerdict(t *testing.T) {
	g := overIn(t, nil)
	out, err := g.conclude(fetched, "", nil)
	if err != nil || !out.Passed() {
		t.Fatalf("%+v, %v", out, err)
	}
	if rd, err := record.Open(g.opt.Out); err != nil || rd.Manifest().Verdict != record.Pass || len(rd.Manifest().Problems) > 0 {
		t.Errorf("%v, %v", rd, err)
	}
}

func TestWhatARunThatWasKilledHasRecordedIsKept(t *testing.T) {
	g := overIn(t, &GuestError{Code: 137})
	out, err := g.conclude(cutShort, "", nil)
	rd := failedRecord(t, g, out, err, "exit code 137")
	if events, err := rd.Events(); err != nil || len(events) != 1 || rd.Manifest().Complete {
		t.Errorf("events %v, %v; manifest %+v", events, err, rd.Manifest())
	}
}

func TestTheRecordOfAGuestThatDiedSaysSo(t *testing.T) {
	died := &guest.Failure{Kind: guest.ErrPanic, Detail: "Kernel panic - not syncing: out of luck", Console: []string{"last words"}}
	half := func(dir string) error {
		return errors.Join(cutShort(dir), errors.New("broke off"))
	}
	for name, fetch := range map[string]func(string) error{"at once": gone, "with half of its record sent": half} {
		t.Run(name, func(t *testing.T) {
			g := overIn(t, fmt.Errorf("run in the guest: %w", died))
			out, err := g.conclude(fetch, "", []string{"first words", "last words"})
			rd := failedRecord(t, g, out, err, "out of luck", "last words")
			if err := rd.Verify(); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(filepath.Join(g.opt.Out, consoleFile)); err != nil || string(b) != "first words\nlast words\n" {
				t.Errorf("console: %q, %v", b, err)
			}
			if b, err := rd.File(record.ScenarioFile); err != nil || string(b) != string(g.s.Source) {
				t.Errorf("the scenario is not in it: %v", err)
			}
		})
	}
}

func TestARunThatWasKilledBeforeItRecordedAnythingLeavesARecordThatSaysSo(t *testing.T) {
	g := overIn(t, &GuestError{Code: 137})
	out, err := g.conclude(gone, "", nil)
	failedRecord(t, g, out, err, "exit code 137")
}

func TestAGuestThatDiesWithTheResultOutAndTheRecordInLeavesOneThatSaysSo(t *testing.T) {
	g := overIn(t, nil)
	out, err := g.conclude(gone, "", []string{"last words"})
	failedRecord(t, g, out, err, "its record did not come", "its connection broke")
}

func TestARunThatTheGuestRefusesLeavesNoRecord(t *testing.T) {
	g := overIn(t, &GuestError{Code: 3})
	var refused *GuestError
	if out, err := g.conclude(gone, "", nil); !errors.As(err, &refused) || refused.Code != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	g.place.release()
	if _, err := os.Stat(g.opt.Out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s (%v)", g.opt.Out, err)
	}
}
