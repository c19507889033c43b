//go:build linux

package keeper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/datapath/loop"
	"github.com/rocebed/rocebed/internal/testleak"
	"github.com/rocebed/rocebed/internal/testneed"
	"github.com/rocebed/rocebed/testbed/fabric"
	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/testbed/metrics"
	"github.com/rocebed/rocebed/topo"
)

// The test binary is also the keeper and the command that its tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "test-keeper":
			if err := Serve(context.Background(), os.Args[2], bringWires(os.Args[2], os.Args[3])); err != nil {
				os.Exit(3)
			}
			return
		case "test-reach":
			fmt.Println(reach(os.Args[2]))
			return
		case "test-starter":
			fmt.Println(Start(context.Background(), []string{"test-keeper", os.Args[2], "hold"}, nil, func(s string) { fmt.Println(s) }))
			return
		case "test-exec":
			fmt.Fprintln(os.Stderr, execOn(os.Args[2], os.Args[3], os.Args[4:]))
			os.Exit(99)
		}
	}
	testleak.Main(m)
}

// bringWires brings up a star of hosts on a switch: namespaces, links, addresses and routes of
// the real kernel, and no RDMA, which not every machine has.
func bringWires(name, how string) func(context.Context, *slog.Logger, func(string)) (Bed, error) {
	return func(ctx context.Context, log *slog.Logger, step func(string)) (Bed, error) {
		step("first step")
		log.Info("a word from the keeper")
		switch how {
		case "refuse":
			return nil, errors.New("this machine can't do that")
		case "panic":
			panic("the keeper burst")
		case "hang":
			step("hanging")
			<-ctx.Done()
			return nil, ctx.Err()
		case "hold":
			bed, err := linux.Acquire(ctx, name)
			if err != nil {
				return nil, err
			}
			step("holding")
			<-ctx.Done()
			return nil, errors.Join(ctx.Err(), bed.Close(context.Background()))
		}
		spec := topo.Spec{Star: &topo.Star{Hosts: 3}}
		t, err := spec.Build()
		if err != nil {
			return nil, err
		}
		p, err := t.Plan(topo.PlanOptions{})
		if err != nil {
			return nil, err
		}
		bed, err := linux.Acquire(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, err := bed.Wire(ctx, p, linux.WireOptions{}); err != nil {
			return nil, errors.Join(err, bed.Close(context.Background()))
		}
		step("second step")
		here := Here{Testbed: name, Scenario: "star", Backend: "wires", Fabric: &wires{bed, p, time.Now()}}
		if how == "stuck" {
			here.Faults = stuckFaults{}
		}
		return OnFabric(here), nil
	}
}

type wires struct {
	bed   *linux.Testbed
	plan  *topo.Plan
	epoch time.Time
}

func (w *wires) Topology() *topo.Topology  { return w.plan.Topology }
func (w *wires) Plan() *topo.Plan          { return w.plan }
func (w *wires) Dilation() loop.Dilation   { return 1024 }
func (w *wires) Epoch() time.Time          { return w.epoch }
func (w *wires) Hosts() []fabric.Host      { return nil }
func (w *wires) Host(string) fabric.Host   { return nil }
func (w *wires) Injector() fabric.Injector { return nil }
func (w *wires) JudgeKeepUp() error        { return nil }
func (w *wires) KeepUp() error             { return nil }
func (w *wires) Warnings() []string        { return []string{"no RDMA here"} }
func (w *wires) Collect(context.Context) ([]metrics.Sample, error) {
	return []metrics.Sample{{Name: "up", Value: 1}}, errors.New("the rest can't be read")
}
func (w *wires) Close(ctx context.Context) error { return w.bed.Close(ctx) }
func (w *wires) ProgramEnv(node string) (env, notes []string, err error) {
	return []string{"ON=" + node}, []string{"a note"}, nil
}

// execOn does what the exec command does.
func execOn(testbed, node string, argv []string) error {
	c, err := Find(testbed)
	if err != nil {
		return err
	}
	p, err := c.Program(context.Background(), node)
	if err != nil {
		return err
	}
	return linux.ProgramIn(testbed, node, p.Inode, argv, append(os.Environ(), p.Env...))
}

// reach says whether the host with the address answers: that nobody listens there.
func reach(addr string) string {
	c, err := net.Dial("udp", net.JoinHostPort(addr, "9"))
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err = c.Write([]byte("?")); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		return "reached"
	}
	return fmt.Sprint(err)
}

func testName(suffix string) string { return fmt.Sprintf("k%d-%s", os.Getpid(), suffix) }

// up starts a keeper and returns a client.
func up(t *testing.T, name string) *Client {
	t.Helper()
	return upAs(t, name, "stay")
}

// upAs brings the wires up in a keeper of a kind that bringWires knows.
func upAs(t *testing.T, name, how string) *Client {
	t.Helper()
	testneed.Root(t)
	keeper := 0
	t.Cleanup(func() {
		if _, err := linux.Clean(context.Background(), linux.CleanOptions{Names: []string{name}, All: true}); err != nil {
			t.Error(err)
		}
		reap(keeper)
	})
	var steps []string
	if err := Start(context.Background(), []string{"test-keeper", name, how}, nil, func(s string) { steps = append(steps, s) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, []string{"first step", "second step"}) {
		t.Errorf("heard the steps %q", steps)
	}
	keeper, _ = linux.Living(name)
	c, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reap waits for a keeper to end. In a command it would be the child of a process that is long
// gone.
func reap(pid int) { _, _ = unix.Wait4(pid, nil, 0, nil) }

func expectGone(t *testing.T, name string) {
	t.Helper()
	left, _ := filepath.Glob("/run/netns/rb-" + name + ".*")
	if _, err := os.Stat(linux.StateDir(name)); err == nil {
		left = append(left, linux.StateDir(name))
	}
	if len(left) > 0 {
		t.Fatalf("left: %q", left)
	}
}

func TestATestbedStaysUpAfterItsStarterAndGoesWhenTold(t *testing.T) {
	c := up(t, testName("stay"))
	ctx := context.Background()
	st, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if st.Testbed != c.Testbed() || st.Backend != "wires" || st.Dilation != 1024 || len(st.Nodes) != 4 || len(st.Links) != 3 || !st.KeptUp || len(st.Warnings) != 1 {
		t.Errorf("status: %+v", st)
	}
	if pid, living := linux.Living(c.Testbed()); !living || pid != st.Keeper || pid == os.Getpid() {
		t.Errorf("the keeper is %d, the lock's holder %d", st.Keeper, pid)
	}
	if sid, err := unix.Getsid(st.Keeper); err != nil || sid != st.Keeper {
		t.Errorf("the keeper is in session %d (%v), not its own", sid, err)
	}
	for _, n := range st.Nodes {
		if _, err := os.Stat("/run/netns/" + n.Namespace); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	m, err := c.Metrics(ctx)
	if err != nil || len(m.Samples) != 1 || m.Error == "" {
		t.Errorf("metrics: %+v, error %v", m, err)
	}
	info, err := os.Stat(filepath.Join(linux.StateDir(c.Testbed()), socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, error %v", info.Mode(), err)
	}
	log, err := os.ReadFile(filepath.Join(linux.StateDir(c.Testbed()), logName))
	if err != nil || !strings.Contains(string(log), "a word from the keeper") {
		t.Errorf("the log holds %q, error %v", log, err)
	}
	var steps []string
	if err := c.Down(ctx, func(s string) { steps = append(steps, s) }); err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 {
		t.Error("going down said nothing")
	}
	expectGone(t, c.Testbed())
	if _, err := Find(c.Testbed()); !errors.Is(err, ErrNone) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAProgramOnANodeIsAProcessLikeAnyOther(t *testing.T) {
	c := up(t, testName("exec"))
	st, err := c.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	host, peer := st.Nodes[1], st.Nodes[2]
	addr, _, _ := strings.Cut(peer.Ports[0].Addr, "/")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(node string, argv ...string) (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		cmd := exec.Command("/proc/self/exe", append([]string{"test-exec", c.Testbed(), node}, argv...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd, &out
	}
	cmd, out := run(host.Name, "sh", "-c", `read -r line; echo "$ON $ROCEBED_NODE $line"; ls /sys/class/net; `+self+` test-reach `+addr+`; exit 42`)
	cmd.Stdin = strings.NewReader("typed\n")
	err = cmd.Run()
	want := host.Name + " " + host.Name + " typed\n" + host.Ports[0].Name + "\nlo\nreached\n"
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 42 || out.String() != want {
		t.Errorf("ended with %v and printed %q, expected 42 and %q", err, out, want)
	}

	cmd, _ = run(host.Name, "sh", "-c", `trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done`)
	cmd.Stdout = nil
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

	cmd, out = run("h11", "true")
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 99 || !strings.Contains(out.String(), "h1") {
		t.Errorf("a misspelt node: %v, %q", err, out)
	}
}

func TestProgramsOnTheNodesEndWithTheTestbed(t *testing.T) {
	for _, how := range []string{"down", "kill and clean"} {
		c := up(t, testName("programs"+how[:1]))
		st, err := c.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		// The shell's child outlives it, unless it is ended too.
		cmd := exec.Command("/proc/self/exe", "test-exec", c.Testbed(), st.Nodes[1].Name, "sh", "-c", "sleep 1000 & echo $!; wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var child int
		if _, err := fmt.Fscan(out, &child); err != nil {
			t.Fatal(err)
		}
		if how == "down" {
			err = c.Down(context.Background(), nil)
		} else {
			_ = unix.Kill(st.Keeper, unix.SIGKILL)
			for living := true; living; _, living = linux.Living(c.Testbed()) {
				reap(st.Keeper)
			}
			_, err = linux.Clean(context.Background(), linux.CleanOptions{Names: []string{c.Testbed()}})
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("%s: the program's child still runs: %s", how, stat)
		}
		expectGone(t, c.Testbed())
	}
}

func TestAKeeperThatIsKilledIsCleanedUpAfter(t *testing.T) {
	c := up(t, testName("kill"))
	st, err := c.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(st.Keeper, unix.SIGKILL)
	reap(st.Keeper)
	if _, err := Find(c.Testbed()); !errors.Is(err, ErrDead) {
		t.Errorf("asking for it: %v", err)
	}
	if _, err := linux.Clean(context.Background(), linux.CleanOptions{Names: []string{c.Testbed()}}); err != nil {
		t.Fatal(err)
	}
	expectGone(t, c.Testbed())
}

func TestTwoWhoTakeItDownAtOnceBothHearTheEnd(t *testing.T) {
	c := up(t, testName("twice"))
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- c.Down(context.Background(), nil) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	expectGone(t, c.Testbed())
}
