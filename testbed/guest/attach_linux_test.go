package guest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAttachCarriesTheTerminal(t *testing.T) {
	needGuest(t)
	s := &session{}
	theirs, err := s.terminal(&Pty{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=attach", "TERM=screen",
		`SCRIPT=trap 'echo size $(stty size)' WINCH; trap 'echo interrupted; exit 6' INT; echo ready $TERM $(stty size); while :; do sleep 0.1; done`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range theirs {
		f.Close()
	}
	var out safeBuffer
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&out, s.pty)
	}()
	within(t, 90*time.Second, func() bool { return strings.Contains(out.String(), "ready screen 40 120") }, out.String)
	if err := s.resize(24, 80); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, func() bool { return strings.Contains(out.String(), "size 24 80") }, out.String)
	if _, err := s.pty.Write([]byte{3}); err != nil { // Ctrl-C goes through the raw terminal to the guest's
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 6 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%v: %q", err, out.String())
	}
	s.close()
	<-copied
}

func TestAttachCarriesSignalsAndTheExitCode(t *testing.T) {
	needGuest(t)
	cmd, out := helper(t, "attach", `trap 'echo bye; exit 17' TERM; echo ready; while :; do sleep 0.1; done`)
	if line := firstLine(t, out); line != "booted" {
		t.Fatal(line)
	}
	if line := firstLine(t, out); line != "ready" {
		t.Fatal(line)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line := firstLine(t, out); line != "bye" {
		t.Error(line)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 17 {
		t.Error(err)
	}
}
