package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAPanicIsShownWithTheConsole(t *testing.T) {
	g := boot(t, Config{})
	_, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", "echo c > /proc/sysrq-trigger; sleep 1000"}})
	var f *Failure
	if !errors.Is(err, ErrPanic) || !errors.As(err, &f) || !strings.Contains(f.Detail, "sysrq") || len(f.Console) < 5 {
		t.Fatalf("%v", err)
	}
	if !errors.Is(g.Err(), ErrPanic) {
		t.Errorf("the guest says %v", g.Err())
	}
}

func TestAGuestThatPowersOffIsSaidToHaveDied(t *testing.T) {
	g := boot(t, Config{})
	if _, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", "poweroff -f; sleep 1000"}}); !errors.Is(err, ErrDied) {
		t.Errorf("%v", err)
	}
}

func TestAHungGuestIsEndedByItsDeadline(t *testing.T) {
	g := boot(t, Config{HangAfter: 2 * time.Second})
	pid := g.PID()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil { // a guest that stands still
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), Cmd{Argv: []string{"true"}})
	if !errors.Is(err, ErrHung) {
		t.Errorf("%v", err)
	}
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("QEMU %d is still there: %v", pid, err)
	}
}

func TestAGuestDoesNotOutliveItsKeeper(t *testing.T) {
	needGuest(t)
	cmd, out := helper(t, "keeper", "")
	line := firstLine(t, out)
	var pid int
	if _, err := fmt.Sscanf(line, "pid %d", &pid); err != nil {
		t.Fatalf("the keeper said %q", line)
	}
	if err := unix.Kill(pid, 0); err != nil {
		t.Fatalf("QEMU %d: %v", pid, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	within(t, 20*time.Second, func() bool { return !alive(pid) }, func() string { return fmt.Sprintf("QEMU %d runs on", pid) })
}

func TestAGuestPowersOffWhenItsPortGoesAway(t *testing.T) {
	g := boot(t, Config{})
	g.stop() // nobody watches, nobody kills
	if err := g.conn.Close(); err != nil {
		t.Fatal(err)
	}
	if !g.vm.waitExit(60 * time.Second) {
		t.Fatalf("QEMU runs on; its console: %q", g.Console(5))
	}
	if g.vm.err != nil || !errors.Is(g.vm.failure(), ErrDied) {
		t.Errorf("QEMU ended with %v: %v", g.vm.err, g.vm.failure())
	}
}

func TestTwoGuestsRunSideBySide(t *testing.T) {
	needGuest(t)
	var guests [2]*Guest
	var all sync.WaitGroup
	for i := range guests {
		all.Go(func() {
			g, err := Boot(t.Context(), Config{MemoryMB: 512})
			if err != nil {
				t.Error(err)
				return
			}
			guests[i] = g
		})
	}
	all.Wait()
	for _, g := range guests {
		if g != nil {
			defer g.Close()
		}
	}
	if t.Failed() {
		return
	}
	for i, g := range guests {
		if code, _, errOut := sh(t, g, fmt.Sprintf("echo %d > /run/mine", i)); code != 0 {
			t.Fatal(errOut)
		}
	}
	guests[0].Close()
	if _, out, _ := sh(t, guests[1], "cat /run/mine"); out != "1\n" {
		t.Errorf("the second guest after the first's end: %q", out)
	}
}

func TestABootThatDiesIsTriedAgainAndReported(t *testing.T) {
	needGuest(t)
	// A VMM that dies on its first start, and is QEMU afterwards.
	bin := t.TempDir()
	real, err := findQEMU()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nif mkdir %s/once 2>/dev/null; then echo 'Kernel panic - not syncing: int3'; exit 0; fi\nexec %s \"$@\"\n", bin, real)
	if err := os.WriteFile(filepath.Join(bin, qemuName), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	g := boot(t, Config{Accel: "tcg"})
	if len(g.Report.Failed) != 1 || !strings.Contains(g.Report.Failed[0].Reason, "int3") {
		t.Errorf("reported: %+v", g.Report.Failed)
	}
	if err := os.WriteFile(filepath.Join(bin, qemuName), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = Boot(t.Context(), Config{Accel: "tcg"})
	if !errors.Is(err, ErrBoot) || !strings.Contains(err.Error(), "tried 3 times") {
		t.Errorf("a VMM that always dies: %v", err)
	}
}
