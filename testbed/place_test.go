package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

// fetched makes a record as a guest leaves it.
func fetched(dir string) error {
	w, err := record.Create(dir, record.Manifest{Name: "demo"})
	if err != nil {
		return err
	}
	_, err = w.Finish(record.Manifest{Name: "demo", Verdict: record.Pass})
	return errors.Join(err, w.PutBeside("report.html", []byte("<html>")))
}

func TestARecordComesToWhereverOutPoints(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"there", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("elsewhere", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for _, out := range []string{"there", "link", "new/deep/", "./new/../other", "ünï cödé"} {
		p, err := reserve(out)
		if err != nil {
			t.Errorf("%s: %v", out, err)
			continue
		}
		err = p.take(fetched, func(m *record.Manifest) { m.Path = out })
		p.release()
		if err != nil {
			t.Errorf("%s: %v", out, err)
			continue
		}
		rd, err := record.Open(out)
		if err != nil {
			t.Errorf("%s: %v", out, err)
			continue
		}
		if err := rd.Verify(); err != nil || rd.Manifest().Path != out {
			t.Errorf("%s: path %q, %v", out, rd.Manifest().Path, err)
		}
		entries, _ := os.ReadDir(out)
		if len(entries) != 3 {
			t.Errorf("%s holds %v, want data, manifest.json and report.html", out, entries)
		}
	}
	empty := filepath.Join(root, "cwd")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(empty)
	p, err := reserve(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.take(fetched, func(*record.Manifest) {}); err != nil {
		t.Errorf("into the working directory: %v", err)
	}
	p.release()
}

func TestAnOutThatCannotBeWrittenIsFoundBeforeTheRun(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, []byte("years of work"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(root, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{file, filepath.Join(file, "below"), filepath.Join(root, "dangling"), "/proc/record"} {
		if _, err := reserve(out); err == nil || !strings.Contains(err.Error(), "record") {
			t.Errorf("%s: %v", out, err)
		}
	}
	if _, err := reserve(root); !errors.Is(err, record.ErrExists) {
		t.Errorf("a folder with something in it: %v", err)
	}
	out := filepath.Join(root, "twice")
	p, err := reserve(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(out); !errors.Is(err, record.ErrExists) {
		t.Errorf("a folder that another run waits to fill: %v", err)
	}
	broken := errors.New("the guest died")
	if err := p.take(func(string) error { return broken }, func(*record.Manifest) {}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	p.release()
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", out, err)
	}
	if b, _ := os.ReadFile(file); string(b) != "years of work" {
		t.Errorf("the file holds %q now", b)
	}
}
