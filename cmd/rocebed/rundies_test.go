//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/testbed/record"
)

// children are the processes that a process's threads have started.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(word); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

func TestARunWhoseGuestDiesLeavesARecordThatSaysSo(t *testing.T) {
	needGuest(t)
	out := filepath.Join(t.TempDir(), "record")
	cmd := exec.Command("/proc/self/exe", "run", "--guest", "--json", "--out", out, quickstart)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	killed := false
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		said = append(said, lines.Text())
		if killed || !strings.Contains(lines.Text(), "guest: ") || strings.Contains(lines.Text(), "guest: kernel") {
			continue
		}
		killed = true // a step of the run in the guest has begun
		for _, pid := range children(cmd.Process.Pid) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(name), "qemu") {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !killed {
		t.Fatalf("exit code %d, guest killed: %v; it said\n%s", code, killed, strings.Join(said, "\n"))
	}
	var sum record.Summary
	if err := json.Unmarshal([]byte(stdout.String()), &sum); err != nil || sum.Verdict != record.Fail || sum.Record != out {
		t.Errorf("printed %q: %v", stdout.String(), err)
	}
	rd, err := record.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	m := rd.Manifest()
	if m.Verdict != record.Fail || !m.Guest || len(m.GuestBoot) == 0 || !strings.Contains(strings.Join(m.Problems, " "), "signal killed") {
		t.Errorf("manifest: %+v", m)
	}
	if err := rd.Verify(); err != nil {
		t.Error(err)
	}
}
