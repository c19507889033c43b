package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rocebed/rocebed/internal/testleak"
)

func TestMain(m *testing.M) { testleak.Main(m) }

func TestTheExitCodeIsTheCommands(t *testing.T) {
	script := t.TempDir() + "/script"
	if err := os.WriteFile(script, []byte("exit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := run([]string{"sh", script}, "X=1"); got != 7 {
		t.Errorf("the command exited 7, run returned %d", got)
	}
	if got := run([]string{"true"}, "X=1"); got != 0 {
		t.Errorf("the command exited 0, run returned %d", got)
	}
}

func TestAProcessThatTheCommandLeftIsSeenUntilItEnds(t *testing.T) {
	value := fmt.Sprintf("%s=test%d", mark, os.Getpid())
	before := testleak.LookAtMachine()
	cat := exec.Command("cat")
	cat.Env = append(os.Environ(), value)
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("process %d cat", cat.Process.Pid)
	if got := before.Left(testleak.LookAtMachine(), value); !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("want %q among what was left, got %q", want, got)
	}
	in.Close()
	if err := cat.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := before.Left(testleak.LookAtMachine(), value); strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("%q ended and is still among what was left: %q", want, got)
	}
}
