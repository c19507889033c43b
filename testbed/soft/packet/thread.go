//go:build linux

package packet

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// thread is the thread that a node's goroutine has for itself, and how it was before.
type thread struct {
	claimed bool
	attr    *unix.SchedAttr
	cpus    unix.CPUSet
	slack   int
}

// How the thread is scheduled where the process may choose: before others, for short spells (a slice that one may choose since
// Linux 6.12, and which those before ignore).
const (
	niceness = -15
	slice    = 200 * time.Microsecond
)

// claim keeps the goroutine on this thread, the thread on a CPU (negative: any), and its sleeps exact: the kernel may else
// stretch them by 50 µs to save wakings. Claiming again does nothing.
func (t *thread) claim(name string, cpu int) (err error) {
	if t.claimed {
		return nil
	}
	runtime.LockOSThread()
	t.claimed = true
	fail := func(what string, err error) error { return fmt.Errorf("%s: its thread: %s: %w", name, what, err) }
	if t.attr, err = unix.SchedGetAttr(0, 0); err != nil {
		return fail("read priority", err)
	}
	if err := unix.SchedGetaffinity(0, &t.cpus); err != nil {
		return fail("read CPUs", err)
	}
	if t.slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil {
		return fail("read timer slack", err)
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: niceness, Runtime: uint64(slice)}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return fail("set priority", err)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fail("set timer slack", err)
	}
	if cpu >= 0 {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fail(fmt.Sprintf("stay on CPU %d", cpu), err)
		}
	}
	return nil
}

// release gives the thread back as it was. One that can't be as it was ends with its goroutine.
func (t *thread) release() {
	if !t.claimed {
		return
	}
	t.claimed = false
	if t.attr == nil || unix.SchedSetAttr(0, t.attr, 0) != nil || unix.SchedSetaffinity(0, &t.cpus) != nil ||
		unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(t.slack), 0, 0, 0) != nil {
		return
	}
	runtime.UnlockOSThread()
}
