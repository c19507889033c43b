//go:build linux

package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

// The tests in this file build real images, from this machine's programs and a real
// kernel: they run with ROCEBED_GUEST_TESTS=1, as `make test` sets it. The kernel is
// fetched once, into the usual cache.

const buildHelper = "ROCEBED_TEST_BUILD_INTO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(buildHelper); dir != "" {
		_, err := Build(context.Background(), Options{CacheDir: dir, Progress: func(s string) { fmt.Println(s) }})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testleak.Main(m)
}

// scratchCache is an empty cache that shares the usual one's kernel.
func scratchCache(t *testing.T, dir string) string {
	t.Helper()
	if os.Getenv("ROCEBED_GUEST_TESTS") == "" {
		t.Skip("builds real images: set ROCEBED_GUEST_TESTS=1 (make test does)")
	}
	img, err := Build(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if img.Manifest.Kernel.Source == "machine" {
		return dir
	}
	usual, err := DefaultCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(usual, "kernels"), filepath.Join(dir, "kernels")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// building builds and tells whether an archive was written for it.
func building(t *testing.T, cache string) (img *Image, wrote bool) {
	t.Helper()
	img, err := Build(t.Context(), Options{CacheDir: cache, Progress: func(s string) {
		wrote = wrote || strings.Contains(s, "writing")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return img, wrote
}

func TestAnImageIsBuiltAnewOnlyWhenAnInputChanged(t *testing.T) {
	cache := scratchCache(t, t.TempDir())
	// A program of our own, first in PATH, stands in for one of the machine's.
	bin := t.TempDir()
	raw, err := os.ReadFile(lookProgram("ethtool"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(bin, "ethtool")
	write(t, program, string(raw))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))

	first, wrote := building(t, cache)
	if !wrote {
		t.Error("an empty cache had an image")
	}
	if err := first.Verify(); err != nil {
		t.Error(err)
	}
	if again, wrote := building(t, cache); wrote || again.Manifest.Key != first.Manifest.Key {
		t.Errorf("nothing changed: written %v, key %s then %s", wrote, first.Manifest.Key, again.Manifest.Key)
	}
	write(t, program, string(raw)) // the same bytes, a new time
	if touched, wrote := building(t, cache); wrote || touched.Manifest.Key != first.Manifest.Key {
		t.Errorf("only a time changed: written %v, key %s then %s", wrote, first.Manifest.Key, touched.Manifest.Key)
	}
	if img, err := Find(Options{CacheDir: cache}); err != nil || img == nil {
		t.Errorf("after a touch the image does not fit: %v", err)
	}
	write(t, program, string(raw)+"\x00")
	if img, err := Find(Options{CacheDir: cache}); err != nil || img != nil {
		t.Errorf("an image of a program that has changed fits (%v)", err)
	}
	changed, wrote := building(t, cache)
	if !wrote || changed.Manifest.Key == first.Manifest.Key {
		t.Errorf("a program changed: written %v", wrote)
	}
	if !changed.Has("/usr/bin/ethtool") {
		t.Error("a program from outside /usr is not in the guest's PATH")
	}
}

func TestTwoBuildsAtOnceMakeOneImage(t *testing.T) {
	cache := scratchCache(t, t.TempDir())
	var wrote [2]bool
	var images [2]*Image
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			img, err := Build(t.Context(), Options{CacheDir: cache, Progress: func(s string) {
				wrote[i] = wrote[i] || strings.Contains(s, "writing")
			}})
			if err != nil {
				t.Error(err)
			}
			images[i] = img
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if images[0].Dir != images[1].Dir || wrote[0] == wrote[1] {
		t.Errorf("images %s and %s, written %v", images[0].Dir, images[1].Dir, wrote)
	}
}

func TestAKilledBuildLeavesNothingThatIsTaken(t *testing.T) {
	cache := scratchCache(t, t.TempDir())
	for _, at := range []string{"preparing", "writing"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), buildHelper+"="+cache)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reached := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), at) {
				reached = true
				break
			}
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		if !reached {
			t.Fatalf("the build never came to %q", at)
		}
		if img, err := Find(Options{CacheDir: cache}); err != nil || img != nil {
			t.Fatalf("killed while %s: an image is there (%v)", at, err)
		}
	}
	img, _ := building(t, cache)
	if err := img.Verify(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, tmpPrefix+"*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// The small disk is mounted in a mount namespace of a process of its own: other packages' tests run meanwhile, and look for mounts that were left.
func TestAFullDiskLeavesNothingThatIsTaken(t *testing.T) {
	if os.Getenv("ROCEBED_GUEST_TESTS") != "" && os.Geteuid() != 0 {
		t.Fatal("needs root, to mount a small disk")
	}
	const alone = "ROCEBED_TEST_OWN_MOUNTS"
	if os.Getenv("ROCEBED_GUEST_TESTS") != "" && os.Getenv(alone) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	mount := func(flags uintptr, size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("ROCEBED_GUEST_TESTS") != "" {
		mount(0, "80m") // the kernel fits, the base archive does not
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
	}
	cache := scratchCache(t, dir)
	if _, err := Build(t.Context(), Options{CacheDir: cache}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a build on a full disk: %v", err)
	}
	if img, err := Find(Options{CacheDir: cache}); err != nil || img != nil {
		t.Fatalf("an image is there (%v)", err)
	}
	mount(syscall.MS_REMOUNT, "400m")
	img, _ := building(t, cache)
	if err := img.Verify(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsMissingIsNamedWithItsPackage(t *testing.T) {
	bin := t.TempDir()
	for _, tool := range []string{"ldd", "bash", "dpkg-query", "sh", "cat", "sed"} {
		if p, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(p, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", bin)
	_, err := collect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ib_write_bw (Debian package perftest)") || !strings.Contains(err.Error(), "make setup") {
		t.Errorf("a machine without perftest: %v", err)
	}
}

func TestAnUnreachableMirrorIsSaidToBeThat(t *testing.T) {
	if os.Getenv("ROCEBED_GUEST_TESTS") == "" {
		t.Skip("waits for apt's retries: set ROCEBED_GUEST_TESTS=1 (make test does)")
	}
	if machineKernel("/") != nil {
		t.Skip("this machine's own kernel is taken: no mirror is asked")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt here: no mirror is asked")
	}
	t.Setenv(mirrorEnv, "http://127.0.0.1:1/nothing-listens-here")
	cache := t.TempDir()
	_, err := findKernel(t.Context(), Options{CacheDir: cache})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(err.Error(), mirrorEnv) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
