package testbed

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rocebed/rocebed/testbed/record"
)

func TestRunsThatBeginTogetherHaveRecordsOfTheirOwn(t *testing.T) {
	source := quickstart(t)
	t.Chdir(t.TempDir())
	const many = 4
	var wg sync.WaitGroup
	got := make([]string, many)
	for i := range many {
		wg.Go(func() {
			s, err := Parse("test.yaml", []byte(source))
			if err != nil {
				t.Error(err)
				return
			}
			out, err := Run(t.Context(), s, RunOptions{Backend: Sim})
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = out.Summary.Record
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, dir := range got {
		r, err := record.Open(dir)
		if err != nil || seen[dir] {
			t.Errorf("records %q, %q: %v", got, dir, err)
			continue
		}
		seen[dir] = true
		if err := r.Verify(); err != nil || r.Manifest().Path != dir {
			t.Errorf("%s: path %q, %v", dir, r.Manifest().Path, err)
		}
	}
}

func TestARunThatIsRefusedLeavesNoFolder(t *testing.T) {
	s, err := Parse("test.yaml", []byte(quickstart(t)))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Chdir(root)
	if _, err := Run(t.Context(), s, RunOptions{Backend: Sim, Guest: true}); err == nil {
		t.Error("virtual time in a guest was not refused")
	}
	if left, _ := filepath.Glob(filepath.Join(root, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile("out", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), s, RunOptions{Backend: Sim}); err == nil {
		t.Error("a record below a file was not refused")
	}
}
