//go:build linux

package linux

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestAJournalIsReadBackWithoutWhatWasDisowned(t *testing.T) {
	dir := t.TempDir()
	j, err := startJournal(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	a, b := Entry{"file", []string{"/a"}}, Entry{"file", []string{"/b", "with\nnewline"}}
	for _, err := range []error{j.own(a, b), j.own(a), j.disown(a)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, same, err := readJournal(dir)
	if err != nil || !same || !reflect.DeepEqual(got, []Entry{a, b}) {
		t.Fatalf("read %v, same boot %v, error %v", got, same, err)
	}
}

// Whatever byte a writer died at, what is read is a prefix of what was written.
func TestAJournalCutAnywhereReadsAsWhatWasWrittenWhole(t *testing.T) {
	dir := t.TempDir()
	j, err := startJournal(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	var want []Entry
	for _, id := range []string{"one", "two", "three"} {
		e := Entry{"file", []string{id}}
		want = append(want, e)
		if err := j.own(e); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(journalPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(journalPath(dir), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := readJournal(dir)
		lines := strings.Count(string(whole[:cut]), "\n") - 1
		if err != nil || len(got) != max(lines, 0) || len(got) > 0 && !reflect.DeepEqual(got, want[:lines]) {
			t.Fatalf("cut at %d of %d: read %v, error %v", cut, len(whole), got, err)
		}
	}
}

func TestAJournalOfAnotherBootIsToldApart(t *testing.T) {
	dir := t.TempDir()
	text := `{"boot":"of old","testbed":"x"}` + "\n" + `{"op":"own","kind":"process","id":["1","2"]}` + "\n"
	if err := os.WriteFile(journalPath(dir), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, same, err := readJournal(dir)
	if err != nil || same || len(got) != 1 {
		t.Fatalf("read %v, same boot %v, error %v", got, same, err)
	}
}
