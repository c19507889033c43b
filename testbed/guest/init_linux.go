package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Init is the guest's init: it never returns. It sets the system up, serves the machine
// over the virtio port, and powers the guest off when the port goes away. It does
// nothing but complain when it isn't process 1 of a guest.
func Init() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest-init is for process 1 of a rocebed guest")
		os.Exit(2)
	}
	err := serveGuest()
	if err != nil {
		// The console: this is the end, and the machine shows its last lines.
		fmt.Fprintln(os.Stderr, "rocebed guest:", err)
	}
	powerOff()
}

// InitIfAsked turns the process into a guest's init when it was started as one. A test
// binary that boots guests calls it first in TestMain and so can be its own init.
func InitIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == InitArg && os.Getpid() == 1 {
		Init()
	}
}

func powerOff() {
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // never return from process 1: that would be a panic
}

// guestSystem is the guest as init sees it.
type guestSystem struct {
	spec   bootSpec
	reaper *reaper
	mu     sync.Mutex
	steps  []Step
	ready  chan struct{} // closed when set up
	broken error         // why it isn't, valid after ready
}

func serveGuest() error {
	g := &guestSystem{ready: make(chan struct{})}
	g.step("init")
	if err := mountAll(); err != nil {
		return err
	}
	raw, err := os.ReadFile(bootSpecPath)
	if err != nil {
		return err
	}
	if err := errors.Join(json.Unmarshal(raw, &g.spec), os.Remove(bootSpecPath)); err != nil {
		return err
	}
	g.reaper = newReaper()
	g.step("mounted")
	go func() {
		defer close(g.ready)
		g.broken = g.setUp()
		g.step("ready")
	}()
	port, err := openPort()
	if err != nil {
		return err
	}
	return g.serve(port)
}

// step notes a time of the start, on the clock that began with the guest's power-on.
func (g *guestSystem) step(name string) {
	now := clockNow(unix.CLOCK_BOOTTIME)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps = append(g.steps, Step{Name: name, At: now})
}

// clockNow reads one of the kernel's clocks.
func clockNow(id int32) time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(id, &now) // only an unknown clock fails
	return time.Duration(now.Nano())
}

// mountAll mounts the kernel's own file systems.
func mountAll() error {
	for _, m := range []struct {
		kind, at, options string
		optional          bool
	}{
		{kind: "proc", at: "/proc"},
		{kind: "sysfs", at: "/sys"},
		{kind: "devtmpfs", at: "/dev"},
		{kind: "devpts", at: "/dev/pts", options: "ptmxmode=0666,mode=0620,gid=0"},
		{kind: "tmpfs", at: "/dev/shm", options: "mode=1777"},
		{kind: "tmpfs", at: "/run", options: "mode=0755"},
		{kind: "tmpfs", at: "/tmp", options: "mode=1777"},
		{kind: "cgroup2", at: "/sys/fs/cgroup", optional: true},
		{kind: "debugfs", at: "/sys/kernel/debug", optional: true},
		{kind: "tracefs", at: "/sys/kernel/tracing", optional: true},
		{kind: "bpf", at: "/sys/fs/bpf", optional: true},
	} {
		err := os.MkdirAll(m.at, 0o755)
		if err == nil || m.optional {
			err = unix.Mount(m.kind, m.at, m.kind, 0, m.options)
		}
		if err != nil && !m.optional && !errors.Is(err, unix.EBUSY) { // busy: it is mounted
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, "/dev/"+name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	// `ip netns` makes it a shared mount of its own on first use.
	return os.MkdirAll("/run/netns", 0o755)
}

// loadAtStart are the modules that a fabric needs in any case; the rest load on first use.
var loadAtStart = []string{"rdma_rxe", "ib_uverbs", "rdma_ucm", "veth"}

// settings are raised for a fabric whose every packet passes this one kernel: the
// defaults are for one host's share.
var settings = map[string]string{
	"net/core/netdev_max_backlog":       "20000",
	"net/core/netdev_budget":            "600",
	"net/core/rmem_max":                 "67108864",
	"net/core/wmem_max":                 "67108864",
	"net/ipv4/neigh/default/gc_thresh1": "4096",
	"net/ipv4/neigh/default/gc_thresh2": "8192",
	"net/ipv4/neigh/default/gc_thresh3": "16384",
	"net/ipv6/neigh/default/gc_thresh3": "16384",
	"kernel/pid_max":                    "65536",
	"fs/inotify/max_user_instances":     "1024",
	"kernel/hostname":                   "guest",
}

// setUp makes the guest ready to run programs.
func (g *guestSystem) setUp() error {
	for name, value := range settings {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("sysctl %s: %w", strings.ReplaceAll(name, "/", "."), err)
		}
	}
	for resource, limit := range map[int]uint64{unix.RLIMIT_MEMLOCK: unix.RLIM_INFINITY, unix.RLIMIT_NOFILE: 1 << 20, unix.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("resource limit %d: %w", resource, err)
		}
	}
	if err := upLoopback(); err != nil {
		return err
	}
	if err := loadModules(loadAtStart); err != nil {
		return err
	}
	return pinPaths()
}

// upLoopback does `ip link set lo up`.
func upLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("lo: set up: %w", err)
	}
	return nil
}

// port is the guest's end of the virtio port. Reads and writes block their threads: the
// port's end of file, when the machine lets go of it, must be seen for sure.
type port struct{ fd int }

func (p port) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (p port) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(p.fd, b[done:])
		if err != nil && err != unix.EINTR {
			return done, err
		}
		done += max(n, 0)
	}
	return done, nil
}

func (p port) Close() error { return unix.Close(p.fd) }

// openPort waits for the port to appear and opens it.
func openPort() (port, error) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil || strings.TrimSpace(string(raw)) != portName {
				continue
			}
			path := "/dev/" + filepath.Base(filepath.Dir(name))
			fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				return port{fd}, nil
			}
			if time.Now().After(deadline) {
				return port{}, fmt.Errorf("open %s: %w", path, err)
			}
		}
		if time.Now().After(deadline) {
			return port{}, fmt.Errorf("no virtio port named %s (found %v)", portName, names)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
