package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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
		check := exec.Command("sha256sum", "-c", "sum")
		check.Dir = back
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if st, err := os.Stat(filepath.Join(back, "run.sh")); err != nil || st.Mode().Perm() != 0o755 {
			t.Errorf("a program's permissions: %v, %v", st, err)
		}
		if _, err := os.Stat(filepath.Join(back, "pipe")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a pipe travelled: %v", err)
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
