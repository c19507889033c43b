//go:build linux

// Package cli runs the rocebed binary for suites as a user does: commands with their exit codes
// and output, commands killed in the middle, and what is left of them on the machine.
//
// The binary is $ROCEBED, else rocebed from $PATH. Everything that a Machine starts carries an
// environment variable of its own, so that what it left is told apart from what others have.
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/rocebed/rocebed/internal/testleak"
)

// Machine runs commands and knows what the machine was like before the first.
type Machine struct {
	before testleak.Machine
	mark   string
	dir    string // where commands run
}

// NewMachine looks at the machine. When the spec ends, whatever its commands left is removed
// (processes killed, testbeds cleaned), so that one failing spec does not fail the next.
func NewMachine() *Machine {
	ginkgo.GinkgoHelper()
	dir, err := os.MkdirTemp("", "rocebed-suite-")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	m := &Machine{before: testleak.LookAtMachine(), mark: fmt.Sprintf("ROCEBED_SUITE=%d-%d", os.Getpid(), time.Now().UnixNano()), dir: dir}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		m.KillAll()
		m.command(ctx, "clean").Run()
		os.RemoveAll(dir)
	})
	return m
}

// File writes a file into the folder in which commands run.
func (m *Machine) File(name, text string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644)).To(gomega.Succeed())
}

// Done is a command that ended.
type Done struct {
	Args   []string
	Code   int
	Stdout string
	Stderr string
}

func (d Done) String() string {
	return fmt.Sprintf("rocebed %s: exit code %d\n%s%s", strings.Join(d.Args, " "), d.Code, d.Stdout, d.Stderr)
}

// Run runs a command to its end.
func (m *Machine) Run(ctx context.Context, args ...string) Done {
	ginkgo.GinkgoHelper()
	cmd := m.command(ctx, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	d := Done{Args: args, Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errs.String()}
	if d.Code < 0 {
		ginkgo.Fail(fmt.Sprintf("%s\n%v", d, err))
	}
	fmt.Fprintln(ginkgo.GinkgoWriter, d)
	return d
}

// MustRun is Run that fails the spec unless the exit code is 0.
func (m *Machine) MustRun(ctx context.Context, args ...string) Done {
	ginkgo.GinkgoHelper()
	d := m.Run(ctx, args...)
	gomega.Expect(d.Code).To(gomega.BeZero(), "%s", d)
	return d
}

// JSON runs a command that prints one JSON object, and decodes it.
func (m *Machine) JSON(ctx context.Context, v any, args ...string) {
	ginkgo.GinkgoHelper()
	d := m.MustRun(ctx, args...)
	gomega.Expect(json.Unmarshal([]byte(d.Stdout), v)).To(gomega.Succeed(), "%s", d)
}

// Binary is the rocebed that is tested.
func Binary() string {
	if b := os.Getenv("ROCEBED"); b != "" {
		return b
	}
	return "rocebed"
}

func (m *Machine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, Binary(), args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), m.mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Running is a command that has not ended.
type Running struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	lines []string
	ended chan struct{}
}

// Start starts a command and gathers its lines, of standard output and error alike.
func (m *Machine) Start(ctx context.Context, args ...string) *Running {
	ginkgo.GinkgoHelper()
	r, w, err := os.Pipe()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	run := &Running{cmd: m.command(ctx, args...), ended: make(chan struct{})}
	run.cmd.Stdout, run.cmd.Stderr = w, w
	err = run.cmd.Start()
	w.Close()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	go func() {
		defer close(run.ended)
		defer r.Close()
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				run.mu.Lock()
				run.lines = append(run.lines, strings.TrimRight(line, "\n"))
				run.mu.Unlock()
			}
			if err != nil {
				if err != io.EOF {
					fmt.Fprintln(ginkgo.GinkgoWriter, "read output:", err)
				}
				_ = run.cmd.Wait()
				return
			}
		}
	}()
	return run
}

// Lines is what the command has printed.
func (r *Running) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// Ended says whether the command has ended.
func (r *Running) Ended() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// KillAll kills, with SIGKILL, every process that this machine's commands have started, and
// waits until they are dead: until then they hold their locks.
func (m *Machine) KillAll() {
	ginkgo.GinkgoHelper()
	pids := testleak.ProcessesWith(m.mark)
	for pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for pid, cmd := range pids {
		gomega.Eventually(dead).WithArguments(pid).WithTimeout(20*time.Second).WithPolling(5*time.Millisecond).
			Should(gomega.BeTrue(), "process %d (%s) does not die of SIGKILL", pid, cmd)
	}
}

// dead says whether a process is gone, or a zombie: its descriptors are closed then.
func dead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	return ok && (state[0] == 'Z' || state[0] == 'X')
}

// Left is what is there and wasn't before the first command.
func (m *Machine) Left() []string { return m.before.Left(testleak.LookAtMachine(), m.mark) }

// Interrupt sends SIGINT to the command, as Ctrl-C does.
func (r *Running) Interrupt() { _ = r.cmd.Process.Signal(syscall.SIGINT) }

// Code is the exit code of a command that has ended; −1 when a signal ended it.
func (r *Running) Code() int { return r.cmd.ProcessState.ExitCode() }
