//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/keeper"
	"github.com/rocebed/rocebed/testbed/linux"
)

const twoHosts = `apiVersion: rocebed/v1
name: two
dilation: 256
topology:
  star: {hosts: 2}
  rate: 1Gbps
`

// upInGuest brings a testbed up in a guest and returns its status; it is gone after the test.
func upInGuest(t *testing.T, name string) keeper.Status {
	t.Helper()
	needGuest(t)
	testneed.Root(t)
	path := t.TempDir() + "/two.yaml"
	if err := os.WriteFile(path, []byte(twoHosts), 0o644); err != nil {
		t.Fatal(err)
	}
	var st keeper.Status
	t.Cleanup(func() {
		if _, err := linux.Clean(context.Background(), linux.CleanOptions{Names: []string{name}, All: true}); err != nil {
			t.Error(err)
		}
		_, _ = unix.Wait4(st.Keeper, nil, 0, nil) // in a command it would be init's child
	})
	code, out, errs := invoke(t, "up", "--guest", "--json", "--name", name, path)
	if code != 0 {
		t.Fatalf("up: exit code %d, stderr:\n%s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatalf("up printed %q: %v", out, err)
	}
	return st
}

// on is a command on a node of the testbed, as a process of its own.
func on(name, node string, argv ...string) *exec.Cmd {
	return exec.Command("/proc/self/exe", append([]string{"exec", "--quiet", "--name", name, node, "--"}, argv...)...)
}

func TestATestbedInAGuestIsUsedLikeOneHere(t *testing.T) {
	name := fmt.Sprintf("g%d", os.Getpid())
	st := upInGuest(t, name)
	if st.Guest == nil || st.Guest.PID == 0 || len(st.Nodes) != 3 || st.Dilation != 256 || st.Backend != "kernel" {
		t.Errorf("status: %+v", st)
	}
	device := ""
	for _, n := range st.Nodes {
		if n.Name == "h1" {
			device = n.Ports[0].RDMA
		}
	}

	cmd := on(name, "h1", "sh", "-c", "read -r word; echo $word $ROCEBED_NODE; ibv_devinfo -d "+device+" | grep -c PORT_ACTIVE; exit 42")
	cmd.Stdin = strings.NewReader("typed\n")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 || string(out) != "typed h1\n1\n" {
		t.Errorf("ended with %v, printed %q", err, out)
	}

	cmd = on(name, "h2", "sh", "-c", `trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done`)
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "ready\n" {
		t.Errorf("the program said %q (%v)", line, err)
	}
	_ = cmd.Process.Signal(unix.SIGTERM)
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("after SIGTERM: %v", err)
	}

	if code, _, errs := invoke(t, "exec", "--name", name, "h3", "--", "true"); code != 2 || !strings.Contains(errs, "h3") {
		t.Errorf("a node that isn't there: exit code %d, stderr %q", code, errs)
	}
	if code, out, _ := invoke(t, "status", name, "--metrics", "--json"); code != 0 || !strings.Contains(out, `"if_rx_packets"`) {
		t.Errorf("metrics: exit code %d, %.200q", code, out)
	}
	if code, _, errs := invoke(t, "down", name); code != 0 {
		t.Errorf("down: exit code %d, stderr %q", code, errs)
	}
	if unix.Kill(st.Guest.PID, 0) == nil {
		t.Error("the guest outlived its testbed")
	}
	if _, err := os.Stat(linux.StateDir(name)); err == nil {
		t.Error("the testbed's folder is still there")
	}
}

func TestATestbedEndsWithItsGuestAndAGuestWithItsKeeper(t *testing.T) {
	for what, victim := range map[string]func(keeper.Status) int{
		"guest":  func(st keeper.Status) int { return st.Guest.PID },
		"keeper": func(st keeper.Status) int { return st.Keeper },
	} {
		name := fmt.Sprintf("g%d-%s", os.Getpid(), what)
		st := upInGuest(t, name)
		_ = unix.Kill(victim(st), unix.SIGKILL)
		alive := func(pid int) bool {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err == nil && !strings.Contains(string(b), ") Z ")
		}
		for until := time.Now().Add(20 * time.Second); alive(st.Keeper) || alive(st.Guest.PID); <-time.After(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s killed: the keeper lives: %v, the guest lives: %v", what, alive(st.Keeper), alive(st.Guest.PID))
			}
		}
		if code, _, errs := invoke(t, "clean", name); code != 0 {
			t.Errorf("clean: exit code %d, stderr %q", code, errs)
		}
		if _, err := os.Stat(linux.StateDir(name)); err == nil {
			t.Errorf("%s killed: the testbed's folder is still there", what)
		}
	}
}
