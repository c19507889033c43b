package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The tests in this file boot real guests: they run with ROCEBED_GUEST_TESTS=1, as
// `make test` sets it. What is missing on the machine is then a failure, not a skip.
//
// The test binary itself is the guests' init, and the helper processes.

const helperEnv = "ROCEBED_TEST_HELPER"

func TestMain(m *testing.M) {
	InitIfAsked()
	if helper := helpers[os.Getenv(helperEnv)]; helper != nil {
		os.Exit(helper())
	}
	goleak.VerifyTestMain(m)
}

const echoSocket = "/run/echo"

var helpers = map[string]func() int{
	// echo, in a guest, gives one connection its own words back.
	"echo": func() int {
		l, err := net.Listen("unix", echoSocket)
		if err != nil {
			fmt.Println(err)
			return 3
		}
		fmt.Println("listening")
		conn, err := l.Accept()
		if err != nil {
			return 4
		}
		if _, err := io.Copy(conn, conn); err != nil {
			return 5
		}
		return 0
	},
	// keeper boots a guest, says its VMM's process id, and waits to be killed.
	"keeper": func() int {
		g, err := Boot(context.Background(), Config{})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		fmt.Println("pid", g.PID())
		<-g.Done()
		return 1
	},
	// attach runs a command attached to this process's streams.
	"attach": func() int {
		g, err := Boot(context.Background(), Config{})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		defer g.Close()
		fmt.Println("booted")
		st, err := g.Attach(context.Background(), Cmd{Argv: []string{"bash", "-c", os.Getenv("SCRIPT")}})
		if err != nil {
			fmt.Println(err)
			return 3
		}
		return st.Code
	},
}

func needGuest(t *testing.T) {
	t.Helper()
	if os.Getenv("ROCEBED_GUEST_TESTS") == "" {
		t.Skip("boots real guests: set ROCEBED_GUEST_TESTS=1 (make test does)")
	}
}

func boot(t *testing.T, cfg Config) *Guest {
	t.Helper()
	needGuest(t)
	cfg.Progress = func(s string) { t.Log(s) }
	g, err := Boot(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// sh runs a script and returns its exit code and both its outputs.
func sh(t *testing.T, g *Guest, script string) (int, string, string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", script}, Stdout: &out, Stderr: &errOut})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return code, out.String(), errOut.String()
}

func TestAGuestRunsPrograms(t *testing.T) {
	shipped := t.TempDir()
	if err := os.WriteFile(filepath.Join(shipped, "run.sh"), []byte("#!/bin/bash\necho shipped \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := boot(t, Config{Files: []File{{From: shipped, To: "/x/dir"}, {Content: []byte("words"), To: "/x/words", Mode: 0o600}}})

	t.Run("in a kernel that has rxe", func(t *testing.T) {
		code, out, errOut := sh(t, g, `uname -r && ip link add v0 type veth peer name v1 && ip link set v0 up && rdma link add r0 type rxe netdev v0 && rdma link show && tc qdisc add dev v0 root netem loss 1% && rdma link del r0 && ip link del v0`)
		if code != 0 || !strings.Contains(out, g.Report.Kernel) || !strings.Contains(out, "r0/1") {
			t.Errorf("%d: %s%s", code, out, errOut)
		}
	})
	t.Run("and carries exit codes and the signal that killed one", func(t *testing.T) {
		for script, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143} {
			if code, _, _ := sh(t, g, script); code != want {
				t.Errorf("%s: %d, want %d", script, code, want)
			}
		}
		p, err := g.Start(t.Context(), Cmd{Argv: []string{"bash", "-c", "kill -USR1 $$"}})
		if err != nil {
			t.Fatal(err)
		}
		if st, err := p.Wait(t.Context()); err != nil || st.Signal != "USR1" || st.Code != 138 {
			t.Errorf("%+v, %v", st, err)
		}
	})
	t.Run("and keeps output and errors apart", func(t *testing.T) {
		if _, out, errOut := sh(t, g, "echo out; echo err >&2"); out != "out\n" || errOut != "err\n" {
			t.Errorf("%q, %q", out, errOut)
		}
	})
	t.Run("and says what cannot be started", func(t *testing.T) {
		for _, c := range []Cmd{{Argv: []string{"no-such-program"}}, {Argv: []string{"/x/words"}}, {Argv: []string{"true"}, Dir: "/nowhere"}, {}} {
			if code, err := g.Run(t.Context(), c); err == nil || code != -1 {
				t.Errorf("%+v: %d, %v", c, code, err)
			}
		}
	})
	t.Run("with their arguments, environment and folder as given", func(t *testing.T) {
		var out bytes.Buffer
		code, err := g.Run(t.Context(), Cmd{
			Argv: []string{"bash", "-c", `printf '<%s>' "$0" "$@" "$GREETING" "$PWD"`, "a b", "", "$x", "'"},
			Env:  []string{"GREETING=hello world"}, Dir: "/tmp", Stdout: &out,
		})
		if want := "<a b><><$x><'><hello world></tmp>"; code != 0 || err != nil || out.String() != want {
			t.Errorf("%d, %v: %s, want %s", code, err, out.String(), want)
		}
	})
	t.Run("with input to its end", func(t *testing.T) {
		in := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
		var out bytes.Buffer
		code, err := g.Run(t.Context(), Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader(in), Stdout: &out})
		if code != 0 || err != nil || out.String() != in {
			t.Errorf("%d, %v: %d bytes of %d", code, err, out.Len(), len(in))
		}
	})
	t.Run("though one does not read its input", func(t *testing.T) {
		code, err := g.Run(t.Context(), Cmd{Argv: []string{"true"}, Stdin: strings.NewReader(strings.Repeat("x", 8<<20))})
		if code != 0 || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("with large output, whole", func(t *testing.T) {
		var out countingWriter
		code, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", "head -c 8000000 /dev/zero; exit 9"}, Stdout: &out})
		if code != 9 || err != nil || out != 8000000 {
			t.Errorf("%d, %v: %d bytes", code, err, out)
		}
	})
	t.Run("and does not wait for what they leave running", func(t *testing.T) {
		if code, out, _ := sh(t, g, "sleep 1000 & echo done"); code != 0 || out != "done\n" {
			t.Errorf("%d: %q", code, out)
		}
		sh(t, g, "kill $(pidof sleep)")
	})
	t.Run("many at once", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				var out bytes.Buffer
				code, err := g.Run(t.Context(), Cmd{Argv: []string{"bash", "-c", fmt.Sprintf("echo %d; exit %d", i, i)}, Stdout: &out})
				if code != i || err != nil || out.String() != fmt.Sprintln(i) {
					t.Errorf("%d: %d, %v: %q", i, code, err, out.String())
				}
			})
		}
		all.Wait()
	})
	t.Run("and buries orphans", func(t *testing.T) {
		sh(t, g, "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; sleep 0.2")
		var last string
		within(t, 10*time.Second, func() bool {
			_, last, _ = sh(t, g, "grep -l '^State:.Z' /proc/[0-9]*/status")
			return last == ""
		}, func() string { return "zombies: " + last })
	})
	t.Run("and signals reach the whole group", func(t *testing.T) {
		var out safeBuffer
		p, err := g.Start(t.Context(), Cmd{Argv: []string{"bash", "-c", `trap 'echo got it; exit 5' TERM; echo ready; while :; do sleep 1; done`}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Second, func() bool { return strings.Contains(out.String(), "ready") }, out.String)
		if err := p.Signal("TERM"); err != nil {
			t.Fatal(err)
		}
		if st, err := p.Wait(t.Context()); err != nil || st.Code != 5 || !strings.Contains(out.String(), "got it") {
			t.Errorf("%+v, %v, %q", st, err, out.String())
		}
	})
	t.Run("and ends one whose context ends, after its grace", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		out := &safeBuffer{onWrite: cancel}
		_, err := g.Run(ctx, Cmd{Argv: []string{"bash", "-c", `trap 'echo healed; exit 1' TERM; echo ready; while :; do sleep 0.1; done`}, Stdout: out, Grace: 30 * time.Second})
		if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "healed") {
			t.Errorf("%v, %q", err, out.String())
		}
		ctx, cancel = context.WithCancel(t.Context())
		out = &safeBuffer{onWrite: cancel}
		_, err = g.Run(ctx, Cmd{Argv: []string{"bash", "-c", `trap '' TERM; echo ready; exec sleep 1000`}, Stdout: out, Grace: 10 * time.Millisecond})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		within(t, 10*time.Second, func() bool {
			code, _, _ := sh(t, g, "pidof sleep")
			return code != 0
		}, func() string { return "it still runs" })
	})
	t.Run("on a terminal that has a size and gets new ones", func(t *testing.T) {
		var out safeBuffer
		p, err := g.Start(t.Context(), Cmd{
			Argv:   []string{"bash", "-c", `trap 'echo now $(stty size); exit 3' WINCH; echo $TERM $(tty) $(stty size); while :; do sleep 0.1; done`},
			Stdout: &out, Pty: &Pty{Term: "xterm", Rows: 33, Cols: 101}, Stdin: neverReader{t.Context()},
		})
		if err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Second, func() bool { return strings.Contains(out.String(), "xterm /dev/pts/0 33 101") }, out.String)
		if err := p.Resize(50, 132); err != nil {
			t.Fatal(err)
		}
		if st, err := p.Wait(t.Context()); err != nil || st.Code != 3 || !strings.Contains(out.String(), "now 50 132") {
			t.Errorf("%+v, %v, %q", st, err, out.String())
		}
	})
	t.Run("on a terminal whose input ends", func(t *testing.T) {
		var out bytes.Buffer
		code, err := g.Run(t.Context(), Cmd{Argv: []string{"bash"}, Stdin: strings.NewReader("echo $((6*7))\nexit 4\n"), Stdout: &out, Pty: &Pty{Term: "dumb", Rows: 24, Cols: 80}})
		if code != 4 || err != nil || !strings.Contains(out.String(), "42") {
			t.Errorf("%d, %v: %q", code, err, out.String())
		}
	})
	t.Run("with the files that were shipped", func(t *testing.T) {
		if code, out, _ := sh(t, g, "/x/dir/run.sh a; cat /x/words; stat -c %a /x/words"); code != 0 || out != "shipped a\nwords600\n" {
			t.Errorf("%d: %q", code, out)
		}
	})
	t.Run("and files travel both ways", func(t *testing.T) {
		back := t.TempDir()
		if err := g.ShipDir(t.Context(), shipped, "/tmp/there"); err != nil {
			t.Fatal(err)
		}
		sh(t, g, "head -c 3000000 /dev/urandom > /tmp/there/big; cd /tmp/there && sha256sum big > sum; mkfifo pipe")
		if err := g.Fetch(t.Context(), "/tmp/there", back); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", "cd "+back+" && sha256sum -c sum && test -x run.sh && test ! -e pipe").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if err := g.Fetch(t.Context(), "/no/such/folder", back); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("a missing folder: %v", err)
		}
		if err := g.Ship(t.Context(), "/proc/nowhere", bytes.NewReader(nil)); err == nil {
			t.Error("a folder that cannot be made was shipped to")
		}
	})
	t.Run("and its sockets can be reached", func(t *testing.T) {
		var out safeBuffer
		p, err := g.Start(t.Context(), Cmd{Argv: []string{BinaryPath}, Env: []string{helperEnv + "=echo"}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		within(t, 20*time.Second, func() bool { return strings.Contains(out.String(), "listening") }, out.String)
		conn, err := g.Dial(t.Context(), echoSocket)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"first", "second"} {
			back := make([]byte, len(word))
			if _, err := io.WriteString(conn, word); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, back); err != nil || string(back) != word {
				t.Errorf("%q came back, %v", back, err)
			}
		}
		conn.Close()
		if st, err := p.Wait(t.Context()); err != nil || st.Code != 0 {
			t.Errorf("the server: %+v, %v", st, err)
		}
		if _, err := g.Dial(t.Context(), "/run/none"); err == nil || !strings.Contains(err.Error(), "/run/none") {
			t.Errorf("a missing socket: %v", err)
		}
	})
	t.Run("with no limit on locked memory, and no network", func(t *testing.T) {
		if _, out, _ := sh(t, g, "ulimit -l; ls /sys/class/net"); out != "unlimited\nlo\n" {
			t.Errorf("%q", out)
		}
	})
	t.Run("until it is closed", func(t *testing.T) {
		p, err := g.Start(t.Context(), Cmd{Argv: []string{"sleep", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		pid := g.PID()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("QEMU %d after Close: %v", pid, err)
		}
		if _, err := p.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("what ran: %v", err)
		}
		if _, err := g.Run(t.Context(), Cmd{Argv: []string{"true"}}); !errors.Is(err, ErrClosed) {
			t.Errorf("what would run: %v", err)
		}
	})
}

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

// helper starts this binary as one of the helpers.
func helper(t *testing.T, name, script string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+name, "SCRIPT="+script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// firstLine reads one line, byte by byte so as not to take more.
func firstLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// alive tells whether a process is there and not only waiting to be buried.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// within waits for a condition, and says what was last seen where it does not come.
func within(t *testing.T, limit time.Duration, done func() bool, seen func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v; last seen: %s", limit, seen())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// safeBuffer can be read while it is written; onWrite is called with each write.
type safeBuffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	onWrite func()
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onWrite != nil {
		s.onWrite()
	}
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// neverReader has no input until its context ends.
type neverReader struct{ ctx context.Context }

func (r neverReader) Read([]byte) (int, error) { <-r.ctx.Done(); return 0, io.EOF }
