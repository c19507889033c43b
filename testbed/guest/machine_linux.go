package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const qemuName = "qemu-system-x86_64"

// machine is one QEMU process.
type machine struct {
	pid     int
	port    net.Conn // our end of the guest's virtio port
	console *console
	exited  chan struct{} // closed when the process is gone and its console read
	err     error         // how the process ended
	stderr  *console
	killed  sync.Once
	process *os.Process
}

// shape is what a machine is made of.
type shape struct {
	qemu     string
	accel    string
	memoryMB int
	cpus     int
	kernel   string
	initrd   *os.File
	console  io.Writer
	tscKHz   int // told to an emulated guest; 0: not known
}

// kernelArgs is the guest's command line.
//
//   - panic=-1 with QEMU's -no-reboot: a panic ends QEMU. An oops panics too: a kernel
//     that has lost a thread holding locks would only hang later.
//   - mitigations=off, no_timer_check: no one is there to be protected, and probing
//     costs time.
//   - tsc=reliable: no watchdog compares the counter with slower clocks, which on a busy
//     machine accuses the one that is right. The machine compares: see Clock.
//   - rcu_cpu_stall_suppress, nowatchdog: an emulated processor that waits for a real
//     one is not stalled.
const kernelArgs = "console=ttyS0 quiet panic=-1 oops=panic mitigations=off no_timer_check tsc=reliable " +
	"rcupdate.rcu_cpu_stall_suppress=1 nowatchdog nokaslr cryptomgr.notests audit=0 " +
	"rdinit=" + BinaryPath + " -- " + InitArg

// start starts QEMU. It dies when this process dies, whatever kills it: the kernel
// sends the signal when the thread that started QEMU ends, so one goroutine holds that
// thread until QEMU's end.
func (s shape) start() (*machine, error) {
	ours, theirs, err := portPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	m := &machine{port: ours, console: &console{next: s.console}, stderr: &console{}, exited: make(chan struct{})}
	cmd := exec.Command(s.qemu, s.args()...)
	cmd.ExtraFiles = []*os.File{theirs, s.initrd} // descriptors 3 and 4 in QEMU
	cmd.Stdout, cmd.Stderr = m.console, m.stderr
	// A group of its own: a terminal's Ctrl-C is for us to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			m.process, m.pid = cmd.Process, cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		m.err = cmd.Wait()
		ours.Close()
		close(m.exited)
	}()
	if err := <-started; err != nil {
		ours.Close()
		return nil, fmt.Errorf("start %s: %w", s.qemu, err)
	}
	return m, nil
}

// kernelLine is kernelArgs and, for an emulated guest, how fast its time stamp counter goes (see
// tsc.go) and that it always goes so fast: without that every further processor counts its delay
// loops anew, and wrong on a busy machine. A guest under KVM is told by KVM.
func (s shape) kernelLine() string {
	if s.accel == "tcg" && s.tscKHz > 0 {
		return fmt.Sprintf("tsc_early_khz=%d setcpuid=constant_tsc %s", s.tscKHz, kernelArgs)
	}
	return kernelArgs
}

func (s shape) args() []string {
	// Five-level page tables cost an emulated processor 8 % in every walk, for nothing. And a processor with "enhanced" REP MOVSB
	// has the kernel copy from and to programs by it, which emulated is byte by byte: 4 KiB take several times as long.
	accel, cpu := "tcg,thread=multi", "max,la57=off,erms=off"
	if s.accel == "kvm" {
		accel, cpu = "kvm", "host"
	}
	return []string{
		"-M", "q35", "-accel", accel, "-cpu", cpu, "-smp", strconv.Itoa(s.cpus), "-m", strconv.Itoa(s.memoryMB),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", s.kernel, "-initrd", "/proc/self/fd/4", "-append", s.kernelLine(),
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=port,fd=3", "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,name=" + portName,
	}
}

// kill ends QEMU; exited closes soon after.
func (m *machine) kill() {
	m.killed.Do(func() { _ = m.process.Kill() })
}

// fail makes a failure of this machine with the end of its console.
func (m *machine) fail(kind error, detail string) *Failure {
	return &Failure{Kind: kind, Detail: detail, Console: m.console.lines(24)}
}

// failure says how QEMU's end came about. Call it after exited.
func (m *machine) failure() *Failure {
	if p := m.console.panicLine(); p != "" {
		return m.fail(ErrPanic, p)
	}
	if said := m.stderr.lines(3); len(said) > 0 {
		return m.fail(ErrDied, "QEMU ended: "+strings.Join(said, "; "))
	}
	var exit *exec.ExitError
	switch {
	case m.err == nil:
		return m.fail(ErrDied, "it powered off")
	case errors.As(m.err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled():
		return m.fail(ErrDied, "QEMU was ended by signal "+exit.Sys().(syscall.WaitStatus).Signal().String())
	}
	return m.fail(ErrDied, "QEMU ended: "+m.err.Error())
}

// portPair makes the socket pair that is the guest's port.
func portPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("guest port: %w", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "guest port"), os.NewFile(uintptr(fds[1]), "guest port")
	defer near.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		far.Close()
		return nil, nil, fmt.Errorf("guest port: %w", err)
	}
	return conn, far, nil
}

// findQEMU finds the VMM.
func findQEMU() (string, error) {
	path, err := exec.LookPath(qemuName)
	if err != nil {
		return "", unavailable("no %s (Debian package qemu-system-x86)", qemuName)
	}
	return filepath.Abs(path)
}

// waitExit waits for QEMU's end.
func (m *machine) waitExit(limit time.Duration) bool {
	select {
	case <-m.exited:
		return true
	case <-time.After(limit):
		return false
	}
}
