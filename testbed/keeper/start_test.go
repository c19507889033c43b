//go:build linux

package keeper

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/linux"
)

func TestAKeeperThatDoesNotComeUpSaysWhyAndLeavesNothing(t *testing.T) {
	testneed.Root(t)
	for how, want := range map[string]string{"refuse": "this machine can't do that", "panic": "the keeper burst"} {
		name := testName(how)
		err := Start(context.Background(), []string{"test-keeper", name, how}, nil, func(string) {})
		var failed *StartError
		if !errors.As(err, &failed) || !strings.Contains(failed.Why, want) {
			t.Errorf("%s: %v", how, err)
		}
		if how == "refuse" && failed != nil && failed.Code != 3 {
			t.Errorf("the keeper's exit code was %d", failed.Code)
		}
		expectGone(t, name)
	}
}

func TestInterruptingTheStartTakesDownWhatThereIs(t *testing.T) {
	testneed.Root(t)
	name := testName("interrupt")
	ctx, cancel := context.WithCancel(context.Background())
	err := Start(ctx, []string{"test-keeper", name, "hang"}, nil, func(step string) {
		if step == "hanging" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	expectGone(t, name)
}

func TestATestbedThatComesUpForNobodyIsTakenDown(t *testing.T) {
	testneed.Root(t)
	name := testName("nobody")
	starter := exec.Command("/proc/self/exe", "test-starter", name)
	said, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	var heard []string
	for in := bufio.NewScanner(said); !slices.Contains(heard, "holding"); heard = append(heard, in.Text()) {
		if !in.Scan() {
			t.Fatalf("the starter said only %q", heard)
		}
	}
	if _, living := linux.Living(name); !living {
		t.Error("nobody holds the testbed that comes up")
	}
	_ = starter.Process.Kill()
	_ = starter.Wait()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if _, err := os.Stat(linux.StateDir(name)); errors.Is(err, os.ErrNotExist) {
			break
		}
		if pid, living := linux.Living(name); time.Now().After(deadline) {
			t.Fatalf("a minute after its starter was killed, process %d (alive: %v) holds the testbed", pid, living)
		}
	}
	expectGone(t, name)
}

func TestAKeeperThatIsKilledWhileItComesUpIsAFailure(t *testing.T) {
	testneed.Root(t)
	name := testName("shot")
	err := Start(context.Background(), []string{"test-keeper", name, "hold"}, nil, func(step string) {
		if pid, living := linux.Living(name); step == "holding" && living {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	var failed *StartError
	if !errors.As(err, &failed) || failed.Code != 1 || !strings.Contains(failed.Why, "rocebed clean") {
		t.Errorf("ended with %v", err)
	}
	if _, err := linux.Clean(context.Background(), linux.CleanOptions{Names: []string{name}}); err != nil {
		t.Error(err)
	}
	expectGone(t, name)
}
