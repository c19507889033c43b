package record

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestWhoClaimsAFolderAtTheSameMomentGetsOneOfItsOwn(t *testing.T) {
	base := filepath.Join(t.TempDir(), "out", "demo-20260101-120000")
	const many = 16
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[string]bool{}
	for range many {
		wg.Go(func() {
			dir, err := Claim(base)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[dir] = true
		})
	}
	wg.Wait()
	if len(got) != many || !got[base] || !got[base+"-16"] {
		t.Errorf("%d folders for %d: %v", len(got), many, got)
	}
	if _, err := Create(base, Manifest{Name: "demo"}); err != nil {
		t.Errorf("a record in a folder that was claimed: %v", err)
	}
	for dir := range got {
		Unclaim(dir)
	}
	if left, _ := os.ReadDir(filepath.Dir(base)); len(left) != 1 || left[0].Name() != filepath.Base(base) {
		t.Errorf("left: %v, want the one that a record is in", left)
	}
}

func TestOfTwoThatBeginARecordInOneFolderOneIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	const many = 8
	var wg sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		wg.Go(func() {
			w, err := Create(dir, Manifest{Name: "demo"})
			if errs[i] = err; err == nil {
				w.Abandon()
			}
		})
	}
	wg.Wait()
	began := 0
	for _, err := range errs {
		switch {
		case err == nil:
			began++
		case !errors.Is(err, ErrExists):
			t.Errorf("got %v, want %v", err, ErrExists)
		}
	}
	if began != 1 {
		t.Errorf("%d records were begun in one folder", began)
	}
}
