//go:build linux

package linux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/internal/testneed"
)

// holderEnv makes this test binary a process that holds a testbed instead of running tests.
const holderEnv = "ROCEBED_TEST_HOLD"

func TestMain(m *testing.M) {
	InWorld()
	if what := os.Getenv(userEnv); what != "" {
		if err := asUser(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if what := os.Getenv(holderEnv); what != "" {
		hold(what)
		return
	}
	testleak.Main(m)
}

// hold acquires a testbed and wires it, saying where it is on standard output. "cycle" closes it
// and begins again, until killed; "stay" stays until asked to end and then closes it; "stubborn"
// holds nothing and doesn't end when asked.
func hold(what string) {
	verb, name, _ := strings.Cut(what, " ")
	fail := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	spec := spineLeafSpec(2, 4, 4)
	topology, err := spec.Build()
	fail(err)
	p, err := topology.Plan(spec.PlanOptions())
	fail(err)
	stop := make(chan os.Signal, 1)
	if verb == "stay" {
		signal.Notify(stop, unix.SIGTERM) // before "up": whoever reads that may ask for the end at once
	}
	if verb == "stubborn" {
		signal.Ignore(unix.SIGTERM)
		fmt.Println("up")
		for {
			unix.Pause()
		}
	}
	for {
		bed, err := Acquire(context.Background(), name)
		fail(err)
		_, err = bed.Wire(context.Background(), p, WireOptions{})
		fail(err)
		fmt.Println("up")
		if verb == "stay" {
			<-stop
		}
		fail(bed.Close(context.Background()))
		fmt.Println("down")
		if verb == "stay" {
			return
		}
	}
}

// holder starts a process that holds a testbed, and returns a channel of what it says.
func startHolder(t *testing.T, verb, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	testneed.Root(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holderEnv+"="+verb+" "+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("the holder said %q, expected %q", lines.Text(), want)
	}
}

// traces lists what the machine has of a testbed: names, mounts, state.
func traces(name string) []string {
	var out []string
	names, _ := filepath.Glob(netnsDir + "/rb-" + name + ".*")
	out = append(out, names...)
	if _, err := os.Stat(StateDir(name)); err == nil {
		out = append(out, StateDir(name))
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/rb-"+name+".") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func expectNothingOf(t *testing.T, name string) {
	t.Helper()
	if left := traces(name); len(left) > 0 {
		t.Fatalf("left of %s:\n%s", name, strings.Join(left, "\n"))
	}
}

// Whenever the holder dies, what it left is found and removed, by Clean and by the next Acquire.
func TestNothingIsLeftAfterAKillAtAnyMoment(t *testing.T) {
	bystander, other := wired(t, testName("by"), spineLeaf(t, 1, 2, 1))
	before := len(traces(bystander.Name()))

	// How long a cycle of up and down takes here, to spread the kills over it.
	name := testName("kill")
	cmd, lines := startHolder(t, "cycle", name)
	expectLine(t, lines, "up")
	expectLine(t, lines, "down")
	start := time.Now()
	expectLine(t, lines, "up")
	expectLine(t, lines, "down")
	cycle := time.Since(start)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := Clean(context.Background(), CleanOptions{Names: []string{name}}); err != nil {
		t.Fatal(err)
	}
	expectNothingOf(t, name)

	const kills = 24
	found := 0
	for k := range kills {
		cmd, lines := startHolder(t, "cycle", name)
		expectLine(t, lines, "up")
		expectLine(t, lines, "down")
		<-time.After(cycle * time.Duration(k) / kills)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if len(traces(name)) > 1 {
			found++
		}
		if k%2 == 0 {
			if _, err := Clean(context.Background(), CleanOptions{Names: []string{name}}); err != nil {
				t.Fatalf("kill %d: %v", k, err)
			}
		} else {
			bed, err := Acquire(context.Background(), name)
			if err != nil {
				t.Fatalf("kill %d: %v", k, err)
			}
			if n := len(traces(name)); n != 1 {
				t.Fatalf("kill %d: after Acquire there are %q", k, traces(name))
			}
			if err := bed.Close(context.Background()); err != nil {
				t.Fatalf("kill %d: %v", k, err)
			}
		}
		expectNothingOf(t, name)
	}
	t.Logf("%d of %d kills left something to remove", found, kills)
	if found == 0 {
		t.Error("no kill left anything: the test tested nothing")
	}
	if n := len(traces(bystander.Name())); n != before {
		t.Errorf("the testbed beside had %d traces, now %d", before, n)
	}
	checkReach(t, other)
}

func TestTwoTestbedsSideBySideDontTouchEachOther(t *testing.T) {
	p := spineLeaf(t, 2, 2, 2)
	one := acquire(t, testName("one"))
	_, two := wired(t, testName("two"), p)
	if _, err := one.Wire(context.Background(), p, WireOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := one.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	expectNothingOf(t, one.Name())
	checkReach(t, two)
}

// foreign makes a namespace by hand, as 'ip netns add' does, and returns its inode.
func foreign(t *testing.T, name string) uint64 {
	t.Helper()
	path := namespacePath(name)
	mark, err := prepareNetnsDir()
	if err != nil {
		t.Fatal(err)
	}
	h, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	var n *Namespace
	if err := h.away(func() (err error) { n, err = newNamespace(h, "x", "x"); return err }); err != nil {
		t.Fatal(err)
	}
	n.name = name
	if err := n.publish(); err != nil {
		t.Fatal(err)
	}
	inode := n.inode
	n.close()
	h.close()
	t.Cleanup(func() {
		_ = unix.Unmount(path, unix.MNT_DETACH)
		_ = os.Remove(path)
		mark.Close()
		restoreNetnsDir()
	})
	return inode
}

func TestAForeignNamespaceOfTheSameNameIsRefusedAndLeftAlone(t *testing.T) {
	bed := acquire(t, testName("refuse"))
	name := NamespaceName(bed.Name(), "leaf2")
	inode := foreign(t, name)
	_, err := bed.Wire(context.Background(), spineLeaf(t, 2, 2, 2), WireOptions{})
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "leaf2") {
		t.Fatalf("wiring said %v", err)
	}
	if err := bed.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := traces(bed.Name()); len(left) != 2 { // the foreign name and its mount
		t.Errorf("left: %q", left)
	}
	expectInode(t, name, inode)
}

func TestANamespaceThatTookAnOwnNameIsLeftAlone(t *testing.T) {
	for _, how := range []string{"close", "clean"} {
		bed, _ := wired(t, testName("swap-"+how), spineLeaf(t, 1, 1, 2))
		name := NamespaceName(bed.Name(), "leaf1")
		if err := unix.Unmount(namespacePath(name), unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(namespacePath(name)); err != nil {
			t.Fatal(err)
		}
		inode := foreign(t, name)
		if how == "close" {
			if err := bed.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		} else {
			bed.Abandon()
			if _, err := Clean(context.Background(), CleanOptions{Names: []string{bed.Name()}}); err != nil {
				t.Fatal(err)
			}
		}
		expectInode(t, name, inode)
		if left := traces(bed.Name()); len(left) != 2 {
			t.Errorf("%s left %q", how, left)
		}
	}
}

func expectInode(t *testing.T, name string, inode uint64) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(namespacePath(name), &st); err != nil || st.Ino != inode {
		t.Errorf("%s is now inode %d, was %d (%v)", name, st.Ino, inode, err)
	}
}

func TestOwnedProcessesAndFilesGoWithTheTestbed(t *testing.T) {
	bed := acquire(t, testName("own"))
	file := filepath.Join(t.TempDir(), "file")
	if err := bed.Own(KindFile, file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := bed.Own(KindProcess, ProcessID(cmd.Process.Pid)...); err != nil {
		t.Fatal(err)
	}
	// A process that got an owned number later, and is told apart by its start time.
	innocent := exec.Command("sleep", "1000")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = innocent.Process.Kill(); _ = innocent.Wait() }()
	if err := bed.Own(KindProcess, fmt.Sprint(innocent.Process.Pid), "12345"); err != nil {
		t.Fatal(err)
	}
	if err := bed.Own("no such kind", "x"); err == nil {
		t.Error("a kind that nobody can remove was taken")
	}
	bed.Abandon()
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	if _, err := Clean(context.Background(), CleanOptions{Names: []string{bed.Name()}}); err != nil {
		t.Fatal(err)
	}
	<-waited
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there (%v)", err)
	}
	if err := innocent.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("a process that only had an owned number is gone: %v", err)
	}
}

func TestATestbedThatCouldNotBeClosedIsStillHeldAndClosesLater(t *testing.T) {
	bed, w := wired(t, testName("again"), spineLeaf(t, 1, 1, 2))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := bed.Close(ended); !errors.Is(err, context.Canceled) {
		t.Fatalf("closing without time: %v", err)
	}
	var held *HeldError
	if _, err := Acquire(context.Background(), bed.Name()); !errors.As(err, &held) {
		t.Errorf("afterwards the testbed could be acquired: %v", err)
	}
	if err := w.Node("leaf1").Do(func() error { return nil }); err != nil {
		t.Errorf("afterwards a namespace could not be entered: %v", err)
	}
	for range 2 {
		if err := bed.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	expectNothingOf(t, bed.Name())
}
