package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocebed/rocebed/images"
)

func TestTheConsoleKeepsItsEndAndPassesAllOn(t *testing.T) {
	var all bytes.Buffer
	c := &console{next: &all}
	for i := range 5000 {
		fmt.Fprintf(c, "line %d of the kernel\r\n", i)
	}
	fmt.Fprintf(c, "[  3.1] Kernel panic - not syncing: \x1b[0mout of luck\r\n\r\n")
	if n := strings.Count(all.String(), "\n"); n != 5002 {
		t.Errorf("passed on: %d lines", n)
	}
	lines := c.lines(2)
	if len(lines) != 2 || lines[0] != "line 4999 of the kernel" || strings.ContainsRune(lines[1], 0x1b) {
		t.Errorf("last lines: %q", lines)
	}
	if len(c.tail) > consoleKeeps {
		t.Errorf("%d bytes kept", len(c.tail))
	}
	if p := c.panicLine(); !strings.HasPrefix(p, "Kernel panic - not syncing") {
		t.Errorf("panic: %q", p)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestALogThatCannotBeWrittenDoesNotStopTheConsole(t *testing.T) {
	c := &console{next: brokenWriter{}}
	for range 2 {
		if n, err := c.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(c.lines(9)) != 2 {
		t.Errorf("kept: %q", c.lines(9))
	}
}

func TestAFailureShowsItsKindAndItsConsole(t *testing.T) {
	var err error = fmt.Errorf("run: %w", &Failure{Kind: ErrPanic, Detail: "sysrq", Console: []string{"a", "b"}})
	if !errors.Is(err, ErrPanic) || errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "\n  | a\n  | b") {
		t.Errorf("%v", err)
	}
}

func TestWhichAcceleratorWorksIsRememberedUntilSomethingChanges(t *testing.T) {
	m := accelMemory{dir: t.TempDir(), key: "this kernel, this QEMU, this boot"}
	if got := m.load(); got != "" {
		t.Errorf("an empty memory says %q", got)
	}
	m.store("tcg", "no such MSR")
	if got := m.read(); got.Accel != "tcg" || got.Why != "no such MSR" || time.Since(got.When).Abs() > time.Hour {
		t.Errorf("remembered: %+v", got)
	}
	other := accelMemory{dir: m.dir, key: "another kernel"}
	if got := other.load(); got != "" {
		t.Errorf("of another kernel it says %q", got)
	}
	if err := os.WriteFile(m.path(), []byte("{half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := m.load(); got != "" {
		t.Errorf("half a file says %q", got)
	}
}

func TestAccelKeyFollowsTheKernel(t *testing.T) {
	a, b := &images.Image{}, &images.Image{}
	b.Manifest.Boot.SHA256 = "other"
	if accelKey("/bin/sh", a) == accelKey("/bin/sh", b) || accelKey("/bin/sh", a) != accelKey("/bin/sh", &images.Image{}) {
		t.Error("the key does not follow the kernel alone")
	}
}

func TestBootsAreTriedInOrder(t *testing.T) {
	cfg := &Config{BootTimeout: time.Minute}
	list := func(accel, known string) string {
		c := *cfg
		c.Accel = accel
		m := accelMemory{dir: t.TempDir(), key: "k"}
		if known != "" {
			m.store(known, "")
		}
		var names []string
		for _, a := range attempts(&c, m) {
			names = append(names, a.accel)
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct{ accel, known, want string }{
		{"tcg", "", "tcg tcg tcg"}, {"tcg", "kvm", "tcg tcg tcg"}, {"kvm", "", "kvm"}, {"", "tcg", "tcg tcg tcg"},
	} {
		if got := list(c.accel, c.known); got != c.want {
			t.Errorf("asked %q, known %q: %s", c.accel, c.known, got)
		}
	}
}

func TestSignalNumbersAreTheKernels(t *testing.T) {
	for name, n := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "USR1": syscall.SIGUSR1, "WINCH": syscall.SIGWINCH} {
		if signalNumber(name) != int(n) || signalName(int(n)) != name {
			t.Errorf("%s: %d", name, signalNumber(name))
		}
	}
}

func TestShippedFilesNeedAPlaceToGo(t *testing.T) {
	a := images.NewArchiveWriter(&bytes.Buffer{})
	if err := addShipped(a, File{Content: []byte("x"), To: "relative"}); err == nil {
		t.Error("a relative place was taken")
	}
	if err := addShipped(a, File{From: "/nowhere/at/all", To: "/x/y"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestMissingQEMUIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Boot(t.Context(), Config{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "qemu-system-x86") {
		t.Errorf("%v", err)
	}
}

func TestOutputIsDrainedThoughAChildHoldsThePipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // never closed before the end: a child in the background
	if _, err := w.Write(bytes.Repeat([]byte("x"), 60000)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	close(ended)
	var out bytes.Buffer
	drain(&out, r, ended)
	if out.Len() != 60000 {
		t.Errorf("%d of 60000 bytes came", out.Len())
	}
}

func TestAGuestThatTheMachineHasNotTheMemoryForIsRefusedAtOnce(t *testing.T) {
	_, err := Boot(t.Context(), Config{MemoryMB: 1 << 40})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "MiB of memory, this machine has") {
		t.Errorf("got %v", err)
	}
}
