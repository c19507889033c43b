package record

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheHashIsWhatCoreutilsSay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	hash := write(t, dir, "x")
	cmd := exec.Command("sh", "-c", `cd data && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum | sha256sum`)
	cmd.Dir = dir
	out, err := cmd.Output()
	must(t, err)
	if got, _, _ := strings.Cut(string(out), " "); got != hash {
		t.Errorf("the documented command says %s, the manifest %s", got, hash)
	}
}

// The disk is a tmpfs of 64 KiB in a mount namespace of this test's own thread, which dies
// with the test.
func TestAFullDiskIsOneCleanError(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its namespaces end here
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
				return err
			}
			w, err := Create(filepath.Join(dir, "r"), Manifest{})
			if err != nil {
				return err
			}
			var first error
			for i := 0; i < 1000 && first == nil; i++ {
				first = w.Event(Event{What: "filler", Text: strings.Repeat("x", 1000)})
			}
			if !errors.Is(first, syscall.ENOSPC) || !strings.Contains(first.Error(), "is incomplete") {
				return errors.Join(errors.New("want a full disk"), first)
			}
			if _, err := w.Finish(Manifest{Verdict: "pass"}); !errors.Is(err, syscall.ENOSPC) {
				return errors.Join(errors.New("Finish did not say that the disk is full"), err)
			}
			r, err := Open(filepath.Join(dir, "r"))
			if err == nil && r.Manifest().Complete {
				err = errors.New("the record says that it is complete")
			}
			return err
		}()
	}()
	if err := <-done; errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EPERM) {
		t.Fatalf("this test mounts a tmpfs and needs root: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
}
