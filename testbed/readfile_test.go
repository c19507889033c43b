//go:build linux

package testbed

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo/strict"
)

func TestAFileWithoutEndIsReadToTheLongestThatAFileMayBe(t *testing.T) {
	data, err := ReadFile("/dev/zero")
	if err != nil || len(data) != strict.MaxBytes+1 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if _, err := strict.Read("zero", data, &struct{}{}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

func TestAPipeIsReadButNotWaitedForWithoutAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path, time.Millisecond); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("%v", err)
	}
	// The writer that comes now lets the opening above end; the next reader gets what it writes.
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("name: x\n"); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, err := readFile(path, time.Minute)
		if err != nil {
			t.Error(err)
		}
		read <- string(data)
	}()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		left, err := unix.IoctlGetInt(int(w.Fd()), unix.TIOCINQ)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d bytes are still unread, %v", left, err)
		}
		if left == 0 {
			break
		}
	}
	w.Close()
	if got := <-read; got != "name: x\n" {
		t.Errorf("read %q", got)
	}
}

func TestAFileThatIsNotThereAndOneWithoutANameAreErrors(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if data, err := ReadFile(path); err == nil {
			t.Errorf("%q: %d bytes", path, len(data))
		}
	}
}
