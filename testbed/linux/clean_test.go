//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCleanSparesTheLivingUnlessToldOtherwise(t *testing.T) {
	name := testName("live")
	cmd, lines := startHolder(t, "stay", name)
	expectLine(t, lines, "up")
	before := traces(name)

	_, err := Acquire(context.Background(), name)
	var held *HeldError
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid {
		t.Errorf("acquiring a held testbed: %v", err)
	}
	done, err := Clean(context.Background(), CleanOptions{Names: []string{name}})
	if err != nil || len(done) != 1 || done[0].Living != cmd.Process.Pid {
		t.Fatalf("clean did %v, error %v", done, err)
	}
	if now := traces(name); !slices.Equal(before, now) {
		t.Fatalf("clean changed a living testbed from\n%q\nto\n%q", before, now)
	}

	done, err = Clean(context.Background(), CleanOptions{Names: []string{name}, All: true})
	if err != nil || len(done) != 1 || !done[0].Ended {
		t.Fatalf("clean of all did %v, error %v", done, err)
	}
	expectLine(t, lines, "down")
	expectNothingOf(t, name)
}

func TestACleanThatIsCalledOffKillsNobody(t *testing.T) {
	name := testName("calledoff")
	dir := StateDir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	keeper, lines := startHolder(t, "stubborn", name)
	expectLine(t, lines, "up")
	id := strings.Join(ProcessID(keeper.Process.Pid), " ")
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := endHolder(ctx, name, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if pid, living := Living(name); !living || pid != keeper.Process.Pid {
		t.Error("the keeper, which was taking its testbed down, was killed")
	}
}

func TestCleanWaitsForAHolderThatIsOnItsWayOut(t *testing.T) {
	for i := range 5 {
		name := testName(fmt.Sprintf("dying%d", i))
		keeper, lines := startHolder(t, "stay", name)
		expectLine(t, lines, "up")
		if err := keeper.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if done, err := Clean(context.Background(), CleanOptions{Names: []string{name}}); err != nil || len(done) != 1 || done[0].Living != 0 || done[0].Removed == 0 {
			t.Errorf("clean did %v, error %v", done, err)
		}
		expectNothingOf(t, name)
	}
	if dying(os.Getpid()) {
		t.Error("this process is taken for one that is on its way out")
	}
}
