package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// plant puts a small image into a cache as a build would leave it.
func plant(t *testing.T, cache, name string, built time.Time) string {
	t.Helper()
	dir := filepath.Join(cache, "images", name)
	out := func(file, content string) Output {
		write(t, filepath.Join(dir, file), content)
		sum := sha256.Sum256([]byte(content))
		return Output{File: file, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	}
	m := Manifest{Layout: layout, Key: name, Built: built, Boot: out("vmlinux", "kernel"), Base: out("base.cpio", "archive")}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, manifestFile), string(raw))
	return dir
}

func TestHalfAnImageIsNotTaken(t *testing.T) {
	for what, harm := range map[string]func(dir string) error{
		"no manifest":      func(d string) error { return os.Remove(filepath.Join(d, manifestFile)) },
		"half a manifest":  func(d string) error { return os.Truncate(filepath.Join(d, manifestFile), 30) },
		"no kernel":        func(d string) error { return os.Remove(filepath.Join(d, "vmlinux")) },
		"a truncated base": func(d string) error { return os.Truncate(filepath.Join(d, "base.cpio"), 3) },
		"an unknown layout": func(d string) error {
			return os.WriteFile(filepath.Join(d, manifestFile), []byte(`{"layout": 99}`), 0o644)
		},
		"an empty manifest":  func(d string) error { return os.Truncate(filepath.Join(d, manifestFile), 0) },
		"the folder emptied": os.RemoveAll,
	} {
		dir := plant(t, t.TempDir(), "a", time.Now())
		if _, err := open(dir); err != nil {
			t.Fatalf("a whole image: %v", err)
		}
		if err := harm(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := open(dir); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

func TestVerifyFindsAFlippedByte(t *testing.T) {
	dir := plant(t, t.TempDir(), "a", time.Now())
	img, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Verify(); err != nil {
		t.Fatal(err)
	}
	write(t, img.BasePath(), "archivf")
	if err := img.Verify(); err == nil {
		t.Error("a changed base was verified")
	}
}

func TestPruneKeepsTheNewestImages(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	plant(t, cache, "oldest", now.Add(-2*time.Hour))
	plant(t, cache, "older", now.Add(-time.Hour))
	plant(t, cache, "newest", now)
	broken := plant(t, cache, "broken", now)
	if err := os.Remove(filepath.Join(broken, "vmlinux")); err != nil {
		t.Fatal(err)
	}
	if err := prune(cache); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(cache, "images/*"))
	if len(left) != 2 || filepath.Base(left[0]) != "newest" || filepath.Base(left[1]) != "older" {
		t.Errorf("left: %v", left)
	}
}

func TestOnlyOneHoldsTheCachesLock(t *testing.T) {
	o := Options{CacheDir: t.TempDir()}
	said := make(chan string, 1)
	unlock, err := lock(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	waiting := o
	waiting.Progress = func(s string) { said <- s }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := lock(ctx, waiting); ended <- err }()
	<-said // it waits, and says so
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestTheCacheFollowsTheEnvironment(t *testing.T) {
	t.Setenv(cacheEnv, "/somewhere")
	if dir, err := DefaultCacheDir(); err != nil || dir != "/somewhere" {
		t.Errorf("%q, %v", dir, err)
	}
}
